"""Outlines and maps of code: facts of files, ranking, the parser."""

import os
from pathlib import Path

import pytest

from ollm.config.settings import CodeMapSettings
from ollm.services.code_map.facts import FactsCache, decode_source
from ollm.services.code_map.service import CodeMapService
from ollm.services.code_map.syntax_tree import (
    get_parser,
    has_grammar,
    outline_text,
)
from tests.services.code_map.full_outlines import NAMES, describe_file, get_file


def names(root: Path, folder: Path, *paths: str) -> dict[str, list[str]]:
    found = FactsCache(folder, root).read(paths)
    return {facts.path: [one.name for one in facts.definitions] for facts in found}


def test_a_file_is_read_again_when_its_time_or_size_changed(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "cache"
    root.mkdir()
    (root / "a.py").write_text("def one(): pass\n")
    assert names(root, folder, "a.py") == {"a.py": ["one"]}
    status = (root / "a.py").stat()

    (root / "a.py").write_text("def two(): pass\n")
    os.utime(root / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert names(root, folder, "a.py") == {"a.py": ["one"]}, "same time and size: from the cache"
    (root / "a.py").write_text("def three(): pass\n")
    assert names(root, folder, "a.py") == {"a.py": ["three"]}
    (root / "a.py").unlink()
    assert names(root, folder, "a.py") == {}


def test_links_and_what_is_no_file_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("def secret(): pass\n")
    root = tmp_path / "project"
    root.mkdir()
    (root / "link.py").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "pipe.py")

    assert names(root, tmp_path / "cache", "link.py", "pipe.py", "gone.py") == {}


def test_a_part_of_a_project_does_not_make_the_rest_forgotten(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "cache"
    root.mkdir()
    for name in ("a.py", "b.py"):
        (root / name).write_text(f"def {name[0]}bc(): pass\n")
    names(root, folder, "a.py", "b.py")
    (root / "a.py").write_text("def other(): pass\n")
    names(root, folder, "a.py")
    status = (root / "b.py").stat()
    (root / "b.py").write_text("def xyz(): pass\n")
    os.utime(root / "b.py", ns=(status.st_atime_ns, status.st_mtime_ns))

    assert names(root, folder, "b.py") == {"b.py": ["bbc"]}, "still from the cache"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\xef\xbb\xbfx", "x"),
        (b"\xff\xfea\x00", "a"),
        (b"\xe9abc", "éabc"),
        (b"\xe9t\xe9 = 1\n", "été = 1\n"),
        (b"ab\xf0\x9f\x98", "ab\ufffd"),
        (b"ab\xc3", "ab\ufffd"),
        (b"a\x00b", ""),
        (b"a" * 8192 + b"\x00", "a" * 8192 + "\x00"),
        (b"a" * 8191 + b"\x00", ""),
    ],
)
def test_source_is_read_in_the_encoding_it_is_written_in(data: bytes, text: str) -> None:
    assert decode_source(data) == text


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_found_in_a_file_of_each_kind(name: str) -> None:
    assert describe_file(name) == get_file(name).read_text(encoding="utf-8")


def plant(root: Path, count: int) -> list[str]:
    root.mkdir()
    for number in range(count):
        (root / f"m{number}.py").write_text(f"class Thing{number}: pass\nThing{number - 1}()\n")
    (root / "notes.md").write_text("# Notes\n")
    (root / "data.bin").write_bytes(b"\0")
    return sorted(path.name for path in root.iterdir())


async def test_a_symbol_is_found_by_its_last_names_and_all_names_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    paths = [*plant(root, 2), "rare.py"]
    (root / "rare.py").write_text("class Rare:\n    def run(self): pass\n")
    service = CodeMapService(CodeMapSettings(), tmp_path / "cache")

    found = await service.find_symbol(root, paths, "Rare.run")

    assert [(one.path, one.definition.full_name, one.definition.line) for one in found] == [("rare.py", "Rare.run", 2)]
    assert await service.find_symbol(root, paths, "Nobody") == []
    assert await service.list_symbols(root, paths) == ["Thing0", "Thing1", "Rare", "Rare.run"]


def test_a_language_without_a_grammar_says_so() -> None:
    assert has_grammar("a.py")
    assert not has_grammar("a.kt")
    assert outline_text("a.kt", b"fun main() {}") == []
    assert get_parser("tree_sitter_of_nobody", "language") is None


def test_nesting_without_end_and_bytes_that_are_no_text_do_no_harm() -> None:
    assert outline_text("a.py", b"class A:\n" * 2000) is not None
    assert outline_text("a.js", b"{" * 20_000) is not None
    assert outline_text("a.rs", bytes(range(256)) * 20) is not None


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        (
            "a.cpp",
            (
                "namespace a::b {\nT& Vec<T, N>::at(int i) { return d[i]; }\nnamespace { int hidden() { return 1; } }\n"
                "class V { T& operator[](int i) { return d; } operator bool() const; struct In { void next(); }; };\n}\n"
                "class EXPORTED W : public B {\n  void m();\n};\n"
            ),
            "a.b a.b.Vec.at a.b.hidden a.b.V a.b.V.operator[] a.b.V.operator bool a.b.V.In a.b.V.In.next W W.m",
        ),
        (
            "a.js",
            "var api = { start: function () {}, stop() {} };\nexport default class { run() {} }\n",
            "api api.start api.stop default default.run",
        ),
        (
            "a.ts",
            "export const memo = wrap(function Named() {});\nconst local = 1;\nexport default () => 1;\n",
            "memo default",
        ),
        ("a.py", "type Pair[T] = tuple[T, T]\nfor x in y:\n    def inside(): pass\n", "Pair inside"),
        ("a.go", "package a\ntype (\n\tID = string\n)\n", "ID"),
        ("a.rs", 'extern "C" { fn abs(x: i32); }\nimpl<T> I for &mut Foo<T> { fn next() {} }\n', "abs Foo Foo.next"),
        (
            "A.java",
            "record P(int x) { public P { } static final int MAX = 1; int y; }\n@interface N { String v(); }\n",
            "P P.P P.MAX N N.v",
        ),
        (
            "a.rb",
            "class A\n  private def secret; end\nend\nPoint = Struct.new(:x) do\n  def far; end\nend\n",
            "A A.secret Point Point.far",
        ),
    ],
)
def test_what_stands_in_unusual_places_is_found(name: str, text: str, names: str) -> None:
    found = outline_text(name, text.encode())

    assert found is not None
    assert " ".join(one.full_name for one in found) == names
