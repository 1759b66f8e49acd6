"""One record as one JSON line."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ollm.system.log_lines import JsonLineFormatter
from ollm.system.logs import start_logging
from tests.covers import covers

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
    assert "test_log_lines.py" in line["context"]["trace"]


@covers("S10.7", "P28")
def test_every_part_of_a_line_is_redacted(lines: Lines, file: Path) -> None:
    log = logging.getLogger("ollm.x")
    context = {"a": "hunter2", "b": ["hunter2", {"c": "hunter2"}], "apiKey": "plain", "X_TOKEN": "plain", "tokens": 3}
    try:
        raise ValueError("hunter2")
    except ValueError:
        log.exception("hunter2 %s", "hunter2", extra={"operation": "hunter2", "context": context, "action": "hunter2"})

    text = file.read_text(encoding="utf-8")
    assert "hunter2" not in text
    assert "plain" not in text
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


def format_line(message: object = "m", level: int = logging.WARNING, **extra: object) -> dict[str, object]:
    record = logging.LogRecord("ollm.x", level, "", 0, message, (), None)
    for name, value in extra.items():
        setattr(record, name, value)
    line: dict[str, object] = json.loads(JsonLineFormatter(redact).format(record))
    return line


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
def test_a_value_whose_name_says_that_it_is_secret_is_not_written(key: str, value: object, shown: object) -> None:
    assert format_line(context={key: value})["context"] == {key: shown}


def test_context_is_cleaned_to_a_depth_and_a_length() -> None:
    nested: object = "hunter2"
    for _ in range(8):
        nested = {"a": nested}
    found: object = format_line(context=nested)["context"]
    for _ in range(6):
        assert isinstance(found, dict)
        found = found["a"]
    assert found == "{'a': {'a': '********'}}"
    line = format_line("x" * 8_005, context={"list": [1, (2, None), {"deep"}], "exact": "y" * 8_000})
    assert line["message"] == "x" * 8_000 + "… (5 more characters)"
    assert line["context"] == {"list": [1, [2, None], ["deep"]], "exact": "y" * 8_000}
    assert format_line(context="nonsense")["context"] == {}


def test_an_error_is_named_with_its_trace() -> None:
    import sys

    try:
        raise KeyError("hunter2")
    except KeyError:
        info = sys.exc_info()
    line = format_line(exc_info=info)

    assert line["errorType"] == "KeyError"
    assert isinstance(line["context"], dict)
    assert "hunter2" not in line["context"]["trace"]
    assert "KeyError" in line["context"]["trace"]
    assert format_line(exc_info=info, errorType="Mine")["errorType"] == "Mine"
    assert format_line(error_type="Other")["errorType"] == "Other"
