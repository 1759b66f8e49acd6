"""Contexts to compress, and models that summarise them well or badly."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hypothesis import strategies as st

from ollm.domain.errors import ModelError
from ollm.domain.messages import PromptMessage, ToolCall

SYSTEM = PromptMessage(role="system", content="You are a coding agent. Be brief.")
MINUTES = "Goal:\n- mend the build\nFiles and their state:\n- src/part_1.py and others looked at, nothing written yet"


def user(number: int, text: str) -> PromptMessage:
    return PromptMessage(role="user", content=text, sources=(number,))


def assistant(number: int, text: str, *calls: ToolCall) -> PromptMessage:
    return PromptMessage(role="assistant", content=text, calls=calls, sources=(number,))


def result(number: int, call: str, text: str, name: str = "read_file", *, failed: bool = False) -> PromptMessage:
    return PromptMessage(role="tool", content=text, call_id=call, tool_name=name, sources=(number,), failed=failed)


def turn(number: int, asked: str, output: str) -> list[PromptMessage]:
    """A user message, a call, its result and an answer: four messages from `number` on."""
    call = ToolCall(id=f"c{number}", name="read_file", arguments={"path": f"src/part_{number}.py"})
    return [
        user(number, asked),
        assistant(number + 1, "I shall read it.", call),
        result(number + 2, call.id, output),
        assistant(number + 3, f"Part {number} does what was asked. " * 3),
    ]


def talk(turns: int, lines: int = 40) -> list[PromptMessage]:
    spoken = [
        message
        for place in range(turns)
        for message in turn(
            place * 4 + 1, f"Look at part {place}", "\n".join(f"line {n} of it = {n * place}" for n in range(lines))
        )
    ]
    return [SYSTEM, *spoken]


words = st.text(st.sampled_from("abcdefg hijk lmno\n"), max_size=400)


@st.composite
def contexts(draw: st.DrawFn) -> list[PromptMessage]:
    """A system prompt and turns of any shape: calls with one to three results, long and short texts."""
    messages = [SYSTEM]
    for _ in range(draw(st.integers(1, 12))):
        number = len(messages)
        messages.append(user(number, draw(words)))
        for _ in range(draw(st.integers(0, 2))):
            calls = tuple(
                ToolCall(id=f"c{len(messages)}-{place}", name="ls", arguments={})
                for place in range(draw(st.integers(1, 3)))
            )
            messages.append(assistant(len(messages), draw(words), *calls))
            messages += [result(len(messages) + place, call.id, draw(words) * 3) for place, call in enumerate(calls)]
        messages.append(assistant(len(messages), draw(words)))
    return messages


async def good(asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
    yield MINUTES[:20]
    yield MINUTES[20:]


async def broken(asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
    raise ModelError("The server broke off.")
    yield ""
