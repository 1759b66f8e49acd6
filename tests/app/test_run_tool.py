"""One tool run by hand, as a conversation would run it."""

from typing import Any

import pytest

from ollm.app.run_tool import create_tool_registry, run_tool_call
from ollm.domain.errors import NotFoundError
from ollm.domain.events import Event, ToolFinished, ToolStarted
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, ToolCallRecord
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace


@pytest.fixture(autouse=True)
def _own_home(place: AppPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.setenv("HOME", str(place.root))


class Yes:
    def __init__(self, approved: bool) -> None:
        self.approved = approved
        self.asked: list[str] = []

    async def ask(self, details: ConfirmationDetails) -> ConfirmationAnswer:
        self.asked.append(details.tool)
        return ConfirmationAnswer(approved=self.approved)


async def run(place: AppPlace, name: str, asker: Any = None, **arguments: Any) -> tuple[ToolCallRecord, list[Event]]:
    events: list[Event] = []
    options = ConversationOptions(workspace=place.workspace, one_shot=True)
    record = await run_tool_call(options, ToolCall(id="c1", name=name, arguments=arguments), events.append, asker)
    return record, events


async def test_what_only_reads_runs_and_its_events_are_told(place: AppPlace) -> None:
    (place.workspace / "a.txt").write_text("inside\n")
    record, events = await run(place, "read_file", path="a.txt")

    assert record.status == "ok"
    assert record.result is not None
    assert "inside" in record.result.llm_content
    assert [type(event) for event in events if isinstance(event, ToolStarted | ToolFinished)] == [
        ToolStarted,
        ToolFinished,
    ]
    assert not (place.home / "sessions").exists()


async def test_what_changes_something_is_asked_about(place: AppPlace) -> None:
    refused, _ = await run(place, "write_file", path="a.txt", content="x")
    assert refused.status == "denied"
    no, yes = Yes(False), Yes(True)
    assert (await run(place, "write_file", no, path="a.txt", content="x"))[0].status == "denied"
    assert not (place.workspace / "a.txt").exists()
    assert (await run(place, "write_file", yes, path="a.txt", content="x"))[0].status == "ok"
    assert (place.workspace / "a.txt").read_text() == "x"
    assert no.asked == yes.asked == ["write_file"]


async def test_a_tool_of_a_server_that_cannot_be_started_is_not_found(place: AppPlace) -> None:
    place.configure(mcpServers={"gone": {"command": "no-such-program-here"}})
    with pytest.raises(NotFoundError, match=r"Cannot run gone__x\. The MCP server gone cannot be started"):
        await run(place, "gone__x")
    record, _ = await run(place, "other__x")
    assert record.status == "failed"


def test_the_registry_holds_the_tools_of_a_conversation(place: AppPlace) -> None:
    names = {spec.name for spec in create_tool_registry(place.workspace).list()}

    assert {"shell", "read_file", "write_file", "edit_file", "grep", "glob", "ls"} <= names
