"""Where nobody watches the calls."""

from ollm.domain.tools import ToolCallRecord
from ollm.extensions.base import HookDecision, NoHooks


async def test_without_hooks_every_call_runs_as_it_is_and_nothing_is_added() -> None:
    hooks = NoHooks()
    decision = await hooks.before_tool("shell", {"command": "ls"})
    record = ToolCallRecord(id="c1", name="shell", args={}, timestamp="", message_id=1)

    assert decision == HookDecision()
    assert decision.blocked is None
    assert decision.arguments is None
    assert decision.ask == ""
    assert await hooks.after_tool(record) == ""
