"""The parts of the next request with their tokens."""

from ollm.domain.context import ContextEntry
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.breakdown import PROJECT_MAP_KEY, count_hidden_tools, describe_hidden_tools, list_context_parts
from tests.runtime.prompt.test_prompt import Talk

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (ToolSchema(name="read_file", description="Read a file.", parameters=PATH),)


def parts(talk: Talk) -> dict[str, int]:
    return {part.name: part.tokens for part in list_context_parts(talk.prompt)}


def test_every_part_is_listed_in_the_order_it_is_sent() -> None:
    talk = Talk()
    talk.prompt.set_tools(TOOLS)
    talk.user("Build it")
    talk.step("all good")
    talk.assistant("Done.")

    listed = parts(talk)

    assert list(listed) == [
        "instructions",
        "context entries",
        "tool schemas",
        "checkpoints",
        "user messages",
        "assistant messages",
        "tool messages",
        "system messages",
    ]
    context = talk.prompt.get_active_context().messages
    assert listed["user messages"] == talk.counter.count_message(context[0])
    assert listed["assistant messages"] == sum(map(talk.counter.count_message, (context[1], context[3])))
    assert listed["tool schemas"] == talk.counter.count_schemas(TOOLS)
    assert listed["instructions"] == talk.counter.count_text(talk.prompt.get_system_prompt()) + 4
    assert abs(sum(listed.values()) - talk.prompt.used_tokens) <= len(listed)
    assert (listed["checkpoints"], listed["system messages"], listed["context entries"]) == (0, 0, 0)


def test_the_project_map_is_told_apart_from_other_entries() -> None:
    talk = Talk()
    talk.entries.add_context("note", "Use tabs.", source="user")
    talk.entries.add_entry(
        ContextEntry(key=PROJECT_MAP_KEY, content="| src/\n| README.md", timestamp="", source="system", priority=0.0)
    )
    talk.user("hello")

    listed = parts(talk)

    assert listed[PROJECT_MAP_KEY] > 0
    assert listed["context entries"] > 0
    talk.entries.remove_context("note")
    talk.user("again")
    assert parts(talk)["context entries"] < listed["context entries"]


def test_worked_calls_are_listed_for_a_model_that_writes_its_calls() -> None:
    talk = Talk()
    talk.prompt.set_tools(TOOLS)
    talk.prompt.set_forms(ModelFacts(key="k", call_form="text", result_form="user"))

    assert parts(talk)["worked calls"] > 0


def test_the_parts_of_a_model_that_writes_blocks_come_to_what_is_sent() -> None:
    talk = Talk()
    talk.entries.add_context("note", "Use tabs.", source="user")
    talk.prompt.set_tools(TOOLS)
    talk.prompt.set_forms(ModelFacts(key="", call_form="blocks", result_form="user"))
    talk.user("Build it")

    listed = parts(talk)

    assert listed["instructions"] <= 4  # the protocol has its own
    assert listed["context entries"] > 0
    assert abs(sum(listed.values()) - talk.prompt.used_tokens) <= 2 * len(listed)


def test_tools_that_are_listed_in_the_prompt_count_as_schemas() -> None:
    talk = Talk()
    talk.prompt.set_tools(TOOLS)
    talk.prompt.set_forms(ModelFacts(key="k", call_form="none", takes_tools=False))
    (system, *_), schemas = talk.prompt.render_prefix()
    listed = system.content.replace(talk.prompt.get_system_prompt(), "")

    assert schemas == ()
    assert parts(talk)["tool schemas"] == talk.counter.count_text(listed) > 0


def test_tools_without_room_are_counted_by_server() -> None:
    talk = Talk()
    assert (count_hidden_tools(talk.prompt), describe_hidden_tools(talk.prompt)) == ({}, "")
    finder = ToolSchema(name="find_tool", description="Find one (9). There are: git (12), web-docs (3)", parameters={})
    talk.prompt.set_tools([*TOOLS, finder])

    assert count_hidden_tools(talk.prompt) == {"git": 12, "web-docs": 3}
    told = "Tools without room, found with find_tool: 12 of git, 3 of web-docs."
    assert describe_hidden_tools(talk.prompt) == told
