"""Learned facts about a model on a server, kept between runs."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, convert
from msgspec.structs import replace

from ollm.domain.clock import format_stamp
from ollm.domain.struct import Data

CallForm = Literal["unknown", "native", "blocks", "text", "none"]
ResultForm = Literal["tool", "user"]
WrittenForm = Literal["fence", "tag", "function", "invoke", "mistral", "python", "json"]
ALL_WRITTEN_FORMS: tuple[WrittenForm, ...] = get_args(WrittenForm)
SystemForm = Literal["system", "user"]
ThinkingForm = Literal["none", "separate", "tagged", "opened"]  # The value "opened" has only the closing tag.
ShownThinking = Literal["none", "turn", "session"]  # The template shows the model this part of its earlier thinking.
ServerKind = Literal["llama.cpp", "vllm", "sglang", "lm-studio", "tabbyapi", "ollama", "embedded", "other"]
Stamp = Annotated[str, Meta(max_length=40, pattern=r"^[\dT:.Z+-]*$")]
Fault = Literal["system", "users", "results", "calls", "tools", "parser", "window", "thinking", "prefix"]
CHAT_BELOW_PARAMETERS = 0.4e9  # A smaller model chats without tools, unless a call form is set.


MIN_SPEED_CHANGE = 0.15  # A smaller change, as a share of the known speed, is ignored.


Source = Literal["server", "error", "template", "use", "probe", "card"]
MAX_AGE = timedelta(days=30)


class Learnt(Data, frozen=True):
    """How a fact was learnt, and when: by the server's own figure, its error, its chat template, in use, by a probe, or
    from the card of someone else."""

    source: Source
    at: Stamp


def _average_speed(known: float | None, new: float | None) -> float | None:
    if not known or not new:
        return known or new
    return known if abs(new - known) < MIN_SPEED_CHANGE * known else round((known + new) / 2, 1)


class ModelFacts(Data, frozen=True):
    """Facts learned per server and model. Every field has a safe default, so an unknown model works too."""

    key: str  # The form is "{provider}|{base_url}|{model}".
    call_form: CallForm = "unknown"
    written_form: WrittenForm = "fence"
    result_form: ResultForm = "tool"
    takes_tools: bool = True  # If the server refuses tools for this model, the prompt lists them.
    window: int | None = None
    served_window: int | None = None  # The server turned out to serve this where it named `said_window`.
    said_window: int | None = None
    token_factor: Annotated[float, Meta(gt=0, le=20)] = 1.0
    token_samples: Annotated[int, Meta(ge=0)] = 0
    max_tools: Annotated[int, Meta(ge=1)] | None = None
    prefill_per_second: float | None = None
    decode_per_second: float | None = None
    probed: Stamp | None = None
    parameters: float | None = None  # The server or the model's name tells this number.
    first_form: CallForm | None = None  # A set window needs no question to the server if this is known.
    server: ServerKind | None = None
    system_form: SystemForm = "system"  # With "user", the first user message begins with the system message.
    thinking: ThinkingForm | None = None
    takes_thinking: bool = True  # False if the server refuses messages with their thinking.
    shown_thinking: ShownThinking | None = None
    server_mark: str | None = None  # Identifies template, file, build and window of the inspected server.
    thinking_off: bool | None = None  # True if `thinking: off` stops the thinking.
    reuses_prefix: bool | None = None
    faults: tuple[Fault, ...] = ()
    imported: Stamp | None = None  # The time another user's card was imported; None once measured here.
    learnt: Mapping[str, Learnt] = {}  # The keys are names of fields.

    @property
    def chats_only(self) -> bool:
        return self.call_form == "none" and (self.parameters or CHAT_BELOW_PARAMETERS) < CHAT_BELOW_PARAMETERS

    def forget_server(self) -> "ModelFacts":
        """Forget all but the facts of the model itself and what every answer measures, for a server that changed."""
        kept = {"key", "learnt", "probed", "imported", *MODEL_FIELDS, *MEASURED_FIELDS}
        kept -= {name for name, found in self.learnt.items() if found.source == "template"}
        return self.reset({*self.__struct_fields__} - kept)

    def drop_unproved(self, now: datetime) -> "ModelFacts":
        """Drop facts older than 30 days, and limits that an earlier version may have guessed. Speeds and counts stay:
        every answer corrects them."""
        oldest = format_stamp(now - MAX_AGE)
        dropped = {name for name, found in self.learnt.items() if found.at < oldest} - {*MEASURED_FIELDS}
        if self.probed is None and self.imported is None:
            dropped |= {*GUESSABLE_FIELDS} - self.learnt.keys()
        return self.reset(dropped & {*self.__struct_fields__})

    def reset(self, names: Collection[str]) -> "ModelFacts":
        """Return these facts to what holds for an unknown model."""
        unknown, names = ModelFacts(key=self.key), self.add_forms(names)
        learnt = {name: found for name, found in self.learnt.items() if name not in names}
        return replace(self, **{name: getattr(unknown, name) for name in names}, learnt=learnt)

    def add_forms(self, names: Collection[str]) -> Collection[str]:
        """Add the forms that a refusal of tools brought about, if that is among the names."""
        refused = "takes_tools" in names and not self.takes_tools
        return {*names, "call_form", "result_form"} if refused else names

    def average_speeds(self, read: float | None, write: float | None) -> "ModelFacts":
        """Average the known speeds with the measured ones. A small difference changes nothing, so nothing is saved."""
        read = _average_speed(self.prefill_per_second, read)
        write = _average_speed(self.decode_per_second, write)
        return replace(self, prefill_per_second=read, decode_per_second=write)

    def list_changes(self, before: "ModelFacts") -> dict[str, Any]:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "learnt")
        return {name: value for name, value in fields if value != getattr(before, name)}

    @property
    def forms(self) -> "ModelFacts":
        """Only the call and result forms, which determine how a request is sent."""
        return ModelFacts(
            key="",
            call_form=self.call_form,
            written_form=self.written_form,
            result_form=self.result_form,
            takes_tools=self.takes_tools,
            takes_thinking=self.takes_thinking,
            parameters=self.parameters if self.chats_only else None,
        )


FORMER_FIELDS = frozenset({"bindsAnswers", "sampling", "verbatimEdits"})  # Earlier versions wrote them.


def convert_facts(fields: Mapping[str, Any]) -> ModelFacts:
    """Convert facts from disk, also those of an earlier version. Raises ValidationError."""
    earlier = fields.get("callForm") == "constrained"
    return convert({**fields, **({"callForm": "text"} if earlier else {})}, ModelFacts)


# What a card of someone else tells about the model, and about its template on the same kind of server.
MODEL_FIELDS = ("call_form", "written_form", "max_tools")
TEMPLATE_FIELDS = ("result_form", "system_form", "thinking", "thinking_off")
# What every answer or start measures anew.
MEASURED_FIELDS = (
    "token_factor",
    "token_samples",
    "prefill_per_second",
    "decode_per_second",
    "parameters",
    "first_form",
)
GUESSABLE_FIELDS = ("served_window", "said_window", "takes_tools", "takes_thinking")
# The facts of each line of a card.
CARD_FIELDS = {
    "server": ("server",),
    "calls": ("call_form", "written_form", "result_form"),
    "tools": ("takes_tools", "max_tools"),
    "thinking": ("thinking", "takes_thinking", "shown_thinking", "thinking_off"),
    "speed": ("prefill_per_second", "decode_per_second"),
    "counting": ("token_factor", "token_samples"),
    "window": ("served_window", "said_window", "window"),
    "cache": ("reuses_prefix",),
    "faults": ("faults", "system_form", "server_mark"),
}
