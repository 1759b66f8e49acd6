"""A session as people read it in a terminal."""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ollm.cli.sessions.view import render_session, render_text, skip_style
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ErrorInfo
from tests.store.sessions.support import AT, Home, call, said


@given(text=st.text())
def test_no_text_drives_the_terminal(text: str) -> None:
    shown = "".join(render_text(text))

    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert shown.endswith("\n")


async def record(home: Home, **result: Any) -> str:
    service = home.service()
    session_id = await service.create_session("qwen3\x1b", "ollama", workspace="/w")
    await service.record_message(session_id, said("Look."))
    parts = (
        ThinkingPart(text="hm\nso"),
        TextPart(text="Done."),
        ImagePart(media_type="image/png", data="AAAA"),
        ToolCallPart(id="c1"),
    )
    await service.record_message(session_id, Message(role="assistant", parts=parts, timestamp=AT, interrupted=True))
    await service.record_tool_call(session_id, call(message_id=2, **result))
    await service.close_session(session_id)
    return session_id


def render(home: Home, session_id: str, *, unfold: bool = False) -> list[str]:
    with home.files.open_stream(session_id) as stream:
        return "".join(render_session(stream, unfold=unfold, style=skip_style)).split("\n")


def test_everything_is_shown_in_order(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session_id = asyncio.run(record(home, result="one\ntwo"))
    lines = render(home, session_id)

    assert lines[1] == f"{session_id}  qwen3\\x1b (ollama)"
    assert f"#2 assistant (interrupted)  {AT}" in lines
    at = lines.index("  ~ hm")
    assert lines[at : at + 5] == [
        "  ~ hm",
        "  ~ so",
        "Done.",
        "  (an image, image/png)",
        "  ▸ ls(path=.) → ok, 2 lines",
    ]
    assert lines[-2:] == ["2 messages", ""]


def test_a_call_is_unfolded_with_arguments_and_result(tmp_path: Path) -> None:
    home = Home(tmp_path)
    lines = render(home, asyncio.run(record(home, result="one")), unfold=True)

    assert "  ▾ ls(path=.) → ok, 1 line" in lines
    assert "    │ one" in lines
    assert any(line.startswith("    ") and "path" in line for line in lines)


def test_long_arguments_are_cut_and_an_error_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    failed = {
        "result": "",
        "args": {"path": "x" * 200},
        "error": ErrorInfo(type="NotFound", message="no such\x1b file"),
    }
    lines = render(home, asyncio.run(record(home, **failed)))
    (line,) = [line for line in lines if line.startswith("  ▸")]

    assert f"ls(path={'x' * 64}…)" in line
    assert "no such\\x1b file" in line
