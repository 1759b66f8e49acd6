"""Manifests of extensions."""

from pathlib import Path

import pytest

from ollm.domain.errors import UsageError
from ollm.extensions.loader import read_manifest


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("[1]", "is not a mapping"),
        ("a: [", "is not YAML"),
        ("{name: Big Name, version: 1, adds: {tools: {x: 'm:X'}}}", "name: expected up to 40"),
        ("{name: ../up, version: 1, adds: {tools: {x: 'm:X'}}}", "name: expected up to 40"),
        ("{name: a, adds: {tools: {x: 'm:X'}}}", "version is missing"),
        ("{name: a, version: 1}", "adds: expected a mapping"),
        ("{name: a, version: 1, adds: {tool: {x: 'm:X'}}}", "adds.tool: unknown; available: tools"),
        ("{name: a, version: 1, adds: {tools: {x: os.system}}}", "module:attribute"),
        ("{name: a, version: 1, adds: {tools: {x: 'm:X'}}}", "no module m"),
        ("{name: a, version: 1, wants: x, adds: {tools: {x: 'm:X'}}}", "unknown key wants"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(tmp_path: Path, manifest: str, said: str) -> None:
    (tmp_path / "extension.yaml").write_text(manifest)

    with pytest.raises(UsageError, match=said):
        read_manifest(tmp_path)


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "extension.yaml").write_text(text)
    (folder / "code.py").touch()
    (folder / "deep" / "inner").mkdir(parents=True, exist_ok=True)
    (folder / "deep" / "inner" / "__init__.py").touch()
    return folder


def test_a_manifest_says_what_it_adds_and_asks_for(tmp_path: Path) -> None:
    text = "name: mine\nversion: 2\ndescription: Does it.\nasks: [files, 5]\nadds: {tools: {t: 'code:T'}, context: {c: 'deep.inner:f'}}\n"
    found = read_manifest(write(tmp_path, text))

    assert (found.name, found.version, found.description, found.asks) == ("mine", "2", "Does it.", ("files", "5"))
    assert [(addition.kind, addition.name, addition.target) for addition in found.adds] == [
        ("tools", "t", "code:T"),
        ("context", "c", "deep.inner:f"),
    ]
    assert found.place == str(tmp_path)
    assert found.describe_abilities()[:4] == [
        "mine 2: Does it.",
        "  adds tools the model can call, under your policy: t",
        "  adds text sent to the model every turn: c",
        "  requests: files, 5",
    ]
    bare = read_manifest(write(tmp_path / "bare", "name: bare\nversion: '1'\nadds: {providers: {p: 'code:P'}}\n"))
    assert bare.describe_abilities()[2] == "  requests: nothing"
    assert bare.description == ""


def test_a_file_that_is_missing_or_too_large_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot read") as found:
        read_manifest(tmp_path)
    assert found.value.action == "An extension has one."
    good = "name: a\nversion: 1\nadds: {tools: {t: 'code:T'}}\n"
    assert read_manifest(write(tmp_path, good + "#" * (64 * 1024 - len(good)))).name == "a"
    with pytest.raises(UsageError, match="is larger than 64 KiB"):
        read_manifest(write(tmp_path, good + "#" * (64 * 1024 - len(good) + 1)))


def test_what_was_read_is_remembered_and_a_change_read_anew(tmp_path: Path) -> None:
    memory = tmp_path / "cache" / "m.json"
    folder = write(tmp_path / "x", "name: a\nversion: 1\nadds: {tools: {t: 'code:T'}}\n")
    assert read_manifest(folder, memory).version == "1"
    assert read_manifest(folder, memory).version == "1"
    write(folder, "name: a\nversion: 2\nadds: {tools: {t: 'code:T'}}\n")
    assert read_manifest(folder, memory).version == "2"
