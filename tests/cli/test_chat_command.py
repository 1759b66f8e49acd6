"""Options and input of the chat command."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from ollm.cli.chat import chat, read_question
from ollm.cli.start import ChatArguments
from ollm.domain.errors import UsageError
from tests.cli.inside import Inside

EMPTY = "The prompt is empty."
HINT = "Give a prompt: ollm -p 'explain this repository'."


def pipe(patch: pytest.MonkeyPatch, data: bytes) -> None:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


@pytest.mark.parametrize(
    ("prompt", "piped", "question"),
    [
        ("explain", b"", ("explain", "")),
        ("explain", b"log\n", ("explain", "log\n")),
        ("-", b"from a pipe", ("from a pipe", "")),
        ("", b"from a pipe", ("from a pipe", "")),
        (" \n", b"x", ("x", "")),
        ("a", b"\xff", ("a", "\ufffd")),
    ],
)
def test_the_text_and_what_is_piped_in(
    monkeypatch: pytest.MonkeyPatch, prompt: str, piped: bytes, question: tuple[str, str]
) -> None:
    pipe(monkeypatch, piped)

    found = read_question(prompt)
    assert (found.text, found.piped, found.typed) == (*question, bool(prompt.strip(" -\n")))


@pytest.mark.parametrize(("prompt", "piped"), [("-", b""), ("-", b" \n"), ("", b""), (" ", b"\n")])
def test_nothing_to_say_is_refused(monkeypatch: pytest.MonkeyPatch, prompt: str, piped: bytes) -> None:
    pipe(monkeypatch, piped)
    with pytest.raises(UsageError) as found:
        read_question(prompt)

    assert (found.value.message, found.value.action) == (EMPTY, HINT)


def test_two_prompts_are_one_too_many(inside: Inside) -> None:
    said = inside.fail("-p", "one", "two two", code=2)

    assert "-p already has a prompt; 'two two' is a second one." in said
    assert "Quote it as one text." in said


def test_the_daemon_is_for_the_chat(inside: Inside) -> None:
    said = inside.fail("-p", "one", "--daemon", code=2)

    assert "--daemon needs the interactive chat." in said
    assert "Drop it when you use -p." in said


def test_without_a_terminal_a_text_is_asked_once_and_none_is_read_from_the_pipe(inside: Inside) -> None:
    inside.configure("provider: {type: openai, baseUrl: 'http://127.0.0.1:9/v1', model: m}\n")

    assert inside.run("chat", "hello", "--new").code == 3
    assert EMPTY in inside.fail("chat", "--new", code=2)


def options(**given: Any) -> dict[str, Any]:
    return {**chat.make_context("chat", []).params, **given}


@pytest.mark.parametrize(
    "given", [{"new": True, "continue_": True}, {"new": True, "session": "abcd"}, {"session": "", "continue_": True}]
)
def test_only_one_way_to_begin_is_taken(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Use only one of --new, --resume and --continue") as found:
        ChatArguments.from_options(options(workspace=tmp_path, **given))
    assert found.value.action == "Give one of them."
