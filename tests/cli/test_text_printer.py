"""A turn as text: the answer on stdout, all else on stderr, and the exit code it ends with."""

import pytest

from ollm.cli.text_printer import TextPrinter
from ollm.domain.errors import ExitCode
from ollm.domain.events import AnyEvent, TextDelta, ToolFinished, ToolStarted, TurnFinished
from ollm.domain.tools import ErrorInfo, ToolResult


def started(call: str = "1") -> ToolStarted:
    return ToolStarted(call_id=call, name="read_file", args={}, summary="Read a.py")


def finished(status: str, call: str = "1") -> ToolFinished:
    error = ErrorInfo(type="Denied", message="Not run.") if status == "denied" else None
    return ToolFinished(call_id=call, name="read_file", status=status, result=ToolResult(llm_content="x", error=error))


def shown(*events: AnyEvent) -> TextPrinter:
    printer = TextPrinter()
    for event in events:
        printer.show(event)
    printer.close("")
    return printer


def test_a_blank_line_goes_between_two_messages(capsys: pytest.CaptureFixture[str]) -> None:
    printer = shown(
        TextDelta(text="One\x1b[31m."), started(), finished("ok"), TextDelta(text="\n\nTw"), TextDelta(text="o.")
    )

    said = capsys.readouterr()
    assert said.out == "One[31m.\n\nTwo.\n"
    assert said.err == "· Read a.py\n"
    assert printer.exit_code == ExitCode.DONE


def test_a_turn_whose_calls_were_all_denied_is_not_done(capsys: pytest.CaptureFixture[str]) -> None:
    denied = shown(started(), finished("denied"), TextDelta(text="Sorry."))
    half = shown(started(), finished("denied"), started("2"), finished("ok", "2"))
    failed = shown(TurnFinished(reason="no-server", message="No server."))

    assert (denied.exit_code, half.exit_code, failed.exit_code) == (
        ExitCode.DENIED,
        ExitCode.DONE,
        ExitCode.NO_SERVER,
    )
    assert "ollm: No server.\n" in capsys.readouterr().err
