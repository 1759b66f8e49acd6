"""What has been learnt about a model on a server, kept between runs."""

from __future__ import annotations

from typing import Literal

from ollm.domain.struct import Data

CallForm = Literal["unknown", "native", "blocks", "text", "constrained", "none"]
ResultForm = Literal["tool", "user"]
WrittenForm = Literal["fence", "tag", "json"]
TINY_BELOW_PARAMETERS = 1e9  # a model that is smaller copies and goes on: each step is named to it


class ModelFacts(Data, frozen=True):
    """Learnt per server and model; every field has a safe default, so an unknown model works too."""

    key: str  # "{provider}|{base_url}|{model}"
    call_form: CallForm = "unknown"
    written_form: WrittenForm = "fence"  # how it writes calls as text
    result_form: ResultForm = "tool"
    takes_tools: bool = True  # False: the server refuses tools for this model, they are listed in the prompt
    binds_answers: bool = True  # False: the server ignores response_format, so no call can be bound to a schema
    window: int | None = None
    served_window: int | None = None  # what the server turned out to serve where it said or was set to `said_window`
    said_window: int | None = None
    token_factor: float = 1.0
    token_samples: int = 0
    max_tools: int | None = None
    prefill_per_second: float | None = None
    decode_per_second: float | None = None
    verbatim_edits: bool | None = None
    probed: str | None = None  # when, ISO 8601
    parameters: float | None = None  # how many it has, as its server or its name says
    first_form: CallForm | None = None  # how a first conversation begins; kept where a set window spares the asking

    @property
    def is_tiny(self) -> bool:
        """Everything that is done otherwise for the smallest models hangs on this."""
        return self.parameters is not None and self.parameters < TINY_BELOW_PARAMETERS

    @property
    def forms(self) -> ModelFacts:
        """Nothing but how it calls and takes results: what decides the form in which a request is sent."""
        return ModelFacts(
            key="",
            call_form=self.call_form,
            written_form=self.written_form,
            result_form=self.result_form,
            takes_tools=self.takes_tools,
        )
