"""Reads GGUF files: their metadata, and what a model needs in memory by its layers, heads and experts."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ollm.domain.errors import ModelError

MAGIC = b"GGUF"
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
MAX_STRING_BYTES = 16 * 1024 * 1024
MAX_KEYS = 4096
MAX_ENTRIES = 2_000_000  # Vocabularies have up to 300,000 entries.
MAX_TENSORS = 200_000
MAX_LAYERS = 4096  # Lists up to this length are kept, because they may have one entry for each layer.
FIRST_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")
FILE_TYPES = (  # A type's number in the file is its position here.
    "F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS"
    " Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16 - - - TQ1_0 TQ2_0 MXFP4_MOE"
)
VALUE_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}  # Quantized blocks hold 32 values and a scale of 2 bytes.
SLIDING_PERIODS = {"gemma2": 2, "gpt-oss": 2, "gemma3n": 5, "gemma3": 6, "plamo3": 8} | dict.fromkeys(
    ("cohere2", "cohere2moe", "exaone4", "exaone-moe", "olmo2", "afmoe", "mellum", "laguna", "smallthinker"), 4
)  # One layer in so many sees the whole window, unless the file says otherwise.
BATCH_TOKENS = 512
CELLS_STEP = 256  # Windows of llama.cpp are rounded up to multiples of it.


class ModelShape:
    """Sizes of a model that decide what it needs in memory, from the metadata of its file. Raises ValueError for a
    missing or impossible value. `full_values` and `sliding_values` are the numbers kept per token in layers that see
    the whole window and in those that see `sliding_window` tokens."""

    def __init__(self, facts: Mapping[str, Any], parameters: int, size: int) -> None:
        if facts.get("split.no"):
            raise ValueError("it is a later part of a split model; name the part 00001")
        self.architecture = str(facts.get("general.architecture") or "")
        if not self.architecture:
            raise ValueError("it does not name its architecture")
        self._facts = {key.removeprefix(f"{self.architecture}."): value for key, value in facts.items()}
        self.size = size
        self.parameters = parameters or self._read("general.parameter_count", 0)
        self.quant = dict(enumerate(FILE_TYPES.split())).get(self._read("general.file_type", MAX_LAYERS), "-")
        self.trained_window, self.embedding = self._read("context_length"), self._read("embedding_length")
        self.layers = self._read("block_count") - self._read("nextn_predict_layers", 0)
        if not 0 < self.layers <= MAX_LAYERS:
            raise ValueError(f"a model has 1 to {MAX_LAYERS} layers, not {self.layers}")
        self.heads = self._read("attention.head_count")
        self.kv_heads = self._read("attention.head_count_kv", self.heads)
        self.experts = self._read("expert_count", 0)
        self.experts_used = min(self.experts, self._read("expert_used_count", self.experts))
        self.feed_forward = self._read("feed_forward_length", 0)
        width = self._read("expert_feed_forward_length", self.feed_forward)
        dense, step = self._read("leading_dense_block_count", 0), self._read("interleave_moe_layer_step", 1) or 1
        in_experts = (self.layers - dense) // step * 3 * self.embedding * width * self.experts
        self.expert_share = min(0.99, in_experts / self.parameters) if self.parameters else 0.0
        self.base_model = str(facts.get("general.base_model.0.repo_url") or "").partition("huggingface.co/")[2]
        self.sliding_window = self._read("attention.sliding_window", 0)
        self.full_values = self.sliding_values = self.state_bytes = 0
        self._count_values()

    def count_kv_bytes(self, window: int, kind: str) -> int:
        """Count the bytes that llama.cpp allocates for the KV cache of one session."""
        cells, sliding = (math.ceil(n / CELLS_STEP) * CELLS_STEP for n in (window, self.sliding_window + BATCH_TOKENS))
        values = self.full_values * cells + self.sliding_values * min(cells, sliding)
        return round(values * VALUE_BYTES[kind]) + self.state_bytes

    def estimate_work_bytes(self, window: int) -> int:
        """Estimate the compute buffer. The factors follow the log of llama.cpp with models of 0.5B and 1.5B."""
        return BATCH_TOKENS * (4 * (2 * self.feed_forward + 10 * self.embedding) + 2 * window)

    def _read(self, key: str, default: int | None = None) -> int:
        """Read a size; of a list for each layer, the largest."""
        return max(self._read_list(key, default))

    def _read_list(self, key: str, default: int | None = None) -> list[int]:
        value: Any = self._facts.get(key, default)
        values: list[int] = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(one, int) and 0 <= one < 2**63 for one in values):
            raise ValueError(f"it does not say {self.architecture}.{key}")
        return values

    def _count_values(self) -> None:
        each = self.embedding // self.heads if self.heads else 0
        key, value = self._read("attention.key_length", each), self._read("attention.value_length", each)
        if self._read("attention.key_length_mla", 0):
            value = 0  # With MLA, values are part of the compressed keys.
        sliding = self._read("attention.key_length_swa", key) + self._read("attention.value_length_swa", value)
        kv_heads = self._read_list("attention.head_count_kv", self.heads)
        interval = self._read("full_attention_interval", 1) or 1
        pattern = self._read_list("attention.sliding_window_pattern", SLIDING_PERIODS.get(self.architecture, 1))
        period = (pattern[0] or self.layers + 1) if self.sliding_window else 1
        state, inner, groups = (self._read(f"ssm.{name}", 0) for name in ("state_size", "inner_size", "group_count"))
        convolution = max(0, self._read("ssm.conv_kernel", 0) - 1) * (inner + 2 * groups * state)
        for layer in range(self.layers - self._read("attention.shared_kv_layers", 0)):
            count = kv_heads[layer % len(kv_heads)]
            slides = pattern[layer % len(pattern)] if len(pattern) > 1 else layer % period < period - 1
            if count == 0 or (layer + 1) % interval:
                self.state_bytes += 4 * (state * inner + convolution)
            elif slides:
                self.sliding_values += count * sliding
            else:
                self.full_values += count * (key + value)


def read_trained_window(path: Path) -> int | None:
    """Read the context length the model was trained for. Raises ModelError if the file is not GGUF or is truncated."""
    with _explain_damage(path), path.open("rb") as file:
        facts = _read_facts(file, _read_header(file)[1], stops_at_window=True)
    found = facts.get(f"{facts.get('general.architecture')}.context_length")
    return found if isinstance(found, int) and found > 0 else None


def read_shape(path: Path) -> ModelShape:
    """Read the shape of a model, with all parts if it is split. Raises ModelError if a file is damaged."""
    facts, parameters, size = _read_part(path)
    if split := FIRST_PART.search(path.name):
        for number in range(2, int(split[1]) + 1):
            part = path.with_name(f"{path.name[: split.start()]}-{number:05}-of-{split[1]}.gguf")
            _, more_parameters, more_bytes = _read_part(part)
            parameters, size = parameters + more_parameters, size + more_bytes
    try:
        return ModelShape(facts, parameters, size)
    except ValueError as error:
        raise ModelError(f"{path} cannot be assessed: {error}.", action="Name the file of a language model.") from error


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ModelError(
            f"{path} is not a valid GGUF model: {why}.", action="Check the path, or download it again."
        ) from error


def _read_part(path: Path) -> tuple[dict[str, Any], int, int]:
    """Read the metadata of a file, its number of parameters and its size."""
    with _explain_damage(path), path.open("rb") as file:
        tensors, keys = _read_header(file)
        facts = _read_facts(file, keys)
        entries = [_read_tensor(file) for _ in range(tensors)]
        size = path.stat().st_size
        if any(file.tell() + offset >= size for _, offset in entries):
            raise ValueError("it ends before its last weights")
        return facts, sum(parameters for parameters, _ in entries), size


def _read_header(file: BinaryIO) -> tuple[int, int]:
    """Return the numbers of tensors and of keys."""
    if file.read(4) != MAGIC:
        raise ValueError("it does not start with GGUF")
    _, tensors, keys = struct.unpack("<IQQ", _read_exactly(file, 20))
    if tensors > MAX_TENSORS or keys > MAX_KEYS:
        raise ValueError("it says it has too many tensors or keys")
    return tensors, keys


def _read_facts(file: BinaryIO, keys: int, *, stops_at_window: bool = False) -> dict[str, Any]:
    """Read keys and values, all or up to the context length, which precedes the tokenizer's long lists."""
    facts: dict[str, Any] = {}
    for _ in range(keys):
        key = _read_string(file)
        facts[key] = _read_value(file, *struct.unpack("<I", _read_exactly(file, 4)))
        if stops_at_window and key.endswith(".context_length") and "general.architecture" in facts:
            break
    return facts


def _read_tensor(file: BinaryIO) -> tuple[int, int]:
    """Read a tensor's entry and return its number of parameters and the place of its weights."""
    _read_string(file)
    (dimensions,) = struct.unpack("<I", _read_exactly(file, 4))
    if dimensions > 4:
        raise ValueError(f"a tensor has {dimensions} dimensions")
    sizes = struct.unpack(f"<{dimensions}Q", _read_exactly(file, 8 * dimensions))
    return math.prod(sizes), struct.unpack("<IQ", _read_exactly(file, 12))[1]


def _read_value(file: BinaryIO, kind: int) -> Any:
    """Read a value. Lists of texts, and lists longer than a model has layers, are skipped and read as None."""
    if kind == STRING:
        return _read_string(file)
    if kind == ARRAY:
        inner, length = struct.unpack("<IQ", _read_exactly(file, 12))
        if length > MAX_ENTRIES or inner == ARRAY:
            raise ValueError("a list in it is too long")
        if inner == STRING:
            for _ in range(length):
                file.seek(int.from_bytes(_read_exactly(file, 8), "little"), 1)
            return None
        if inner in SCALARS and length > MAX_LAYERS:
            file.seek(length * struct.calcsize(SCALARS[inner]), 1)
            return None
        return [_read_value(file, inner) for _ in range(length)]
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
