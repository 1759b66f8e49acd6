"""What a task may do: never more than its parent, asked where its parent is asked."""

from contextlib import AsyncExitStack
from unittest.mock import sentinel

from ollm.app.conversation import ConversationScope
from ollm.app.task_toolbox import UNSUITED_TOOLS, TaskOrigin, TaskToolbox
from ollm.app.workspace import WorkspaceScope
from ollm.domain.tasks import Agent
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace


def make(place: AppPlace, stack: AsyncExitStack, agent: Agent | None, *, approval: str = "ask") -> TaskToolbox:
    process = place.process()
    given = ConversationOptions(workspace=place.workspace, flags={"policy": {"approval": approval}})
    parent = ConversationScope(WorkspaceScope(process, place.workspace), given, stack).toolbox
    parent.policy.approval = approval  # type: ignore[assignment]
    mode = agent.mode if agent else "plan"
    origin = TaskOrigin(toolbox=parent, model=sentinel.model, agent=agent)
    child = ConversationOptions(workspace=place.workspace, one_shot=True, mode=mode)
    toolbox = ConversationScope(WorkspaceScope(process, place.workspace), child, stack, task=origin).toolbox
    assert isinstance(toolbox, TaskToolbox)
    assert toolbox.policy.grants is parent.policy.grants
    assert toolbox.sandbox is parent.sandbox
    assert toolbox.edits is parent.edits
    return toolbox


async def test_without_an_agent_it_reads_only(place: AppPlace) -> None:
    async with AsyncExitStack() as stack:
        toolbox = make(place, stack, None, approval="yolo")

        assert toolbox.policy.approval == "read-only"
        names = {spec.name for spec in toolbox.registry.list()}
        assert names.isdisjoint(UNSUITED_TOOLS)
        assert "read_file" in names


async def test_an_agent_that_writes_has_the_approval_of_its_parent_at_most(place: AppPlace) -> None:
    agent = Agent(name="a", description="", instructions="", mode="code", tools=("read_file", "edit_file", "task"))
    async with AsyncExitStack() as stack:
        toolbox = make(place, stack, agent, approval="accept-edits")
        assert toolbox.policy.approval == "accept-edits"
        assert [spec.name for spec in toolbox.registry.list()] == ["edit_file", "read_file"]
        assert make(place, stack, agent, approval="read-only").policy.approval == "read-only"
