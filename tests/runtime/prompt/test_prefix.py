"""What stands before the messages."""

from ollm.domain.events import Event, Notice
from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.runtime.prompt.breakdown import list_context_parts
from ollm.runtime.prompt.prefix import PrefixLedger, PrefixPart
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
    assert talk.prompt.ledger.entries[-1].reused_share == 0.0


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
        entry = talk.prompt.ledger.entries[-1]
        return entry.reused_share, entry.broken_by

    assert send("one") == (1.0, None)
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


def parts(*texts: str) -> list[PrefixPart]:
    return [
        PrefixPart(name=f"message {n}", message=PromptMessage(role="user", content=t), tokens=10)
        for n, t in enumerate(texts)
    ]


def test_what_only_grows_is_reused_whole() -> None:
    ledger = PrefixLedger()
    ledger.record(parts("a"))
    entry = ledger.record(parts("a", "b", "c"))

    assert (entry.reused_share, entry.reused_tokens, entry.tokens, entry.broken_by) == (1.0, 10, 30, None)


def test_the_part_that_changed_is_named() -> None:
    ledger = PrefixLedger()
    ledger.record(parts("a", "b", "c", "d"))
    entry = ledger.record(parts("a", "B", "c", "d"))

    assert (entry.reused_share, entry.broken_by) == (0.25, "message 1")


def test_a_step_that_meant_to_change_the_front_is_named_instead() -> None:
    ledger = PrefixLedger()
    ledger.record(parts("a", "b"))

    assert ledger.record(parts("x"), "compression").broken_by == "compression"
    assert ledger.record(parts("x", "y"), "mode").broken_by is None


def test_only_the_newest_entries_are_kept() -> None:
    ledger = PrefixLedger()
    for _ in range(500):
        last = ledger.record(parts("a"))

    assert len(ledger.entries) == 200
    assert ledger.last is last
