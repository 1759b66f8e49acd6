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
