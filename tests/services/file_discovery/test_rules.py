"""Ignore files, line by line, as git reads them."""

import asyncio
import os
from pathlib import Path

import pytest

from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.rules import BadIgnoreRule, parse_ignore_rules, read_ignore_file
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
    plant(root, "kept", "name-49999.txt", "sub/name-3.txt")
    rules(root, ".gitignore", *(f"name-{number}.txt" for number in range(50_000)), "!sub/name-3.txt")

    assert await files(service, root) == {".gitignore", "kept", "sub/name-3.txt"}


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


@pytest.mark.parametrize(
    ("line", "names", "endings", "beginnings", "anywhere"),
    [
        ("foo", "foo", "", "", True),
        ("*.log", "", ".log", "", True),
        ("log*", "", "", "log", True),
        ("/foo", "foo", "", "", False),
        ("a/foo", "foo", "", "", False),
        ("a/*.log", "", ".log", "", False),
        ("*", "", "", "", True),
        ("f?o", "", "", "", True),
        ("**", "", "", "", True),
        ("*a*", "", "", "", True),
        ("foo/", "foo", "", "", True),
        ("*.py[cod]", "", ".pyc .pyo .pyd", "", True),
        ("[Bb]in[12]/", "Bin1 Bin2 bin1 bin2", "", "", True),
        ("[Ll]og*", "", "", "Log log", True),
        ("a[/x]b", "", "", "", False),
        ("*.[a-c]", "", "", "", True),
        ("*.[!ab]", "", "", "", True),
        ("\\[ab]", "", "", "", True),
        ("*.[abcdefghij][ab]", "", "", "", True),
    ],
)
def test_what_can_be_told_by_a_name_alone_is_told(
    line: str, names: str, endings: str, beginnings: str, anywhere: bool
) -> None:
    (rule,) = parse_ignore_rules([line.encode()], b"", "x").rules

    assert (rule.names, rule.endings, rule.beginnings, rule.anywhere) == (
        tuple(names.split()),
        tuple(endings.split()),
        tuple(beginnings.split()),
        anywhere,
    )


def test_rules_of_a_folder_are_about_paths_below_it() -> None:
    from ollm.services.file_discovery.expressions import compile_bytes

    anchored, anywhere = parse_ignore_rules([b"/a", b"b"], b"sub+x", "x").rules

    assert compile_bytes(anchored.expression).fullmatch(b"sub+x/a")
    assert not compile_bytes(anchored.expression).fullmatch(b"sub+x/d/a")
    assert compile_bytes(anywhere.expression).fullmatch(b"sub+x/d/b")
    assert not compile_bytes(anywhere.expression).fullmatch(b"b")


def test_a_file_is_read_without_its_mark_and_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\nb")

    assert [(rule.text, rule.line, rule.source) for rule in read_ignore_file(str(tmp_path / "x"), None).rules] == [
        ("a", 1, str(tmp_path / "x")),
        ("b", 2, str(tmp_path / "x")),
    ]
    assert read_ignore_file(str(tmp_path / "x"), b"d", "named").rules[0].source == "named"
    assert read_ignore_file(str(tmp_path / "missing"), b"").rules == ()
    assert read_ignore_file("a\0b", b"").rules == ()


def test_a_line_is_told_once_by_what_and_where_it_is() -> None:
    said = {"text": "[x", "source": "a", "line": 1, "reason": "r"}
    bad = BadIgnoreRule(**said)  # type: ignore[arg-type]

    assert bad == BadIgnoreRule(**said)  # type: ignore[arg-type]
    assert len({bad, BadIgnoreRule(**said)}) == 1  # type: ignore[arg-type]
    assert bad != "a"
    for name, value in (("text", "[y"), ("source", "b"), ("line", 2), ("reason", "s")):
        other = BadIgnoreRule(**{**said, name: value})  # type: ignore[arg-type]
        assert bad != other
        assert len({bad, other}) == 2
