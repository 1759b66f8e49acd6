"""The few facts we need from the head of a GGUF file: its architecture and the window it was trained for."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from ollm.domain.errors import ModelError

MAGIC = b"GGUF"
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
MAX_STRING_BYTES = 16 * 1024 * 1024
MAX_KEYS = 4096


def read_trained_window(path: Path) -> int | None:
    """The context length the model was trained for. Raises ModelError when the file is not GGUF or is cut short."""
    try:
        with path.open("rb") as file:
            facts = _read_facts(file)
    except (OSError, struct.error, ValueError) as error:
        raise ModelError(f"{path} is not a valid GGUF model: {error}.", action="Download it again.") from error
    found = facts.get(f"{facts.get('general.architecture')}.context_length")
    return found if isinstance(found, int) and found > 0 else None


def _read_facts(file: BinaryIO) -> dict[str, Any]:
    """Keys and values up to the context length, which is before the long lists of the tokenizer."""
    if file.read(4) != MAGIC:
        raise ValueError("it does not start with GGUF")
    _, _, count = struct.unpack("<IQQ", _read_exactly(file, 20))
    facts: dict[str, Any] = {}
    for _ in range(min(count, MAX_KEYS)):
        key = _read_string(file)
        facts[key] = _read_value(file, *struct.unpack("<I", _read_exactly(file, 4)))
        if key.endswith(".context_length") and "general.architecture" in facts:
            break
    return facts


def _read_value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _read_string(file)
    if kind == ARRAY:
        inner, length = struct.unpack("<IQ", _read_exactly(file, 12))
        if inner in SCALARS:
            file.seek(length * struct.calcsize(SCALARS[inner]), 1)
            return None
        for _ in range(length):
            _read_value(file, inner)
        return None
    if kind not in SCALARS:
        raise ValueError(f"an unknown kind of value, {kind}")
    form = SCALARS[kind]
    return struct.unpack(form, _read_exactly(file, struct.calcsize(form)))[0]


def _read_string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _read_exactly(file, 8))
    if length > MAX_STRING_BYTES:
        raise ValueError("a text in it is too long")
    return _read_exactly(file, length).decode("utf-8", "replace")


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError("it ends too early")
    return data
