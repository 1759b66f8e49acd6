"""One tool run by hand, as a conversation would run it."""

from typing import Any

import pytest

from ollm.app.toolbox import run_tool_call
from ollm.domain.errors import NotFoundError
from ollm.domain.events import Event
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.base import ConversationOptions
from tests.app.places import AppPlace


@pytest.fixture(autouse=True)
def _own_home(place: AppPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_HOME", str(place.home))
    monkeypatch.setenv("HOME", str(place.root))


async def run(place: AppPlace, name: str, asker: Any = None, **arguments: Any) -> tuple[ToolCallRecord, list[Event]]:
    events: list[Event] = []
    options = ConversationOptions(workspace=place.workspace, one_shot=True)
    record = await run_tool_call(options, ToolCall(id="c1", name=name, arguments=arguments), events.append, asker)
    return record, events


async def test_a_tool_of_a_server_that_cannot_be_started_is_not_found(place: AppPlace) -> None:
    place.configure(mcpServers={"gone": {"command": "no-such-program-here"}})
    with pytest.raises(NotFoundError, match=r"Cannot run gone__x\. The MCP server gone cannot be started"):
        await run(place, "gone__x")
    record, _ = await run(place, "other__x")
    assert record.status == "failed"
