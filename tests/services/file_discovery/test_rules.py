"""Ignore rules, explained."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery.patterns import (
    BadPattern,
    compile_bytes,
    expand_braces,
    translate_glob,
    translate_pattern,
)
from ollm.services.file_discovery.rules import parse_ignore_rules
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.covers import covers
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


def test_a_line_that_cannot_be_used_is_told_with_its_number() -> None:
    said = parse_ignore_rules([b"ok", b"[x", b"/", b"!", b"a" * 4097, b"a" * 4096], b"", "here")

    assert [(bad.line, bad.reason, bad.source) for bad in said.bad] == [
        (2, "a set without its closing bracket", "here"),
        (3, "it matches nothing", "here"),
        (4, "it matches nothing", "here"),
        (5, "it is longer than a path can be", "here"),
    ]
    assert [rule.line for rule in said.rules] == [1, 6]


CASES: list[tuple[str, str, bool]] = [
    ("foo", "foo", True),
    ("foo", "fooo", False),
    ("?oo", "foo", True),
    ("?oo", "/oo", False),
    ("*", "foo", True),
    ("*", "a/b", False),
    ("a*b", "axxb", True),
    ("a*b", "a/b", False),
    ("**", "a/b/c", True),
    ("**/c", "c", True),
    ("**/c", "a/b/c", True),
    ("**/c", "xc", False),
    ("a/**", "a/b/c", True),
    ("a/**", "a", False),
    ("a/**/c", "a/c", True),
    ("a/**/c", "a/x/y/c", True),
    ("a/**/c", "axc", False),
    ("a**", "a/b", True),
    ("a**", "abc", True),
    ("**a", "xa", True),
    ("**a", "x/a", False),
    ("[ab]", "a", True),
    ("[ab]", "c", False),
    ("[!ab]", "c", True),
    ("[^ab]", "a", False),
    ("[!ab]", "/", False),
    ("[a-c]", "b", True),
    ("[a-c]", "d", False),
    ("[a-]", "-", True),
    ("[-a]", "-", True),
    ("[]a]", "]", True),
    ("[!]a]", "b", True),
    ("[\\]]", "]", True),
    ("[a-\\c]", "b", True),
    ("[[:digit:]]", "7", True),
    ("[[:digit:]x]", "x", True),
    ("[![:alpha:]]", "a", False),
    ("[[:space:]]", " ", True),
    ("[[:xdigit:]]", "F", True),
    ("[[:upper:]]", "a", False),
    ("[[:punct:]]", "#", True),
    ("[[:alnum:][:blank:]]", "\t", True),
    ("[[:]", ":", True),
    ("\\*", "*", True),
    ("\\*", "x", False),
    ("\\a", "a", True),
    ("a.b", "axb", False),
    ("a+(b)", "a+(b)", True),
    ("é", "é", True),
    ("??", "é", True),
    ("{a,b}", "{a,b}", True),
]


def test_git_itself_agrees(tmp_path: Path) -> None:
    """Patterns with a slash in front are anchored, so that git compares the whole path."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for pattern, path, _ in CASES:
        if pattern.startswith("**") or "/" in (path[:1], path[-1:]) or path in ("\t", ":"):
            continue
        (tmp_path / ".gitignore").write_text(f"/{pattern}\n", encoding="utf-8")
        asked = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=tmp_path, check=False)
        whole = {path, *("/".join(path.split("/")[:end]) for end in range(1, path.count("/") + 1))}
        expression = compile_bytes(translate_pattern(os.fsencode(pattern)))
        expected = any(expression.fullmatch(os.fsencode(one)) for one in whole)
        assert (asked.returncode == 0) is expected, (pattern, path)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a\\", "a backslash at the end escapes nothing"),
        ("[", "a set without its closing bracket"),
        ("[a", "a set without its closing bracket"),
        ("[a-", "a set without its closing bracket"),
        ("[[:alpha", "a set without its closing bracket"),
        ("[\\", "a set without its closing bracket"),
        ("[[:nope:]]", r"there is no class \[:nope:\]"),
        ("[/]", "a set that holds no character"),
    ],
)
def test_a_pattern_that_can_never_match_is_told(pattern: str, reason: str) -> None:
    with pytest.raises(BadPattern, match=reason):
        translate_pattern(pattern.encode())


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.{ts,tsx}", ["*.ts", "*.tsx"]),
        ("{a,b}/{c,d}", ["a/c", "b/c", "a/d", "b/d"]),
        ("{a,{b,c}}x", ["ax", "bx", "cx"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("a,b}", ["a,b}"]),
        ("\\{a,b}", ["\\{a,b}"]),
        ("{,x}", ["", "x"]),
    ],
)
def test_braces_are_alternatives(pattern: str, expected: list[str]) -> None:
    assert expand_braces(pattern) == expected


@pytest.mark.parametrize("pattern", ["", "[", "a[b", "[[:nope:]]", "a\\", "x\0y", "{a,b}" * 12])
def test_a_glob_that_cannot_be_used_is_told(pattern: str) -> None:
    with pytest.raises(ToolFailure) as told:
        translate_glob(pattern)

    assert told.value.kind == "InvalidPattern"


def test_a_thousand_alternatives_are_enough() -> None:
    ten = "{0,1,2,3,4,5,6,7,8,9}"
    assert len(expand_braces(ten * 3)) == 1000
    assert expand_braces(ten * 3)[-1] == "999"
    for more in (f"{{{','.join(map(str, range(1001)))}}}", f"{ten * 3}{{a,b}}"):
        with pytest.raises(BadPattern, match="more than 1000 patterns"):
            expand_braces(more)


async def test_an_explanation_names_the_rule_its_file_and_line(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "src/gen/a.py", "src/b.py", "node_modules/x/y.js", "src/c.log")
    rules(root, ".gitignore", "# comment", "gen/")
    rules(root, "src/.ollmignore", "!c.log")
    rules(root, "src/.gitignore", "*.log")

    async def reason(path: str) -> tuple[bool, str]:
        said = await service.explain(str(root), path)
        return said.shown, said.reason

    assert await reason("src/gen/a.py") == (False, ".gitignore:2 hides src/gen: gen/")
    assert await reason("src/b.py") == (True, "no rule hides it")
    assert await reason("src/c.log") == (True, "src/.ollmignore:1 includes it: !c.log")
    assert await reason("node_modules/x/y.js") == (False, "built-in rules:1 hides node_modules: node_modules")
    assert await reason("nowhere.py") == (False, "it does not exist")
    assert await reason("../elsewhere") == (False, f"it is outside {root}")
    assert await reason(".git/config") == (False, ".git is never shown")


async def test_what_needs_no_rule_is_said_in_words(service: FileDiscoveryService, root: Path, tmp_path: Path) -> None:
    plant(root, "a", "src/b", ".hidden")
    (root / "link").symlink_to("a")
    os.mkfifo(root / "pipe")

    async def reason(path: str) -> tuple[bool, str, str]:
        said = await service.explain(str(root), path)
        return said.shown, said.reason, said.decided_at

    assert await reason("link") == (True, "no rule hides it", "")
    (root / "inner").symlink_to("src")
    assert await reason(str(root / "inner")) == (True, "no rule hides it", "")
    assert await reason("pipe") == (False, "it is not a regular file", "pipe")
    assert await reason("a/b") == (False, "part of the path is a file", "a")
    assert await reason("src") == (True, "no rule hides it", "")
    assert await reason(".hidden") == (True, "no rule hides it", "")
    assert await reason(".") == (False, f"it is outside {root}", "")
    assert await reason("x" * 300) == (False, "it cannot be read: File name too long", "x" * 300)
    (tmp_path / "way").symlink_to(root / "src")
    assert await reason(str(tmp_path / "way" / "b")) == (True, "no rule hides it", "")


@covers("P22", "D321", "D321")
@pytest.mark.parametrize(
    ("path", "patterns", "expected"),
    [
        ("node_modules/x/y.js", ["node_modules"], True),
        ("a.log", ["*.log", "!a.log"], False),
        ("deep/a.log", ["/a.log"], False),
        ("out/a.txt", ["out/", "!out/a.txt"], True),
        ("out", ["out/"], False),
        ("out/", ["out/"], True),
        ("a/b/c", ["a/**/c"], True),
        ("", ["*"], False),
    ],
)
def test_should_ignore_reads_patterns_as_git_does(service: FileDiscoveryService, path, patterns, expected) -> None:
    assert service.should_ignore(path, patterns) is expected


@covers("D320")
async def test_patterns_know_their_root(service: FileDiscoveryService, root) -> None:
    (root / "sub").mkdir()
    (root / ".gitignore").write_text("/top.txt\n")
    patterns = await service.load_ignore_patterns(str(root))

    assert service.should_ignore(str(root / "top.txt"), patterns)
    assert not service.should_ignore(str(root / "sub" / "top.txt"), patterns)
    assert "node_modules" in patterns


async def test_rules_from_above_and_below_become_patterns_from_the_top(
    service: FileDiscoveryService, root: Path
) -> None:
    plant(root, "src/lib/a", "src/x[1]/b")
    rules(root, ".gitignore", "*.log", "/src/lib/out", "docs/y", "!src/**/keep.log", "/src/*/gen")
    rules(root, "src/.gitignore", "tmp", "/top", "!a/b")
    rules(root, "src/x[1]/.gitignore", "deep")
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    patterns = await service.load_ignore_patterns(str(root / "src"))

    first = patterns.index("*.log")
    below = ["/src/**/tmp", "/src/top", "!/src/a/b", "/src/x\\[1]/**/deep"]
    assert patterns[first:] == ["*.log", "/src/lib/out", "/docs/y", "!/src/**/keep.log", "/src/*/gen", *below]
    assert [service.should_ignore(path, patterns) for path in ("lib/out", "x[1]/deep", "a.log", "top")] == [True] * 4
    assert not service.should_ignore("lib/keep.log", patterns)
    assert not service.should_ignore(str(root / "top"), patterns)
    assert service.should_ignore("lib/node_modules/x", patterns)


async def test_an_absolute_path_below_the_root_may_be_a_directory(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "out/a", "file")
    rules(root, ".gitignore", "out/", "file/")

    patterns = await service.load_ignore_patterns(str(root))

    assert service.should_ignore(str(root / "out"), patterns)
    assert not service.should_ignore(str(root / "file"), patterns)
    assert service.should_ignore(str(root / "out" / "deep" / "x"), patterns)


@covers("S6.3")
async def test_core_excludesfile_is_found_as_git_finds_it(plain: FileDiscoveryService, root: Path) -> None:
    plant(root, "kept.txt", "left.out")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "config", "core.excludesFile", str(root / "elsewhere")], check=True)
    rules(root, "elsewhere", "*.out")

    assert await files(plain, root) == {"kept.txt", "elsewhere"}


async def test_the_settings_of_a_repository_are_read_again_when_they_change(
    plain: FileDiscoveryService, root: Path
) -> None:
    plant(root, "deep/kept.LOG", "deep/left.log")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    rules(root, ".gitignore", "*.log")
    assert await files(plain, root / "deep") == {"kept.LOG"}

    subprocess.run(["git", "-C", str(root), "config", "core.ignorecase", "true"], check=True)

    assert await files(plain, root / "deep") == set()


@pytest.mark.parametrize("pattern", ["out**", "**out", "o**t", "**"])
async def test_two_stars_in_a_name_are_one(plain: FileDiscoveryService, root: Path, pattern: str) -> None:
    plant(root, "out/a", "out-tools/deep/a", "out-tools/out", "about", "ot")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    rules(root, ".git/info/exclude", pattern, "!out-tools/")

    assert await files(plain, root) == list_by_git(root)


def list_by_git(root: Path) -> set[str]:
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    "pattern",
    ["[A]", "[a]", "[!A]", "[!a]", "[A-Z]", "[!A-Z]", "[[:upper:]]", "[![:lower:]]", "[A-_]", "[Z-a]", "[!b]x"],
)
async def test_sets_ignore_case_as_git_does(plain: FileDiscoveryService, root: Path, pattern: str) -> None:
    plant(root, "A", "a", "B", "b", "1", "_", "^", "Bx", "bx", "Cx")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "config", "core.ignoreCase", "true"], check=True)
    rules(root, ".git/info/exclude", pattern)

    assert await files(plain, root) == list_by_git(root)
