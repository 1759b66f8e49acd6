"""Episodes: the engine's own record of what a turn did."""

from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.services.episodes import make_episode
from tests.covers import covers


def call(name: str, args: dict[str, object], status: str = "ok", **more: object) -> ToolCallRecord:
    return ToolCallRecord(id="c", name=name, args=args, timestamp="", status=status, **more)  # type: ignore[arg-type]


@covers("W54")
def test_files_commands_decisions_and_errors_are_drawn_from_the_calls() -> None:
    calls = [
        call("read_file", {"path": "a.py"}),
        call("edit_file", {"path": "a.py"}),
        call("edit_file", {"path": "a.py"}),
        call("write_file", {"path": "b.py"}, "failed", error=ErrorInfo(type="FileExists", message="b.py is there")),
        call("shell", {"command": "pytest"}, result=RecordedResult(llm_content="", exit_code=1)),
        call("shell", {"command": "ls"}, result=RecordedResult(llm_content="", exit_code=0)),
        call("shell", {"command": "sleep 9"}, "failed", error=ErrorInfo(type="Timeout", message="after 1 s")),
        call("goal", {"action": "decision", "text": "use sqlite"}),
    ]

    episode = make_episode("s", 3, 0, "mend it", "done", "answered", calls, {"write_file", "edit_file"})

    assert episode.files == ("a.py",)
    assert [(c.command, c.outcome) for c in episode.commands] == [
        ("pytest", "exit 1"),
        ("ls", "ok"),
        ("sleep 9", "Timeout"),
    ]
    assert episode.decisions == ("use sqlite",)
    assert episode.errors == ("write_file: b.py is there", "shell: after 1 s")


def test_what_is_no_change_no_command_and_no_decision_is_left_out_and_long_texts_are_cut() -> None:
    calls = [
        call("edit_file", {}),
        call("edit_file", {"path": ""}),
        call("write_file", {"path": "b.py"}),
        call("edit_file", {"path": "a.py"}),
        call("edit_file", {"path": "b.py"}),
        call("shell", {}),
        call("shell", {"command": "x" * 301}, "cancelled"),
        call("read_file", {"command": "ls"}),
        call("goal", {"action": "decision", "text": "no"}, "failed"),
        call("goal", {"action": "set", "text": "no"}),
        call("read_file", {"action": "decision", "text": "no"}),
        call("goal", {"action": "decision"}),
        call("ls", {}, "failed", error=ErrorInfo(type="NotFound", message="y" * 400)),
    ]

    episode = make_episode("s", 3, 7, "r" * 2001, "a" * 2001, "loop", calls, {"write_file", "edit_file"})

    assert (episode.session_id, episode.number, episode.timestamp, episode.reason) == ("s", 3, 7, "loop")
    assert (episode.request, episode.answer) == ("r" * 2000, "a" * 2000)
    assert episode.files == ("b.py", "a.py")
    assert [(c.command, c.outcome) for c in episode.commands] == [("x" * 300, "cancelled")]
    assert episode.decisions == ("",)
    assert episode.errors == ("ls: " + "y" * 296,)
