"""What is remembered of files, and when it no longer counts."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from ollm.services.code_map.facts import FactsCache, collect_facts, decode_source, read_large_files


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


def test_a_damaged_cache_is_made_anew_and_is_private(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "cache"
    root.mkdir()
    (root / "a.py").write_text("def one(): pass\n")
    names(root, folder, "a.py")
    (file,) = folder.iterdir()

    for damage in (b"", b"\xc1", file.read_bytes()[:-3], b"\x80"):
        file.write_bytes(damage)
        assert names(root, folder, "a.py") == {"a.py": ["one"]}

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_where_nothing_can_be_remembered_everything_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def one(): pass\n")
    (tmp_path / "file").write_text("no directory")

    assert names(tmp_path, tmp_path / "file", "a.py") == {"a.py": ["one"]}


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


def test_uses_are_calls_types_and_imports() -> None:
    facts = collect_facts("a.py", b"from shop import cart\nCart(pay(total))\npath = total\n", 0, 0)

    assert facts.references.split() == ["Cart", "cart", "import", "pay", "shop"]
    assert "path" in facts.words.split()
    assert collect_facts("a.py", b"a\0b", 0, 0).words == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_definitions_are_read_in_the_encoding_of_the_file(encoding: str) -> None:
    facts = collect_facts("a.py", "def größe():\n    pass\n".encode(encoding), 0, 1)

    assert [found.name for found in facts.definitions] == ["größe"]


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


def test_what_another_version_remembered_or_what_is_gone_does_not_count(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "cache"
    root.mkdir()
    for name in ("a.py", "b.py"):
        (root / name).write_text("def one(): pass\n")
    names(root, folder, "a.py", "b.py")
    (file,) = folder.iterdir()
    kept = file.read_bytes()
    assert kept.count(b"one") > 0

    file.write_bytes(kept.replace(b"\xa3one", b"\xa3two"))
    assert names(root, folder, "a.py") == {"a.py": ["two"]}, "it is believed"
    document = msgspec.msgpack.decode(kept.replace(b"\xa3one", b"\xa3two"))
    file.write_bytes(msgspec.msgpack.encode({**document, "version": 3}))
    assert names(root, folder, "a.py") == {"a.py": ["one"]}
    names(root, folder, "a.py", "b.py")
    (root / "b.py").unlink()
    names(root, folder, "a.py")
    assert b"b.py" not in file.read_bytes()


def test_how_much_of_a_file_is_looked_at(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    code = b"def one(): pass\n"
    for name, size in (("most.py", 512 * 1024), ("more.py", 512 * 1024 + 1)):
        (root / name).write_bytes(code + b"#" * (size - len(code)))
    assert names(root, tmp_path / "cache", "most.py", "more.py") == {"most.py": ["one"], "more.py": []}

    words = " ".join(f"w{number:05}" for number in range(6_001))
    assert collect_facts("a.txt", words.encode(), 0, 0).words.split()[-1] == "w05999"


def test_a_large_file_is_looked_through_for_a_word_as_far_as_it_is_read(tmp_path: Path) -> None:
    code = b"class Rare:\n    def run(self): pass\n"
    filler = b"#" * (10 * 1024 * 1024 - len(code) - 1) + b"\n"
    (tmp_path / "near.py").write_bytes(filler + code)
    (tmp_path / "far.py").write_bytes(b"#" * len(code) + filler + code)

    found = read_large_files(tmp_path, ["near.py", "far.py", "gone.py"], "Rare.run()")

    assert [(one.path, one.size, [inner.full_name for inner in one.definitions]) for one in found] == [
        ("near.py", len(filler) + len(code), ["Rare", "Rare.run"])
    ]
    assert (found[0].modified, found[0].words, found[0].references) == (0, "", "")
    assert read_large_files(tmp_path, ["near.py"], "") == []


def test_what_is_known_is_written_again_only_when_something_changed(tmp_path: Path) -> None:
    root, folder = tmp_path / "project", tmp_path / "cache"
    root.mkdir()
    (root / "a.py").write_text("def one(): pass\n")
    names(root, folder, "a.py")
    (file,) = folder.iterdir()
    os.utime(file, ns=(1, 1))

    names(root, folder, "a.py")
    assert file.stat().st_mtime_ns == 1
    (root / "a.py").write_text("def other(): pass\n")
    names(root, folder, "a.py")
    assert file.stat().st_mtime_ns > 1
