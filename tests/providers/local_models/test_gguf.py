"""The few facts in the head of a GGUF file."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ollm.domain.errors import ModelError
from ollm.providers.local_models.embedded import read_trained_window


def gguf(architecture: bytes, *, length: int, tokens: int = 0) -> bytes:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    pairs = [text(b"general.architecture") + struct.pack("<I", 8) + text(architecture)]
    pairs.append(text(b"tags") + struct.pack("<IIQ", 9, 8, tokens) + b"".join(text(b"t") for _ in range(tokens)))
    pairs.append(text(b"scores") + struct.pack("<IIQ", 9, 6, tokens) + bytes(4 * tokens))
    pairs.append(text(architecture + b".context_length") + struct.pack("<II", 4, length))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def test_the_window_a_model_was_trained_for_is_read_from_its_head(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf(b"llama", length=2048, tokens=5))

    assert read_trained_window(file) == 2048


def test_every_cut_of_a_head_is_refused_in_words(tmp_path: Path) -> None:
    file, whole = tmp_path / "m.gguf", gguf(b"llama", length=2048, tokens=2)
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(ModelError, match="not a valid GGUF model"):
            read_trained_window(file)
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60))
    with pytest.raises(ModelError):
        read_trained_window(file)


def field(key: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def text_value(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def read(tmp_path: Path, *fields: bytes) -> int | None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields)) + b"".join(fields))
    return read_trained_window(file)


ARCHITECTURE = field(b"general.architecture", 8, text_value(b"llama"))


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (ARCHITECTURE,),
        (ARCHITECTURE, field(b"other.context_length", 4, struct.pack("<I", 4096))),
        (ARCHITECTURE, field(b"llama.context_length", 5, struct.pack("<i", -1))),
        (ARCHITECTURE, field(b"llama.context_length", 4, struct.pack("<I", 0))),
        (ARCHITECTURE, field(b"llama.context_length", 6, struct.pack("<f", 5.0))),
    ],
)
def test_a_window_that_is_missing_or_makes_no_sense_is_none(tmp_path: Path, fields: tuple[bytes, ...]) -> None:
    assert read(tmp_path, *fields) is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"NOPE", "it does not start with GGUF"),
        (b"GGUF\3", "it ends too early"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + field(b"k", 99, b""), "an unknown kind of value, 99"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 16 * 1024 * 1024 + 1), "a text in it is too long"),
    ],
)
def test_what_is_no_model_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(content)

    with pytest.raises(ModelError) as caught:
        read_trained_window(file)
    assert caught.value.message == f"{file} is not a valid GGUF model: {reason}."
