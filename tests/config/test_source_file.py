"""A configuration file: read in both forms, and every way it cannot be read is told with its place."""

from pathlib import Path

import pytest

from ollm.config.source_file import read_config_file
from ollm.config.validation import SettingsReader
from ollm.config.yaml_tree import SourcePosition, to_plain_value


def read(path: Path) -> tuple[object, list[str]]:
    reader = SettingsReader()
    entry = read_config_file(SourcePosition(file=str(path)), reader)
    return (None if entry is None else to_plain_value(entry)), [mistake.message for mistake in reader.mistakes]


def write(directory: Path, data: bytes) -> Path:
    path = directory / "config.yaml"
    path.write_bytes(data)
    return path


def test_the_services_form_means_the_same_and_the_top_level_wins(tmp_path: Path) -> None:
    text = b"services: {session: {maxSessions: 7, autoSave: false}}\nsessions: {maxSessions: 9}\n"

    assert read(write(tmp_path, text)) == ({"sessions": {"maxSessions": 9, "autoSave": False}}, [])


def test_an_unknown_service_is_told_with_the_likely_one(tmp_path: Path) -> None:
    value, told = read(write(tmp_path, b"services: {compresion: {}}\n"))

    assert value == {}
    assert told == ["unknown key, did you mean compression?"]


def test_no_file_and_an_empty_file_set_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "none.yaml") == (None, [])
    assert read(write(tmp_path, b"# nothing yet\n")) == (None, [])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert read(write(tmp_path, b"\xef\xbb\xbfmodels: {}\n")) == ({"models": {}}, [])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"- a list\n", "expected a mapping of settings"),
        (b"a: [1\n", "is not YAML"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"#" * (1024 * 1024 + 1), "larger than 1,024 KiB"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, data: bytes, told: str) -> None:
    value, messages = read(write(tmp_path, data))

    assert value is None
    assert told in messages[0]
