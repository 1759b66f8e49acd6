"""The pure parts of the screen: what is typed, asked, compared and shown."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ollm.cli.line_chat.chat import parse_answer
from ollm.cli.screen.cells import pad_cells, truncate_cells
from ollm.cli.screen.composing import Pastes, collect_mentions, read_file
from ollm.cli.screen.diffs import parse_diff
from ollm.cli.screen.history import ScreenInputHistory
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.picker import Picker, format_row
from ollm.cli.screen.questions import ConfirmationQueue, paint_question
from ollm.cli.screen.resizing import count_extra_rows, detect_rewrap
from ollm.cli.screen.status import format_bar, format_status_line, join_parts
from ollm.cli.screen.transcript import Transcript
from ollm.cli.screen.view import read_git_branch
from ollm.cli.sessions.session_list import SessionListItem
from ollm.domain.events import (
    ConfirmationRequested,
    ConfirmationResolved,
    ContextUsage,
    PrefillProgress,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.messages import ImagePart
from ollm.domain.tools import ConfirmationDetails, Risk, ToolResult
from ollm.runtime.base import Status
from ollm.system.terminal_text import clean_lines, clean_prose
from tests.covers import covers

PLAIN = Painter(lambda: 80, colour=False)


def details(**more: object) -> ConfirmationDetails:
    return ConfirmationDetails(
        **{"call_id": "c1", "tool": "shell", "description": "Run it", "risk": Risk.HIGH, "reason": "why", **more}  # type: ignore[arg-type]
    )


def asked(name: str, **more: object) -> ConfirmationRequested:
    return ConfirmationRequested(correlation_id=name, details=details(**more))


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@covers("T8.5", "T8.6")
def test_questions_wait_in_order_and_take_keys_only_after_a_quiet_moment() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", grant="shell:ls"))
    questions.handle_event(asked("b", locked=True, grant="shell:rm"))
    assert not questions.armed, "somebody may be in mid-sentence"
    clock.time += 0.3
    questions.note_typing()
    clock.time += 0.3
    assert not questions.armed
    clock.time += 0.2
    assert questions.armed
    assert (
        questions.format_choices()
        == "[y] yes · [s] this session · [a] always in this workspace (shell:ls) · [e] everywhere · [n] no · 1 more"
    )
    said = questions.answer("a")
    assert said is not None
    assert said.scope == "always"

    questions.handle_event(ConfirmationResolved(correlation_id="a", outcome="approved"))
    assert not questions.armed, "the next question needs its own moment"
    clock.time += 1
    assert questions.format_choices() == "[y] yes · [n] no"
    assert questions.answer("s") is None, "what is protected is asked about every time"

    questions.handle_event(ConfirmationResolved(correlation_id="b", outcome="cancelled"))
    assert questions.current is None
    assert questions.format_choices() == ""


def test_a_question_with_a_long_change_is_named_again_below_it() -> None:
    clock = Clock()
    questions = ConfirmationQueue(clock)
    questions.handle_event(asked("a", description="Create b.txt (60 lines)", diff="+x\n" * 60))
    clock.time += 1

    assert questions.format_choices() == "Create b.txt (60 lines)? [y] yes · [n] no"


def test_a_question_cannot_drive_the_terminal() -> None:
    text = paint_question(details(command="echo \x1b[2J; rm\u202e", description="Run\r\x1b]0;x\x07"), PLAIN)

    assert "\x1b" not in text
    assert "\r" not in text
    assert "\u202e" not in text


def test_a_plain_answer_that_is_not_offered_is_a_no_with_its_words() -> None:
    assert parse_answer("y", details()).approved
    assert parse_answer("s", details(grant="x")).scope == "session"
    assert not parse_answer("s", details()).approved
    assert not parse_answer("a", details(grant="x", locked=True)).approved
    assert parse_answer("use tabs", details()).reason == "use tabs"
    assert parse_answer(None, details()).reason == ""


def test_a_paste_is_folded_and_sent_whole_even_when_it_holds_a_chip() -> None:
    pastes = Pastes()
    short = "one\ntwo"
    first = pastes.fold("[pasted 9 lines #2]\n" * 9)
    second = pastes.fold("x\n" * 9)

    assert pastes.fold(short) == short
    whole = "a " + "[pasted 9 lines #2]\n" * 9 + " b " + "x\n" * 9
    assert pastes.unfold(f"a {first} b {second}") == whole


def test_files_are_attached_by_name_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "two words.txt").write_text("spaced")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    (tmp_path / "dir").mkdir()
    text = 'see @a.txt. and @"two words.txt", @b.bin @p.png @dir me@a.txt @missing'

    found, problems = collect_mentions(text, tmp_path, read_file)

    assert [attached.name for attached in found] == ["a.txt", "two words.txt", "p.png"]
    assert found[2].image is not None
    assert found[2].image.media_type == "image/png"
    assert [problem.partition(" was")[0] for problem in problems] == ["@b.bin", "@dir"]


def test_joined_letters_stay_joined_in_prose_and_show_in_a_question() -> None:
    family = "👩\u200d👩\u200d👧"

    assert clean_prose(f"{family} می\u200cخواهم") == f"{family} می\u200cخواهم"
    assert clean_prose("r\u200dm \u200b\u202e👩\u200d\u200d👩") == "r\\u200dm \\u200b\\u202e👩\\u200d\\u200d👩"
    assert clean_lines(family) == "👩\\u200d👩\\u200d👧"


def test_blocks_bring_no_blank_lines_of_their_own() -> None:
    for text in ("| a |\n|---|\n| 1 |", "- a\n- b", "```py\nx\n```", "# Head", "> said", "1. one"):
        painted = PLAIN.paint_markdown(text)
        assert painted.strip("\n") + "\n" == painted, text


def test_a_diff_stands_side_by_side_with_its_numbers() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@\n same\n-old\n--- gone\n+new\n+more\n end\n"

    rows = [(pair.kind, pair.before, pair.after, pair.old, pair.new) for pair in parse_diff(diff)]

    assert rows == [
        ("head", "--- a/x", None, 0, 0),
        ("head", "+++ b/x", None, 0, 0),
        ("gap", "@@ -3,3 +3,4 @@", None, 0, 0),
        ("same", "same", "same", 3, 3),
        ("change", "old", "new", 4, 4),
        ("change", "-- gone", "more", 5, 5),
        ("same", "end", "end", 6, 6),
    ]


def test_a_wide_terminal_shows_both_sides_and_a_narrow_one_the_unified_form() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"

    assert "1 - old" in Painter(lambda: 130, colour=False).paint_diff(diff)
    assert "1 - old\n     1 + new" in PLAIN.paint_diff(diff)


@given(text=st.text(), cells=st.integers(0, 40))
def test_padded_text_takes_exactly_the_cells_it_is_given(text: str, cells: int) -> None:
    from prompt_toolkit.utils import get_cwidth

    line = clean_lines(text.replace("\n", " "))
    assert get_cwidth(truncate_cells(line, cells)) <= cells
    assert get_cwidth(pad_cells(line, cells)) == cells


def status(**more: object) -> Status:
    known = {
        "session_id": "s",
        "title": "A 日本 title",
        "model": "qwen3",
        "provider": "openai",
        "base_url": "http://user:secret@box:8080/v1",
        "window": 8192,
        "mode": "code",
        "approval": "ask",
        "workspace": "/w",
        "used": 10,
        "limit": 100,
        "trigger": 80,
    }
    return Status(**{**known, **more})  # type: ignore[arg-type]


def test_the_status_line_says_what_matters_first_and_fits() -> None:
    shown = Transcript(PLAIN, lambda _: None)
    shown.apply_status(status())
    line = format_status_line(status(), shown, "main", 0, 200)

    assert line == " █░░░░░░░┊░ 10% · code·ask · qwen3 @ box:8080 · ⎇ main · A 日本 title"
    assert "secret" not in line
    assert "qwen3 @ box:8080 · sandbox full · ⎇ main" in format_status_line(
        status(sandbox="full"), shown, "main", 0, 200
    )
    shown.show(ContextUsage(used=90, limit=100, window=100, trigger=80, reused_share=0.5))
    assert "qwen3 @ box:8080 · cache 50%" in format_status_line(status(), shown, "", 0, 200)
    assert format_status_line(status(), shown, "main", 2, 30).startswith(" 2 queued · ████┊ 90% · code")
    assert all(len(format_status_line(status(), shown, "main", 0, width)) < width for width in range(8, 90))
    assert format_status_line(None, shown, "", 0, 80) == " connecting…"


def test_a_narrower_terminal_makes_more_rows_of_the_same_lines() -> None:
    assert count_extra_rows([0, 40, 41, 80, 81], 40) == 0 + 0 + 1 + 1 + 2
    assert count_extra_rows([], 40) == 0
    assert detect_rewrap({"TERM": "xterm-256color"})
    assert detect_rewrap({"TERM": "screen-256color", "TMUX": "x", "XTERM_VERSION": "XTerm(370)"})
    assert not any(
        detect_rewrap(found) for found in ({"TERM": "xterm", "XTERM_VERSION": "XTerm(370)"}, {"TERM": "linux"})
    )


def test_the_bar_marks_where_compression_starts() -> None:
    assert format_bar(0, 100, 50) == "░░░░░┊░░░░"
    assert format_bar(100, 100, 50) == "█" * 10
    assert format_bar(5, 0, 0) == ""
    assert join_parts(["a", "b" * 50], 20, "title") == f" a · {'b' * 13}…"
    assert join_parts(["a", "b", "c", "d" * 50], 20, "title") == " a · b · c"
    assert join_parts(["a"], 20, "t" * 50) == " a · ttttttttttttt…"
    assert join_parts(["a" * 10], 20, "t" * 50) == " aaaaaaaaaa"


def test_events_become_lines_and_nothing_stays_alive_after_the_turn() -> None:
    out: list[str] = []
    clock = Clock()
    shown = Transcript(PLAIN, out.append, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    assert "waiting for the model" in shown.live.render_lines(80, 5)[0]
    shown.show(ThinkingDelta(text="a\nb"))
    assert "thinking" in shown.live.render_lines(80, 5)[0]
    shown.show(TextDelta(text="One.\n\nTw"))
    assert out == ["  thought for 2 lines (Ctrl-O to show)\n", "● One.\n\n"]
    assert shown.live.render_lines(80, 5)[0] == "  Tw"
    assert "writing (0 s · ↓ 2 tokens) · Esc stops" in shown.live.render_lines(80, 5)[1]
    shown.show(ToolStarted(call_id="c", name="shell", summary="Run \x1b[31m"))
    shown.show(ToolOutput(call_id="c", text="".join(f"row {n}\n" for n in range(50))))
    assert shown.live.render_lines(80, 9)[1:] == [f"  │ row {n}" for n in range(45, 50)]
    image = ImagePart(media_type="image/png", data="A" * 4000)
    result = ToolResult(llm_content="all of it", exit_code=2, images=(image,))
    shown.show(ToolFinished(call_id="c", name="shell", status="ok", result=result, seconds=1.5))
    assert out[-3:] == ["  ✗ Run \\x1b[31m · exit 2 · 1.5 s\n", "  ▣ image/png, 3 kB\n", "  │ all of it\n"]
    shown.unfold()
    assert out[-2:] == ["  Run \\x1b[31m\n", "all of it\n"]
    shown.show(TurnFinished(reason="cancelled"))
    assert out[-1] == "  stopped\n"
    assert shown.live.render_lines(80, 5) == []


def test_the_seconds_left_for_reading_count_down_and_only_a_server_s_own_count_is_a_share() -> None:
    clock = Clock()
    shown = Transcript(PLAIN, lambda _: None, clock)
    shown.show(TurnStarted(message_id=1, text="hi"))
    shown.show(PrefillProgress(total=2000, seconds_left=20.0))
    assert "reading the prompt, about 20 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "reading the prompt, about 5 s left" in shown.live.render_lines(80, 5)[0]
    clock.time += 7
    assert "reading the prompt (22 s)" in shown.live.render_lines(80, 5)[0]
    clock.time += 15
    assert "waiting for the model (37 s)" in shown.live.render_lines(80, 5)[0]
    shown.show(PrefillProgress(processed=1000, total=2000, seconds_left=10.0))
    assert "reading the prompt 50 %, about 10 s left" in shown.live.render_lines(80, 5)[0]


def test_typed_lines_are_kept_with_their_session_and_damage_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    history = ScreenInputHistory(file, lambda: "s1")
    history.store_string("first\nline")
    history.store_string("second")
    with file.open("ab") as stream:
        stream.write(b'not json\n[1]\n{"text": 5}\n')

    assert list(ScreenInputHistory(file, lambda: None).load_history_strings()) == ["second", "first\nline"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert read_git_branch(tmp_path) == ""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "HEAD").write_text("ref: refs/heads/fix/one\n")
    (tmp_path / ".git").write_text("gitdir: real\n")
    assert read_git_branch(tmp_path) == "fix/one"
    (tmp_path / "real" / "HEAD").write_text("0123456789abcdef\n")
    assert read_git_branch(tmp_path) == "01234567"


class EmptyShelf:
    """Keeps nothing; the lines are handed to the picker."""

    async def load_items(self) -> list[SessionListItem]:
        return []

    async def archive(self, session_id: str, archived: bool) -> None:
        raise AssertionError

    async def delete(self, session_id: str) -> None:
        raise AssertionError


def test_a_session_of_a_copied_folder_says_where_it_comes_from() -> None:
    line = SessionListItem(session_id="x", title="Fix\x1b it", model="m", updated_at=0, messages=3, origin="/old/place")

    assert "from /old/place" in format_row(line, 100)
    assert "3 msgs" in format_row(line, 100)
    assert "\x1b" not in format_row(line, 100)
    assert Picker([line], EmptyShelf(), colour=False).find_matches() == [line]
