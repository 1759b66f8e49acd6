"""Interface of a model server: a stream of pieces for a request, and a few facts."""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from string import ascii_letters
from typing import Any, Literal

import msgspec

from ollm.config.settings import ModelSettings
from ollm.domain.context import Usage
from ollm.domain.errors import ModelError, UsageError
from ollm.domain.lazy import compile_late
from ollm.domain.messages import JsonObject, PromptMessage, ThinkingField, ToolCall
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema

MAX_WIRE_ID_CHARACTERS = 128
FinishReason = Literal["stop", "length", "tool_calls", "unknown"]
LoadState = Literal["", "loaded", "sleeping", "loading", "downloading", "unloaded"]  # Empty if the server does not say.
_read_role = attrgetter("role")


class ChatRequest(Data, frozen=True):
    """One request to the model. Servers that support `window` get it with every request (`num_ctx`). `settings` are
    the user's for this model; a field of the request itself wins over them."""

    model: str
    messages: tuple[PromptMessage, ...]
    window: int
    tools: tuple[ToolSchema, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    response_schema: JsonObject | None = None
    settings: ModelSettings | None = None
    verbatim: bool = False  # To test a template, adjacent user messages stay separate.


class Piece(msgspec.Struct, frozen=True, tag_field="type"):
    """Element of a stream."""


class TextPiece(Piece, frozen=True, tag="text"):
    text: str


class ThinkingPiece(Piece, frozen=True, tag="thinking"):
    """Thinking. With a `field` it goes back to the server in that field; `details` are its own form of it, whole."""

    text: str
    field: ThinkingField = ""
    details: tuple[JsonObject, ...] = ()


class WrittenPiece(Piece, frozen=True, tag="written"):
    """The model's verbatim text, if calls are parsed from it: recorded, not shown."""

    text: str


class CallPiece(Piece, frozen=True, tag="call"):
    """A complete tool call; `arguments` as the model wrote them, parsed if possible."""

    name: str
    arguments: JsonObject | str
    id: str = ""  # The server's id, or "" if it gave none.


class ProgressPiece(Piece, frozen=True, tag="progress"):
    """Progress of reading the prompt; `processed` includes the `cached` tokens, which are not read again.
    `seconds_left` is set if the model's speed is known. While `queued`, `total` counts the requests ahead."""

    processed: int = 0
    total: int = 0
    stage: Literal["queued", "connecting", "loading", "reading"] = "reading"
    seconds_left: float | None = None
    cached: int = 0


class FinishPiece(Piece, frozen=True, tag="finish"):
    """The last piece of a stream. `usage` holds the server's counts, 0 if not reported; `counts_reuse` is True if the
    server reports its prompt cache reuse; `cut` is discarded text after the calls. `limit` is our token limit for one
    answer, if that limit ended it. `read_seconds` is the time it read the prompt by the server's clock, 0 if not
    reported."""

    reason: FinishReason = "unknown"
    usage: Usage = Usage()
    counts_reuse: bool = True
    cut: str = ""
    limit: int = 0
    read_seconds: float = 0.0
    truncated: bool = False  # True if the server reports that it cut the prompt.


AnyPiece = TextPiece | ThinkingPiece | WrittenPiece | CallPiece | ProgressPiece | FinishPiece
PieceStream = AsyncGenerator[AnyPiece, None]


class ModelInfo(Data, frozen=True):
    """A model a server offers."""

    name: str
    aliases: tuple[str, ...] = ()
    state: LoadState = ""
    size: int | None = None
    window: int | None = None  # The served window, if the server reports it.
    window_why: str = ""
    trained_window: int | None = None
    vision: bool = False
    thinking: bool = False
    tools: bool | None = None
    parameters: int | None = None
    template: str = ""
    architecture: str = ""
    title: str = ""  # The title in the model's own file.
    file: str = ""  # The path on the server's machine.
    metadata: JsonObject | None = None
    sampling: JsonObject | None = None  # The server's default sampling values, under the names of the settings.
    build: str = ""

    @property
    def mark(self) -> str:
        """A hash by which a changed server is recognized, or "" for one that says neither template nor window."""
        told = f"{self.template}\0{self.file}\0{self.build}\0{self.window}"
        return f"{crc32(told.encode(errors='replace')):08x}" if self.template or self.window else ""


class Provider:
    """A model server. Set `name` and `base_url`, write `stream` and `models`; the other defaults suit a minimal server.

    Methods raise NoServerError, ModelError or ModelTimeoutError. Closing a stream early (`contextlib.aclosing`) stops
    the server's work at once.
    """

    name: str = ""  # One of "ollama", "openai" and "embedded", or an extension's own name.
    base_url: str = ""

    def __init__(self, context: object = None) -> None:
        """`context` is the ExtensionContext of a provider that an extension defines."""
        self.context = context

    def stream(self, request: ChatRequest) -> AsyncGenerator[AnyPiece, None]:
        """Stream text and calls as they arrive, and one FinishPiece at the end. Every provider must implement it; the
        error shows the author of an extension what is missing."""
        raise NotImplementedError(f"{type(self).__name__} has no stream(request): write it.")

    async def models(self) -> list[ModelInfo]:
        """List the models the server offers. Every provider must implement it."""
        raise NotImplementedError(f"{type(self).__name__} has no models(): write it.")

    async def describe(self, model: str) -> ModelInfo:
        """Describe one model. Raises UnknownModelError, which names the closest model."""
        found = {info.name: info for info in await self.models()}
        return found.get(model) or ModelInfo(name=model)

    async def prepare(self, model: str, announce: Callable[[str], object]) -> str:
        """Load a model whose window is known only then, and return the server's name for it. `announce` is told what
        takes so long."""
        return model

    async def set_loaded(self, model: str, *, loaded: bool, window: int = 0) -> None:
        """Load a model into the server's memory, with this window if the server takes one, or unload it."""
        raise ModelError(f"The server at {self.base_url} does not load models on request.", action="Do it there.")

    async def count_prompt(self, request: ChatRequest) -> int | None:
        """Count the tokens of the whole request as the model reads it, or return None if the server cannot count."""
        return None

    async def render(self, request: ChatRequest) -> str | None:
        """Render the request with the model's own template, or return None if the server does not support that."""
        return None

    def allow(self, seconds: float) -> None:
        """Wait at least this long for the first token of an answer."""

    async def close(self) -> None:
        """Close connections and processes."""


BaseProvider = Provider  # Extensions derive from this name.


def list_missing_parts(provider: object) -> list[str]:
    """List the parts of `Provider` that an object lacks."""
    return [part for part in vars(Provider) if not part.startswith("_") and not hasattr(provider, part)]


FILE_ENDINGS = compile_late(r"(?:-\d{5}-of-\d{5})?\.gguf$|-gguf(?=:|$)|:latest$", re.IGNORECASE)


def name_model(given: str) -> str:
    """Name a model without its folder or owner, the type of its file and a default tag."""
    return FILE_ENDINGS.sub("", given.replace("\\", "/").rpartition("/")[2]) or given


def is_called(model: str, name: str) -> bool:
    """Return True if a person who writes `name` means the model that the server calls `model`."""
    same = name.removesuffix(":latest") == model.removesuffix(":latest")
    return same or ("/" not in name and name_model(name) == name_model(model))


def name_models(given: Sequence[str]) -> list[str]:
    """Name each model in short, or in full where two share the short name."""
    short = [name_model(name) for name in given]
    return [name if short.count(brief) > 1 else brief for name, brief in zip(given, short, strict=True)]


def find_model(offered: Sequence[ModelInfo], name: str) -> ModelInfo | None:
    """Find the model that a server offers under this name. Raises UsageError if it is a short name of several."""
    found = [info for info in offered if name in (info.name, *info.aliases)]
    found = found or [info for info in offered if is_called(info.name, name)]
    if len(found) > 1 and name not in (found[0].name, *found[0].aliases):
        names = " or ".join(info.name for info in found)
        raise UsageError(f"{name} can be {names}.", action="Write the full name.")
    return found[0] if found else None


SAMPLING_NAMES = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "min_p": "minP",
    "repeat_penalty": "repeatPenalty",
}


def read_sampling(found: Mapping[str, Any]) -> JsonObject:
    """Read a server's own sampling settings; it takes them from the model's file or card, or has them built in."""
    known = {ours: found.get(name) for name, ours in SAMPLING_NAMES.items()}
    return {name: round(value, 4) for name, value in known.items() if isinstance(value, int | float)}


def as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or an empty list for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_thinking(value: Any) -> str:
    """Read thinking. A value that is not text is kept as JSON, so that nothing is lost."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode() if value else ""


def join_details(entries: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """Join the streamed pieces of each block of thinking. Everything else in them stays as it came."""
    joined: list[JsonObject] = []
    for entry in entries:
        last = joined[-1] if joined else {}
        same = {"type", "index", "id"} & (last.keys() | entry.keys())
        if last and "text" in last and "text" in entry and all(last.get(key) == entry.get(key) for key in same):
            joined[-1] = {**last, **entry, "text": as_text(last["text"]) + as_text(entry["text"])}
        else:
            joined.append(entry)
    return tuple(joined)


def write_thinking(message: PromptMessage, body: JsonObject) -> None:
    """Add a message's thinking to its body, in the field in which it came."""
    if message.thinking_field == "text" and message.thinking:
        body["content"] = f"<think>{message.thinking}</think>\n\n{message.content}"
    elif message.thinking_field and message.thinking:
        body[message.thinking_field] = message.thinking
    if message.thinking_details:
        body["reasoning_details"] = message.thinking_details


_ESCAPE = compile_late(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def decode_json(data: bytes | str) -> Any:
    """Decode JSON. An escaped half of a surrogate pair and a byte that is no UTF-8 become U+FFFD. Raises
    msgspec.DecodeError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = data.decode(errors="replace") if isinstance(data, bytes) else data
        return msgspec.json.decode(unescape_surrogates(text))


def unescape_surrogates(text: str) -> str:
    """Replace escaped surrogates in JSON with their character, or with U+FFFD if they are unpaired."""
    return _ESCAPE.sub(_unescape, text) if "\\ud" in text or "\\uD" in text else text


def _unescape(found: re.Match[str]) -> str:
    codes = [int(code, 16) for code in found.groups() if code]
    packed = b"".join(code.to_bytes(2, "little") for code in codes)
    return packed.decode("utf-16-le", "replace") if codes else found[0]


def parse_arguments(value: Any) -> JsonObject | str:
    """Parse a call's arguments. Text that is not an object stays unchanged."""
    if isinstance(value, dict):
        return value
    written = as_text(value)
    if not written.strip():
        return {}
    try:
        decoded = decode_json(written)
    except (msgspec.DecodeError, RecursionError):  # The text is not JSON, or is nested too deeply to use.
        return written
    return decoded if isinstance(decoded, dict) else written


def build_functions(tools: tuple[ToolSchema, ...]) -> list[JsonObject]:
    """Build tools in the form that both kinds of server accept."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


class WireIds:
    """The ids that a server reads: its own, or nine letters and digits made from ours if it gave none or one twice.
    The templates of Mistral refuse any other form."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._given: set[str] = set()
        self._made: set[str] = set()

    def add_calls(self, calls: Iterable[ToolCall]) -> None:
        for call in calls:
            new = call.wire_id not in self._given and call.wire_id not in self._made
            if 0 < len(call.wire_id) <= MAX_WIRE_ID_CHARACTERS and new:
                self._given.add(call.wire_id)
                self._names[call.id] = call.wire_id

    def lack(self, messages: Iterable[PromptMessage]) -> bool:
        """Return True if calls have lost the ids by which they were named."""
        return any(call.id in self._names and not call.wire_id for message in messages for call in message.calls)

    def name_call(self, call_id: str) -> str:
        if known := self._names.get(call_id):
            return known
        plain = "".join(filter(str.isalnum, call_id))
        names = (first + f"{plain[1:]:0>8}"[-8:] for first in (plain[:1], *ascii_letters))
        name: str = next(each for each in names if each not in self._given)
        self._made.add(name)
        return name


def merge_user_messages(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Join adjacent user messages."""
    if ("user", "user") not in pairwise(map(_read_role, messages)):
        return list(messages)
    found: list[PromptMessage] = []
    for message in messages:
        if found and message.role == found[-1].role == "user":
            found[-1] = join_messages(found[-1], message)
        else:
            found.append(message)
    return found


def join_messages(first: PromptMessage, second: PromptMessage) -> PromptMessage:
    return msgspec.structs.replace(
        first,
        content=f"{first.content}\n\n{second.content}",
        images=(*first.images, *second.images),
        sources=(*first.sources, *second.sources),
    )
