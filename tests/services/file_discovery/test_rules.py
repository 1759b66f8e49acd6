"""Ignore files, line by line, as git reads them; the last rule that matches decides."""

import asyncio
import os
from pathlib import Path

import pytest

from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.rules import Matcher, parse_ignore_rules
from tests.services.file_discovery.looking import files, plant, rules


@pytest.mark.parametrize("kind", ["fifo", "directory", "loop", "device", "huge"])
async def test_an_ignore_file_that_is_no_file_does_no_harm(
    service: FileDiscoveryService, root: Path, kind: str
) -> None:
    plant(root, "a")
    odd = root / ".gitignore"
    match kind:
        case "fifo":
            os.mkfifo(odd)
        case "directory":
            odd.mkdir()
        case "loop":
            odd.symlink_to(odd)
        case "device":
            odd.symlink_to("/dev/zero")
        case _:
            odd.write_bytes(b"x" * 50_000_000)

    assert "a" in await asyncio.wait_for(files(service, root), 30)


async def test_fifty_thousand_rules_work(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept", "name-49999.txt", "sub/name-3.txt", "ax650", "ax651")
    many = [f"name-{number}.txt" for number in range(50_000)], [f"a?{number}" for number in range(1_200)]
    rules(root, ".gitignore", *many[0], *many[1], "!sub/name-3.txt", "!a?651")

    assert await files(service, root) == {".gitignore", "kept", "sub/name-3.txt", "ax651"}


async def test_a_hostile_rule_costs_no_time(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "a" * 200, *(f"d/{'a' * 200}{number}" for number in range(20)))
    rules(root, ".gitignore", "*a" * 60 + "b", "**/" * 60 + "x", "[a]*" * 60 + "b", "?*" * 90 + "/b", "**/*a" * 800)

    assert len(await asyncio.wait_for(files(service, root), 20)) == 22


def parse(*lines: str, base: str = "") -> list[tuple[str, bool, bool]]:
    return [
        (rule.text, rule.negated, rule.only_directories)
        for rule in parse_ignore_rules([line.encode() for line in lines], base.encode(), "x").rules
    ]


def test_comments_and_blank_lines_are_no_rules() -> None:
    assert parse("", "# words", "   ", "\\#hash", "\0", "a\0b") == [("\\#hash", False, False)]
    assert parse("a\r", "b/", "!c", "!d/", "\\!e") == [
        ("a", False, False),
        ("b/", False, True),
        ("!c", True, False),
        ("!d/", True, True),
        ("\\!e", False, False),
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [("a  ", "a"), ("a\\ ", "a\\ "), ("a\\  ", "a\\ "), ("a b ", "a b"), ("a\t", "a\t"), ("a\\", None), ("a \\", None)],
)
def test_spaces_at_the_end_go_unless_escaped(line: str, text: str | None) -> None:
    assert [rule for rule, _, _ in parse(line)] == ([] if text is None else [text])


def test_a_line_that_cannot_be_used_is_told_with_its_number() -> None:
    said = parse_ignore_rules([b"ok", b"[x", b"/", b"!", b"a" * 4097, b"a" * 4096], b"", "here")

    assert [(bad.line, bad.reason, bad.source) for bad in said.bad] == [
        (2, "a set without its closing bracket", "here"),
        (3, "it matches nothing", "here"),
        (4, "it matches nothing", "here"),
        (5, "it is longer than a path can be", "here"),
    ]
    assert [rule.line for rule in said.rules] == [1, 6]


def make(*lines: str, ignore_case: bool = False, base: bytes = b"") -> Matcher:
    return Matcher(parse_ignore_rules([line.encode() for line in lines], base, "x").rules, ignore_case=ignore_case)


@pytest.mark.parametrize(
    ("lines", "path", "directory", "deciding"),
    [
        (("*.log", "!a.log"), b"a.log", False, "!a.log"),
        (("!a.log", "*.log"), b"a.log", False, "*.log"),
        (("a[bc]d", "x?z", "ab?"), b"acd", False, "a[bc]d"),
        (("a[bc]d", "x?z", "ab?"), b"abc", False, "ab?"),
        (("out/",), b"out", False, None),
        (("out/",), b"out", True, "out/"),
        (("out", "out/"), b"out", False, "out"),
        (("/a",), b"d/a", False, None),
        (("a",), b"d/a", False, "a"),
        (("d/a", "?"), b"d/a", False, "?"),
        (("*.log",), b"log", False, None),
        ((), b"a", False, None),
    ],
)
def test_the_last_rule_that_matches_decides(
    lines: tuple[str, ...], path: bytes, directory: bool, deciding: str | None
) -> None:
    rule = make(*lines).find_deciding_rule(path, directory=directory)

    assert (rule.text if rule else None) == deciding
    assert make(*lines).hides(path, directory=directory) is (deciding is not None and deciding[0] != "!")
