"""Where the command ends: exit codes, one line for every error, --debug."""

import errno
import os
import subprocess
from pathlib import Path

import click
import pytest

from ollm.cli import entry as edge
from ollm.cli.commands import command
from ollm.domain.errors import DeniedError, OllmError, UsageError
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside
from tests.covers import covers


def ended_by(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(command, "main", fail)
    return edge.main(list(arguments))


@covers("S10.6")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OllmError("it broke"), 1),
        (UsageError("it broke"), 2),
        (DeniedError("it broke"), 5),
        (KeyboardInterrupt(), 130),
        (click.UsageError("it broke"), 2),
        (BrokenPipeError(), 1),
        (ZeroDivisionError("it broke"), 1),
    ],
)
def test_every_error_ends_in_its_exit_code_without_a_traceback(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(monkeypatch, error) == code
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert ("it broke" in shown.err) == bool(str(error))


def test_debug_shows_the_whole_of_an_unforeseen_error_redacted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "a1B2" * 9

    ended_by(monkeypatch, ZeroDivisionError(f"inside {token}"), "sessions", "--debug")

    shown = capfd.readouterr().err
    assert "Traceback" in shown
    assert "inside" in shown
    assert token not in shown


def test_a_reader_that_goes_away_is_no_error() -> None:
    writer = subprocess.Popen([SCRIPT, "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.close()
    _, errors = writer.communicate(timeout=60)

    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors


@covers("S10.6", "D645")
def test_an_error_is_one_line_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended_by(monkeypatch, OllmError("the file a.json is broken.", action="Run `ollm sessions check`."))

    assert capfd.readouterr().err == "ollm: the file a.json is broken.\n  Run `ollm sessions check`.\n"


def test_a_file_the_system_refuses_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    error = OSError(errno.EACCES, "Permission denied", "/some/file")

    assert ended_by(monkeypatch, error) == 1
    assert capfd.readouterr().err == (
        "ollm: /some/file cannot be used: Permission denied.\n  Check its permissions and the room on the disk.\n"
    )


def test_a_home_that_cannot_be_written_is_said_with_another_way(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no directory")

    done = ollm("config", "set", "provider.model", "x", home=tmp_path / "home")

    assert done.returncode == 1
    assert done.stderr.endswith(" Or set OLLM_HOME to another directory.\n"), done.stderr


def test_a_full_disk_behind_the_output_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = os.dup(1)
    try:
        assert ended_by(monkeypatch, OSError(errno.ENOSPC, "No space left on device")) == 1
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr().err == (
        "ollm: Cannot write the output: No space left on device.\n  Check the file or disk it is written to.\n"
    )


def test_everyday_lines_do_without_click(inside: Inside) -> None:
    assert inside.run("sessions", "list", "--json").out == "[]\n"
    assert "--limit" in inside.fail("sessions", "list", "--limit", "0", code=2)
    assert "The prompt is empty." in inside.fail("-p", "-", code=2)


def test_an_error_is_kept_in_the_log(inside: Inside) -> None:
    inside.configure("{}\n")
    inside.fail("sessions", "rename", "zzzzzzzz", "x", code=2)

    assert "'zzzzzzzz' is not a session id." in (inside.home / "logs" / "ollm.log").read_text()


def test_an_error_drives_no_terminal(inside: Inside) -> None:
    said = inside.fail("sessions", "rename", "\x1b[31mzz\u202e", "x", code=2)

    assert "\\x1b[31m" in said
    assert not {"\x1b", "\u202e"} & set(said)
