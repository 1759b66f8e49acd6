"""A streamed answer put together: text as it comes, calls out of their fragments, counts at the end."""

from typing import Any

import pytest

from ollm.domain.context import Usage
from ollm.domain.errors import ModelError
from ollm.providers import openai_compatible as openai_messages
from ollm.providers.base import CallPiece, FinishPiece
from ollm.providers.openai_compatible import StreamAssembler


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def fragment(arguments: Any = "", name: str = "", **more: Any) -> dict[str, Any]:
    return delta(tool_calls=[{"function": {"name": name, "arguments": arguments}, **more}])


def assemble(*chunks: dict[str, Any]) -> tuple[StreamAssembler, list[Any]]:
    assembler = StreamAssembler()
    return assembler, [piece for chunk in chunks for piece in assembler.add_chunk(chunk)]


def calls(*chunks: dict[str, Any]) -> list[tuple[str, Any]]:
    assembler, _ = assemble(*chunks)
    return [(piece.name, piece.arguments) for piece in assembler.finish() if isinstance(piece, CallPiece)]


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ([fragment('{"a"', "ls", index=0, id="x"), fragment(":1}", index=0)], [("ls", {"a": 1})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("{}", "b", index=1, id="y")], [("a", {}), ("b", {})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("{}", "b", index=0, id="y")], [("a", {}), ("b", {})]),
        ([fragment("{}", "a", index=0, id="x"), fragment("", index=0, id="y")], [("a", {})]),
        ([fragment("{", "a", id="x"), fragment("}"), fragment("{}", "b", id="y")], [("a", {}), ("b", {})]),
        ([fragment("{", "a"), fragment("}")], [("a", {})]),
        ([fragment({"a": 1}, "ls", index=0)], [("ls", {"a": 1})]),
        ([fragment('{"a":', "ls", index=0)], [("ls", '{"a":')]),
        ([fragment(name="read_"), fragment(name="file")], [("read_file", {})]),
    ],
)
def test_calls_are_put_together_from_their_fragments(chunks: list[dict], found: list[tuple[str, Any]]) -> None:
    assert calls(*chunks) == found


def test_a_call_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_messages, "MAX_CALL_CHARACTERS", 10)
    assembler, _ = assemble(fragment("12345678", "ls", index=0))
    with pytest.raises(ModelError) as caught:
        assembler.add_chunk(fragment("9", index=0))
    assert caught.value.message == "The model server sent a tool call that does not end."


def test_very_many_calls_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_messages, "MAX_CALLS", 2)
    assembler, _ = assemble(fragment("{}", "a", index=0), fragment("{}", "b", index=1))
    with pytest.raises(ModelError):
        assembler.add_chunk(fragment("{}", "c", index=2))


@pytest.mark.parametrize(
    ("chunks", "usage", "counts"),
    [
        ([{"usage": {"prompt_tokens": 7, "completion_tokens": 3}}], (7, 3, 0), False),
        (
            [{"usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}],
            (7, 3, 4),
            True,
        ),
        ([{"usage": {"prompt_tokens_details": {"cached_tokens": 0}}}], (0, 0, 0), True),
        ([{"timings": {"prompt_n": 5, "cache_n": 2, "predicted_n": 3}}], (7, 3, 2), True),
        ([{"usage": {"prompt_tokens": 7}}, {"usage": {"completion_tokens": 3}}, {}], (7, 3, 0), False),
        ([{"usage": None, "timings": "x"}], (0, 0, 0), False),
    ],
)
def test_counts_come_from_usage_or_timings(chunks: list[dict], usage: tuple[int, int, int], counts: bool) -> None:
    assembler, _ = assemble(*chunks)
    [end] = assembler.finish()

    prompt, completion, reused = usage
    assert end == FinishPiece(
        "unknown", Usage(prompt_tokens=prompt, completion_tokens=completion, reused_tokens=reused), counts
    )
