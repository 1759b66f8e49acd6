"""Events on the wire: a type, three common fields, and nothing lost on the way."""

import typing

import msgspec
import pytest

from ollm.domain.context import Usage
from ollm.domain.events import AnyEvent, Notice, TextDelta, TurnFinished

KINDS = typing.get_args(AnyEvent)


def test_an_event_names_its_type_and_writes_camel_case() -> None:
    written = msgspec.to_builtins(TurnFinished(session_id="s", seq=4, reason="answered", usage=Usage(prompt_tokens=9)))

    assert written["type"] == "turn-finished"
    assert (written["sessionId"], written["seq"]) == ("s", 4)
    assert written["usage"] == {"promptTokens": 9, "completionTokens": 0, "reusedTokens": 0}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_two_events_share_a_type(kind: type[msgspec.Struct]) -> None:
    tags = [other.__struct_config__.tag for other in KINDS]

    assert tags.count(kind.__struct_config__.tag) == 1
    assert kind.__struct_config__.tag == kind.__struct_config__.tag.lower()


def test_an_event_reads_back_as_what_it_was() -> None:
    for event in (TextDelta(text="é\u0000"), Notice(level="warning", text="x", seq=7)):
        assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event
