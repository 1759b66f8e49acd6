"""Log files and their lines."""

import json
import logging
import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ollm.system.logs import LogFile, start_logging
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user

Lines = Callable[[], list[dict[str, object]]]


def redact(text: str) -> str:
    return text.replace("hunter2", "********")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "ollm.log"


@pytest.fixture
def lines(file: Path) -> Iterator[Lines]:
    stop = start_logging(file, "INFO", redact)
    yield lambda: [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    stop()


@covers("D633", "D635", "D636", "D637", "D638")
def test_the_levels_are_error_warn_info_and_debug(file: Path) -> None:
    stop = start_logging(file, "DEBUG", redact)
    log = logging.getLogger("ollm.loop_detection")
    for level in ("error", "warning", "info", "debug"):
        getattr(log, level)("x")
    stop()

    levels = [json.loads(line)["level"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert levels == ["ERROR", "WARN", "INFO", "DEBUG"]


@covers("D638")
def test_what_is_below_the_level_is_not_written_and_costs_no_file(file: Path) -> None:
    stop = start_logging(file, "WARNING", redact)
    logging.getLogger("ollm.x").info("quiet")
    logging.getLogger("library").info("quiet")
    stop()

    assert not file.exists()


def test_nothing_goes_to_stdout_and_debug_goes_to_stderr_redacted(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stop = start_logging(file, "INFO", redact, debug=True)
    logging.getLogger("ollm.services.budget").debug("hunter2 counted", extra={"operation": "count"})
    stop()

    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == "debug budget.count: ******** counted\n"
    assert json.loads(file.read_text(encoding="utf-8"))["level"] == "DEBUG"


def test_warnings_of_libraries_are_kept_too(lines: Lines, capfd: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("asyncio").error("Task exception was never retrieved")

    assert lines()[0]["service"] == "asyncio"
    assert capfd.readouterr().err == ""


def test_files_are_the_users_alone_and_five_at_most(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "logs" / "ollm.log", largest=100)
    for number in range(100):
        log.append(f"{number:03} {'x' * 46}\n".encode())

    names = sorted(path.name for path in log.path.parent.iterdir())
    assert names == ["ollm.log.1", "ollm.log.2", "ollm.log.3", "ollm.log.4"]
    newest = (log.path.parent / "ollm.log.1").read_text(encoding="utf-8")
    assert newest.splitlines()[-1].startswith("099")
    assert {path.stat().st_mode & 0o777 for path in log.path.parent.iterdir()} == {0o600}
    assert log.path.parent.stat().st_mode & 0o777 == 0o700


def _write_many(path: Path, name: str) -> None:
    log = LogFile(path, largest=10_000)
    for number in range(300):
        log.append(f"{name} {number}\n".encode())


def test_processes_that_write_at_once_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "ollm.log"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(path, f"p{number}")) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    written = [line for file in tmp_path.iterdir() for line in file.read_text(encoding="utf-8").splitlines()]
    assert sorted(written) == sorted(f"p{worker} {number}" for worker in range(4) for number in range(300))


def test_a_log_that_cannot_be_written_is_said_once_and_stops_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def body(directory: Path) -> None:
        directory.chmod(0o500)
        stop = start_logging(directory / "logs" / "ollm.log", "INFO", redact)
        logging.getLogger("ollm.x").warning("one")
        logging.getLogger("ollm.x").warning("two")
        stop()
        assert list(directory.iterdir()) == []

    as_ordinary_user(body)
    shown = capfd.readouterr()
    assert shown.err.count(": Permission denied") == 1
    assert shown.out == ""


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ollm.log").symlink_to(tmp_path / "victim")
    stop = start_logging(tmp_path / "ollm.log", "INFO", redact)
    logging.getLogger("ollm.x").warning("one")
    stop()

    assert not (tmp_path / "victim").exists()
    assert "cannot write the log" in capfd.readouterr().err


@covers("D633", "D635", "D636", "D637", "D638", "D640", "D642", "D643", "D644", "D645")
def test_a_line_has_level_service_operation_message_type_context_and_action(lines: Lines) -> None:
    log = logging.getLogger("ollm.services.chat_recording.service")
    try:
        raise OSError(28, "No space left on device")
    except OSError:
        log.exception(
            "%s could not be written",
            "a.json",
            extra={"operation": "record", "context": {"sessionId": "s1", "path": "/a.json"}, "action": "Make room."},
        )

    (line,) = lines()
    assert list(line) == ["time", "level", "service", "operation", "message", "errorType", "context", "action"]
    assert line["time"].endswith("Z")
    assert (line["level"], line["service"], line["operation"]) == ("ERROR", "chat_recording", "record")
    assert (line["message"], line["errorType"], line["action"]) == (
        "a.json could not be written",
        "OSError",
        "Make room.",
    )
    assert line["context"]["sessionId"] == "s1"
    assert "test_logs.py" in line["context"]["trace"]


@covers("S10.7", "P28")
def test_every_part_of_a_line_is_redacted(lines: Lines, file: Path) -> None:
    log = logging.getLogger("ollm.x")
    context = {"a": "hunter2", "b": ["hunter2", {"c": "hunter2"}], "tokens": 3}
    try:
        raise ValueError("hunter2")
    except ValueError:
        log.exception("hunter2 %s", "hunter2", extra={"operation": "hunter2", "context": context, "action": "hunter2"})

    text = file.read_text(encoding="utf-8")
    assert "hunter2" not in text
    assert lines()[0]["context"]["tokens"] == 3


def test_a_line_stays_one_line_whatever_is_logged(lines: Lines) -> None:
    log = logging.getLogger("ollm.x")
    log.warning("a\nb\u2028c\udcff\x1b[0m", extra={"context": {"object": object(), "deep": [[[[[[[[1]]]]]]]]}})
    log.warning("x" * 100_000)
    log.warning("last")

    found = lines()
    assert [line["message"][:4] for line in found[:2]] == ["a\nb\u2028", "xxxx"]
    assert found[-1]["message"] == "last"
    assert len(found[1]["message"]) < 9_000


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("apiKey", "x", "********"),
        ("api-key", "x", "********"),
        ("AUTH_TOKEN", "x", "********"),
        ("password", "x", "********"),
        ("monkey_business", "x", "x"),
        ("token", 5, 5),
        ("keyboard", "x", "x"),
    ],
)
def test_a_value_whose_name_says_that_it_is_secret_is_not_written(
    lines: Lines, key: str, value: object, shown: object
) -> None:
    logging.getLogger("ollm.x").warning("m", extra={"context": {key: value}})

    assert lines()[0]["context"] == {key: shown}
