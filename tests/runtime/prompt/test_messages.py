"""Messages in a prompt, and their limits."""

from collections.abc import Sequence

import msgspec
import pytest

from ollm.domain.events import Notice
from ollm.domain.messages import (
    AnyPart,
    ImagePart,
    Message,
    PromptMessage,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.runtime.prompt.hard_compaction import shrink_last_step
from ollm.runtime.prompt.messages import (
    INTERRUPTED,
    MIN_RESULT_TOKENS,
    NO_RESULT,
    MessageHistory,
    cut_message,
    format_result_text,
    limit_user_message,
    render_message,
)
from ollm.runtime.prompt.prefix import demote_system_message
from ollm.runtime.prompt.token_meter import Meter
from ollm.services.budget import compute_budget, compute_result_cap, compute_step_cap
from ollm.services.token_counting import TokenCounter
from tests.covers import covers
from tests.runtime.prompt.test_prompt import Talk, filler
from tests.services import contexts as make


async def test_a_message_longer_than_half_the_window_stands_as_head_tail_and_number() -> None:
    talk = Talk()
    talk.user("FIRST " + filler(3000) + " LAST")
    await talk.make_room()

    content = talk.prompt.build_request_messages()[-1].content
    assert content.startswith("FIRST")
    assert content.endswith("LAST")
    assert 'recall {"messageId": 1, "startLine": ' in content
    assert talk.prompt.used_tokens <= talk.prompt.compute_budget().limit
    assert talk.of(Notice)


counter = TokenCounter()


def test_only_the_first_message_is_a_system_message() -> None:
    note = PromptMessage(role="system", content="a note", sources=(3,))

    assert demote_system_message(note) == PromptMessage(role="user", content="a note", sources=(3,))
    said = make.user(1, "x")
    assert demote_system_message(said) is said


def is_failed(record: ToolCallRecord | None) -> bool:
    message = Message(id=1, role="tool", parts=(ToolResultPart("c1"),), timestamp="")
    (rendered,) = render_message(message, {"c1": record} if record else {})
    return rendered.failed


def make_record(text: str, *, exit_code: int | None = None, error: ErrorInfo | None = None) -> ToolCallRecord:
    result = RecordedResult(llm_content=text, exit_code=exit_code)
    return ToolCallRecord(id="c1", name="shell", args={}, timestamp="", result=result, error=error)


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [("[no output; exit code 1]", 1), ("[exit code 139, SIGSEGV]", 139), ("AssertionError\n[exit code 1]", 1)],
)
def test_a_command_that_failed_is_marked_by_its_exit_code(text: str, exit_code: int) -> None:
    assert is_failed(make_record(text, exit_code=exit_code))


@pytest.mark.parametrize("text", ["Error 404 is what this page is about", "Exit code: 3 means trouble", "fine"])
def test_text_that_only_speaks_of_errors_is_no_failure(text: str) -> None:
    assert not is_failed(make_record(text, exit_code=0))
    assert not is_failed(make_record(text))


def test_a_call_with_an_error_or_without_a_result_has_failed() -> None:
    assert is_failed(make_record("", error=ErrorInfo(type="FileNotFound", message="a.txt does not exist.")))
    assert is_failed(ToolCallRecord(id="c1", name="shell", args={}, timestamp=""))
    assert is_failed(None)


PICTURE = ImagePart(media_type="image/png", data="AAAA")

DONE = ToolCallRecord(
    id="c1",
    name="shell",
    args={"command": "ls"},
    timestamp="",
    result=RecordedResult(llm_content="a.txt", images=(PICTURE,)),
)


def test_each_result_is_a_message_and_the_last_one_tells_what_was_said_with_them() -> None:
    parts: tuple[AnyPart, ...] = (ToolResultPart("c1"), ToolResultPart("c2"), TextPart("Created b.txt."))

    first, second = render_message(Message(id=7, role="tool", parts=parts, timestamp=""), {"c1": DONE})

    assert first == PromptMessage(
        role="tool", content="a.txt", call_id="c1", tool_name="shell", images=(PICTURE,), sources=(7,)
    )
    assert second == PromptMessage(
        role="tool",
        content=f"{NO_RESULT}\n\nCreated b.txt.",
        call_id="c2",
        sources=(7,),
        failed=True,
        own_chars=len(NO_RESULT),
    )
    assert second.split_content() == (NO_RESULT, "Created b.txt.")
    assert render_message(Message(id=7, role="tool", parts=(TextPart("Words."),), timestamp=""), {}) == []
    assert render_message(Message(id=7, role="tool", parts=parts[:1], timestamp=""), {"c1": DONE}) == [first]


@pytest.mark.parametrize(
    ("text", "called", "interrupted", "content"),
    [
        ("I look.", False, False, "I look."),
        ("I look.", True, False, "I look."),
        ("", True, False, ""),
        ("", True, True, ""),
        ("I loo", True, True, "I loo"),
        ("I loo", False, True, f"I loo\n{INTERRUPTED}"),
        ("", False, True, INTERRUPTED),
        (" \n", False, False, None),
        ("", False, False, None),
    ],
)
def test_an_answer_is_sent_with_its_calls_unless_it_is_empty(
    text: str, called: bool, interrupted: bool, content: str | None
) -> None:
    calls = (ToolCallPart("c1"), ToolCallPart("gone")) if called else ()
    answer = Message(id=7, role="assistant", parts=(TextPart(text), *calls), timestamp="", interrupted=interrupted)

    found = render_message(answer, {"c1": DONE})

    made = (ToolCall(id="c1", name="shell", arguments={"command": "ls"}),) if called else ()
    told = [PromptMessage(role="assistant", content=content or "", calls=made, sources=(7,))]
    assert found == ([] if content is None else told)


FAILURE = ErrorInfo(type="NotFound", message="no a.txt")


@pytest.mark.parametrize(
    ("said", "code", "error", "text"),
    [
        ("all good", None, None, "all good"),
        ("all good", 0, None, "all good"),
        ("", 0, None, "(no output)"),
        ("boom", 2, None, "Exit code: 2\nboom"),
        ("Exit code: 2\nboom", 2, None, "Exit code: 2\nboom"),
        ("", 1, None, "Exit code: 1\n"),
        ("Error NotFound: no a.txt", None, FAILURE, "Error NotFound: no a.txt"),
        ("there is no a.txt here", None, FAILURE, "Error NotFound: there is no a.txt here"),
        ("look elsewhere", None, FAILURE, "Error NotFound: no a.txt\nlook elsewhere"),
        ("", None, FAILURE, "Error NotFound: no a.txt"),
    ],
)
def test_a_result_begins_with_its_failure(said: str, code: int | None, error: ErrorInfo | None, text: str) -> None:
    assert format_result_text(make_record(said, exit_code=code, error=error)) == text


def test_without_a_result_nothing_is_known_but_an_error() -> None:
    bare = ToolCallRecord(id="c1", name="shell", args={}, timestamp="")

    assert format_result_text(bare) == NO_RESULT
    assert format_result_text(ToolCallRecord("c1", "shell", {}, "", error=FAILURE)) == "Error NotFound: no a.txt"


@covers("T9.1", "T9.3")
def test_a_long_result_takes_a_quarter_of_what_is_available_and_says_how_to_read_the_rest() -> None:
    talk = Talk()
    talk.user("Go")
    talk.step(filler(2000))

    content = talk.prompt.build_request_messages()[-1].content
    assert talk.counter.count_text(content) <= talk.prompt.compute_budget().available // 4
    first_missing = content.split("[...")[0].count("\n") + 1
    assert f'recall {{"callId": "c1-0", "startLine": {first_missing}}} reads them' in content
    assert "characters omitted" in content
    assert content.startswith("line 0 says")
    assert content.endswith("line 1999 says nothing of note to anybody")


def test_the_results_of_one_step_take_half_of_what_is_available() -> None:
    talk = Talk()
    talk.user("Go")
    talk.step("short", *[filler(500)] * 5)

    results = [message for message in talk.prompt.build_request_messages() if message.role == "tool"]
    assert sum(talk.counter.count_text(m.content) for m in results) <= talk.prompt.compute_budget().available // 2
    assert results[0].content == "short"


LINES = "\n".join(f"line {number} of the output" for number in range(400))


def step(*outputs: str, content: str = "Trying.") -> list[PromptMessage]:
    calls = tuple(
        ToolCall(id=f"c{n}", name="shell", arguments={"command": "make"}) for n, _ in enumerate(outputs, start=1)
    )
    head = PromptMessage(role="assistant", content=content, calls=calls, sources=(2,))
    results = [
        PromptMessage(role="tool", content=output, call_id=f"c{n}", tool_name="shell", sources=(2 + n,))
        for n, output in enumerate(outputs, start=1)
    ]
    return [PromptMessage(role="user", content="go", sources=(1,)), head, *results]


def size(messages: Sequence[PromptMessage]) -> int:
    return counter.count_messages(messages)


def test_a_message_within_its_cap_is_left_alone_and_a_longer_one_names_the_way() -> None:
    short, long = step("ok")[2], step(LINES)[2]

    assert cut_message(short, 50, counter) == short
    cut = cut_message(long, 100, counter)
    assert counter.count_text(cut.content) <= 100
    assert 'recall {"callId": "c1", "startLine": ' in cut.content


def test_a_list_with_the_best_first_is_cut_from_its_end() -> None:
    found = "\n".join(f"message {number} (user; has port): the port of the parser is {number}." for number in range(30))
    entry = PromptMessage(role="tool", content=found, call_id="c1", tool_name="recall", sources=(3,))

    *kept, omission = cut_message(entry, 150, counter).content.splitlines()

    assert len(kept) > 3
    assert kept == found.splitlines()[: len(kept)]
    assert f'recall {{"callId": "c1", "startLine": {len(kept) + 1}}} reads them' in omission


def test_results_share_what_a_step_may_take_and_each_gets_a_least() -> None:
    budget, history = compute_budget(4096, 500), MessageHistory(counter, Meter(counter), str, lambda entry: entry)
    calls = {f"c{number}": msgspec.structs.replace(make_record(LINES), id=f"c{number}") for number in range(30)}
    results = Message(id=3, role="tool", parts=tuple(map(ToolResultPart, calls)), timestamp="")

    assert history.add_message(results, calls, budget)

    sizes = [counter.count_text(entry.content) for entry in history.messages]
    assert all(found <= max(MIN_RESULT_TOKENS, compute_result_cap(budget)) for found in sizes)
    assert sizes[-1] > 0
    assert sum(sizes) <= compute_step_cap(budget) + 30 * MIN_RESULT_TOKENS


def test_a_user_s_message_is_cut_only_over_half_of_what_there_is() -> None:
    budget = compute_budget(4096, 500)
    fits = PromptMessage(role="user", content="word " * (budget.available // 2), sources=(1,))
    longer = PromptMessage(role="user", content="word " * (budget.available // 2 + 2), sources=(1,))

    assert limit_user_message(fits, budget, counter) is fits
    cut = limit_user_message(longer, budget, counter)
    assert counter.count_text(cut.content) <= budget.available // 4


@pytest.mark.parametrize("hardness", [0, 1])
def test_the_last_step_is_made_smaller_and_the_request_is_not_touched(hardness: int) -> None:
    messages = step(LINES, "short", LINES)
    over = size(messages) // 2

    smaller = shrink_last_step(messages, over, hardness, counter)

    assert smaller[0] == messages[0]
    assert len(smaller) == len(messages)
    assert smaller[3].content == "short"
    assert size(messages) - size(smaller) >= over - 40


def test_harder_at_last_calls_are_left_out_between_the_first_and_the_last() -> None:
    messages = step(*["ok"] * 40)

    smaller = shrink_last_step(messages, size(messages) * 3 // 4, 2, counter)

    head = smaller[1]
    assert 1 <= len(head.calls) < 40
    assert head.calls[0].id == "c1"
    assert "more calls, c" in head.content
    assert [entry.call_id for entry in smaller[2:]] == [call.id for call in head.calls]
    assert size(smaller) <= size(messages) // 4 + 60
    few = step("ok", "ok")
    assert shrink_last_step(few, 10_000, 2, counter) == tuple(few)


def test_where_nothing_has_room_one_call_stands_and_a_line_for_the_others() -> None:
    messages = step("one", "two", "three")

    _, head, *results = shrink_last_step(messages, 100_000, 2, counter)

    assert [call.id for call in head.calls] == ["c1"]
    assert head.content == (
        "Trying.\n[2 more calls, c2 to c3, were made and are left out with their results; "
        'recall {"callId": "c2"} reads one]'
    )
    assert [entry.content for entry in results] == ["one"]
    most = shrink_last_step(step("one", "two " * 90, "three"), 20, 2, counter)
    assert [call.id for call in most[1].calls] == ["c1", "c3"]
    assert [entry.content for entry in most[2:]] == ["one", "three"]
    assert most[1].content.startswith("Trying.\n[1 more calls, c2 to c2, were made")
