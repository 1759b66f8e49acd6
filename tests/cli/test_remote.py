"""Conversations in the daemon: what cannot be told to it, and which session is meant."""

from pathlib import Path
from typing import Any

import pytest

from ollm.cli.daemon import find_session_id, refuse_local_flags
from ollm.cli.start import ChatArguments
from ollm.daemon.bodies import InitReply, SessionLine
from ollm.domain.errors import OllmError, UsageError
from tests.store.sessions.support import Home


def arguments(**more: Any) -> ChatArguments:
    return ChatArguments(workspace=Path("/w"), daemon=True, **more)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"flags": {"provider": {"model": "m"}}}, "--provider, --base-url and --model"),
        ({"allow": ("shell",)}, "--allow"),
        ({"yes": True}, "--yes"),
        ({"allow": ("shell",), "yes": True}, "--allow, --yes"),
    ],
)
def test_what_belongs_to_one_run_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as found:
        refuse_local_flags(arguments(**given))

    assert found.value.message == f"{named} cannot be combined with --daemon, which uses your settings."
    assert found.value.action == "Use `ollm config set`, or /model and /approval in the chat."


def line(name: str, status: str) -> SessionLine:
    return SessionLine(session_id=name, title="", model="", status=status, updated_at=0)


KNOWN = InitReply(
    workspace_path="/w", trusted=False, sessions=[line("a", "archived"), line("b", "closed"), line("c", "active")]
)


def test_to_continue_is_the_newest_that_is_not_archived() -> None:
    assert find_session_id(KNOWN, arguments(continue_=True)) == "b"
    assert find_session_id(KNOWN, arguments()) is None
    none = InitReply(workspace_path="/w", trusted=False, sessions=[line("a", "archived")])
    assert find_session_id(none, arguments(continue_=True)) is None


def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_HOME", str(tmp_path))
    session_id = Home(tmp_path).recorded("hi")

    assert find_session_id(KNOWN, arguments(session=session_id[:6])) == session_id
    with pytest.raises(OllmError):
        find_session_id(KNOWN, arguments(session="zzzzzz"))
