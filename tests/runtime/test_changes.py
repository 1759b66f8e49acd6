"""Steps that change a conversation: each recorded, each with a snapshot before it."""

from pathlib import Path

import msgspec
import pytest

from ollm.domain.events import ModeChanged, Notice
from ollm.runtime import changes
from ollm.system.paths import Boundary
from ollm.tools.framework.base import ToolContext, ToolSpec, make_spec
from ollm.tools.framework.tool_selection import FindTool
from tests.runtime.talking import Talking


async def test_another_model_is_counted_by_its_own_factor(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        parts = talk.conversation.parts
        await talk.say("hello")
        parts.prompt.counter.calibrate(3.0, 20)
        parts.prompt.counter.remember("exactly", 99)

        await changes.change_model(parts, "other")

        assert parts.state.model.name == parts.prompt.model.model == "other"
        assert (parts.prompt.counter.factor, parts.prompt.counter.samples) == (
            parts.state.model.facts.token_factor,
            parts.state.model.facts.token_samples,
        )
        assert parts.prompt.counter.factor != 3.0
        assert parts.prompt.counter.count_text("exactly") < 99
        loaded = parts.session.load()
        assert (loaded.model, loaded.metadata.context_window) == ("other", parts.state.model.window)
        assert [step["step"] for step in loaded.metadata.context_history] == ["model"]
        assert [found.trigger for found in await parts.snapshots.list_snapshots(parts.session.id or "")] == ["window"]


async def test_a_rewind_takes_back_checkpoints_of_what_it_went_behind(talking: Talking) -> None:
    from ollm.domain.context import Checkpoint

    async with talking(["one", "two"]) as talk:
        parts = talk.conversation.parts
        for text in ("first", "second"):
            await talk.say(text)
        points = tuple(
            Checkpoint(id=name, text=name, message_ids=ids, timestamp="", tokens=1)
            for name, ids in (("old", (1,)), ("new", (1, 4)), ("empty", ()))
        )
        context = msgspec.structs.replace(parts.prompt.get_active_context(), checkpoints=points)
        parts.prompt.restore(context)

        await changes.rewind_context(parts, {"step": "rewind", "before": 3})

        assert [point.id for point in parts.prompt.get_active_context().checkpoints] == ["old", "empty"]


async def test_a_tool_from_outside_that_a_rule_denies_is_not_found_either(talking: Talking, tmp_path: Path) -> None:
    def make(name: str) -> ToolSpec:
        return msgspec.structs.replace(make_spec(FindTool, list), name=name, category=None, description="Reach far.")

    async with talking() as talk:
        parts = talk.conversation.parts
        for name in ("far_one", "far_two", "far_three"):
            parts.registry.get().register(make(name))
        parts.state.has_rules = True
        actions = {"far_one": "deny", "far_two": "allow"}
        parts.policy.get().get_plain_action = lambda name: actions.get(name, "ask")  # type: ignore[method-assign]

        tools, permitted = changes.judge_foreign_tools(parts)

        named = {tool.name for tool in tools}
        assert ("far_one" in named, {"far_two", "far_three"} <= named, permitted) == (False, True, {"far_two"})
        find = parts.registry.get().get("find_tool")
        assert find is not None
        found = await find.parse({"query": "far"}).run(ToolContext(boundary=Boundary.around(tmp_path)))
        assert found.return_display == "far_three, far_two"


CHOICE = '{"mode": "debug"}'


@pytest.mark.parametrize("setting", ["off", "propose", "on"])
async def test_a_message_that_fits_another_mode_does_what_the_setting_says(talking: Talking, setting: str) -> None:
    async with talking(["one", "two"] if setting == "off" else [CHOICE, "one", CHOICE, "two"]) as talk:
        state = talk.conversation.parts.state
        state.auto_switch = setting  # type: ignore[assignment]
        first, second = await talk.say("It broke"), await talk.say("And again")
        mode = talk.conversation.parts.prompt.mode

    proposed = [event.text for event in (*first, *second) if isinstance(event, Notice)]
    changed = [event for event in first if isinstance(event, ModeChanged)]
    assert mode == ("debug" if setting == "on" else "code")
    assert proposed == (["This looks like work for mode debug: /mode debug"] if setting == "propose" else [])
    assert [(event.to, event.trigger, event.confidence) for event in changed] == (
        [("debug", "auto", 0.75)] if setting == "on" else []
    )


@pytest.mark.parametrize("choice", ['{"mode": "code"}', '{"mode": "sleep"}', "I would not know."])
async def test_a_message_that_fits_this_mode_or_none_changes_nothing(talking: Talking, choice: str) -> None:
    async with talking([choice, "one"]) as talk:
        talk.conversation.parts.state.auto_switch = "on"
        events = await talk.say("Implement the cache and add a test")

        assert talk.conversation.parts.prompt.mode == "code"
        assert not any(isinstance(event, ModeChanged) for event in events)
