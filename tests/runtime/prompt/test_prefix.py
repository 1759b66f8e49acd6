"""What stands before the messages."""

from __future__ import annotations

from ollm.domain.context import Usage
from ollm.domain.events import Event, Notice
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.breakdown import list_context_parts
from ollm.runtime.prompt.prefix import PromptPrefix
from ollm.services.context_manager import ContextManager
from ollm.services.token_counting import TokenCounter
from tests.covers import covers
from tests.runtime.prompt.test_prompt import Talk, filler


@covers("S5.7", "D762")
def test_context_entries_stand_at_the_end_of_the_system_prompt_and_volatile_ones_with_the_newest_words() -> None:
    talk = Talk()
    talk.entries.add_context("style", "Tabs, never spaces")
    talk.entries.add_context("git", "On branch main", volatile=True, source="system")
    talk.user("Hello")
    first = talk.prompt.build_request_messages()
    talk.assistant("Hi.")
    talk.entries.add_context("git", "On branch other", volatile=True, source="system")
    talk.user("Again")
    second = talk.prompt.build_request_messages()

    assert first[0].content.endswith("Tabs, never spaces")
    assert "On branch main" in first[1].content
    assert second[: len(first)] == first
    assert "On branch other" in second[-1].content
    assert talk.prompt.ledger.last is not None
    assert talk.prompt.ledger.last.reused_share == 1.0


def test_a_changed_entry_is_named_as_what_broke_the_front() -> None:
    talk = Talk()
    talk.user("Hello")
    talk.prompt.build_request_messages()
    talk.entries.add_context("style", "Tabs")
    talk.assistant("Hi.")
    talk.user("Again")
    talk.prompt.build_request_messages()

    assert talk.prompt.measure_usage().broken_by == "context entry"
    assert talk.prompt.measure_usage().reused_share == 0.0


def test_an_entry_added_inside_a_turn_waits_for_the_next_one() -> None:
    talk = Talk()
    talk.user("Hello")
    talk.entries.add_context("late", "Later words")

    assert "Later words" not in talk.prompt.build_request_messages()[0].content
    talk.user("Again")
    assert "Later words" in talk.prompt.build_request_messages()[0].content


async def test_entries_over_a_quarter_of_the_window_are_left_out_and_said() -> None:
    talk = Talk()
    talk.entries.add_context("big", filler(400), priority=1)
    talk.entries.add_context("small", "Short words", priority=90)
    talk.user("Hello")
    await talk.make_room()

    assert "Short words" in talk.prompt.get_system_prompt()
    assert "nothing of note" not in talk.prompt.get_system_prompt()
    assert any("Skipped context entry 'big'" in event.text for event in talk.of(Notice) if isinstance(event, Notice))


def test_tool_schemas_are_part_of_what_is_fixed() -> None:
    talk = Talk()
    before = talk.prompt.compute_budget()
    talk.prompt.set_tools([ToolSchema(name="ls", description="List " * 50, parameters={"type": "object"})])

    after = talk.prompt.compute_budget()
    assert after.fixed > before.fixed + 40
    assert after.available == before.available - (after.fixed - before.fixed)
    assert {part.name for part in list_context_parts(talk.prompt)} >= {"instructions", "tool schemas", "user messages"}


def test_other_forms_of_calls_break_the_front_once_and_are_counted() -> None:
    talk = Talk()
    talk.prompt.set_tools([ToolSchema(name="ls", description="List files", parameters={"type": "object"})])

    def send(text: str) -> tuple[float | None, str | None]:
        talk.user(text)
        talk.prompt.build_request_messages()
        talk.assistant("Yes.")
        usage = talk.prompt.measure_usage()
        return usage.reused_share, usage.broken_by

    assert send("one") == (None, None)
    assert send("two") == (1.0, None)
    native, told = talk.prompt.compute_budget().fixed, talk.prompt.get_system_prompt()
    talk.prompt.set_forms(ModelFacts(key="k", call_form="text", takes_tools=False))
    assert talk.prompt.forms.call_form == "text"
    assert talk.prompt.compute_budget().fixed != native
    assert send("three") == (0.0, "call form")
    talk.prompt.set_forms(ModelFacts(key="other", call_form="text", takes_tools=False))
    assert send("four") == (1.0, None)
    talk.prompt.set_forms(ModelFacts(key="k", call_form="blocks"))
    assert talk.prompt.get_system_prompt() == ""
    talk.prompt.set_forms(ModelFacts(key="k"))
    assert talk.prompt.get_system_prompt() == told
    assert talk.prompt.compute_budget().fixed == native


def test_forms_that_a_request_went_out_in_after_all_are_counted() -> None:
    talk = Talk()
    talk.prompt.set_tools([ToolSchema(name="ls", description="List files", parameters={"type": "object"})])
    talk.user("one")
    talk.prompt.build_request_messages()
    before = talk.prompt.compute_budget().fixed

    talk.prompt.correct_sent_forms(ModelFacts(key="k", takes_tools=False, result_form="user"))

    assert talk.prompt.compute_budget().fixed != before


def test_a_request_may_have_been_cut_from_a_quarter_of_the_window_on() -> None:
    talk = Talk()
    talk.user("word " * 1600)
    talk.prompt.build_request_messages()

    assert not talk.prompt.should_verify_usage(Usage(prompt_tokens=1024))
    assert talk.prompt.should_verify_usage(Usage(prompt_tokens=1025))
    assert not talk.prompt.should_verify_usage(Usage(prompt_tokens=talk.prompt.used_tokens))


def test_a_long_entry_of_the_system_is_shortened_once_and_others_are_left_out() -> None:
    talk = Talk()
    long = "# Rules\n\n" + "\n".join(f"## Part {number}\n\nSome words about part {number}." for number in range(200))
    talk.entries.add_context("AGENTS.md", long, source="system")
    talk.entries.add_context("mine", filler(400), source="user")
    talk.user("Hello")
    first = talk.prompt.get_system_prompt()
    talk.assistant("Yes.")
    talk.user("Again")

    assert "Part 0" in first
    assert long not in first
    assert talk.prompt.get_system_prompt() == first
    assert talk.counter.count_text(first) <= 4096 // 4 + 400
    notes: list[Event] = []
    talk.prompt.emit_notes(notes.append)
    told = [note.text for note in notes if isinstance(note, Notice)]
    assert told == [
        "AGENTS.md is long: the model sees its beginning and its headings, and can read the rest.",
        "Skipped context entry 'mine': entries may use at most a quarter of the context window.",
    ]


def make_schema(name: str) -> ToolSchema:
    return ToolSchema(name=name, description="Does something. " * 8, parameters={"type": "object", "properties": {}})


def test_whether_the_system_prompt_is_another_one_is_told_once_there_was_one() -> None:
    entries = ContextManager()
    prefix = PromptPrefix(TokenCounter(), entries, lambda text: None)

    assert not prefix.write_system_prompt(4096, "code")
    assert not prefix.write_system_prompt(4096, "code")
    entries.add_context("a", "Be brief.")
    assert prefix.write_system_prompt(4096, "code")


def test_tools_for_what_was_folded_cost_what_they_are_more_until_they_are_there() -> None:
    prefix = PromptPrefix(TokenCounter(), ContextManager(), lambda text: None)
    few, more = (make_schema("a"),), (make_schema("a"), make_schema("recall"))
    prefix.set_tools(few, lambda: more)
    before = prefix.units
    cost = prefix.recall_tokens
    prefix.offer_recall()

    assert prefix.tools == more
    assert cost == TokenCounter().convert_to_tokens(prefix.units - before) > 20
    assert prefix.recall_tokens == 0
    prefix.offer_recall()
    assert prefix.tools == more
    prefix.set_tools(more, lambda: few)
    assert prefix.recall_tokens == 0


def test_what_fits_is_counted_by_a_factor_in_steps() -> None:
    def shorten(factor: float, *others: str) -> int:
        entries = ContextManager()
        prefix = PromptPrefix(TokenCounter(factor), entries, lambda text: None)
        for number, text in enumerate(others):
            entries.add_context(f"o{number}", text, source="system", priority=90)
        entries.add_context("AGENTS.md", "\n".join(["some words of no weight at all here"] * 400), source="system")
        prefix.write_system_prompt(4096, "code")
        return prefix.system.content.count("of no weight")

    assert [shorten(factor) for factor in (0.8, 1.25, 1.26, 1.75, 2.5, 2.51, 9.0)] == [64, 64, 32, 32, 32, 16, 16]
    assert [shorten(1.0, "word " * count) for count in (100, 350, 450, 560, 640)] == [32, 32, 16, 8, 2]
