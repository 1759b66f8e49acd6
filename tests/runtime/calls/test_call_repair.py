"""Errors that lead on: the call that was probably meant is written out."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running
from tests.servers.answers import Answer


@pytest.mark.parametrize(
    ("tool", "arguments", "led"),
    [
        ("read_file", {"path": "src/*.py"}, 'Call glob {"pattern": "src/*.py"}'),
        ("read_file", {"path": "src/ap.py"}, 'Did you mean src/app.py? Call read_file {"path": "src/app.py"}'),
        ("read_file", {"path": "app.py"}, 'Did you mean src/app.py? Call read_file {"path": "src/app.py"}'),
        ("readfile", {"path": "src/app.py"}, "x = 1\n"),
        ("ReadFile", {"file_path": "src/app.py"}, "x = 1\n"),
        ("bash", {"command": "echo said"}, "said\n"),
        ("bash", {"script": "echo said"}, "write_todos."),
        ("read_file", {"pth": "src/app.py"}, "x = 1\n"),
        ("read_file", {"pth": "src/app.py", "path": "src/none.py"}, 'Call read_file {"path": "src/none.py"}'),
        ("raed_file", {"path": "src/app.py"}, 'Call read_file {"path": "src/app.py"}'),
        ("read_file", {"path": "quite/another.rs"}, "does not exist."),
        ("recall", {"queries": ["x"], "messageId": 3, "callId": "c1"}, 'Call recall {"queries": ["x"]}'),
        ("shell", {"command": "ls", "id": "1"}, 'Call shell {"command": "ls"}'),
        ("shell", {"command": "echo said", "id": ""}, "said\n"),
    ],
)
async def test_the_call_that_was_meant_is_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], led: str
) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", "native")
    async with running(tmp_path, [Answer(calls=[(tool, arguments)]), "Done."]) as runner:
        (runner.workspace / "src").mkdir()
        (runner.workspace / "src" / "app.py").write_text("x = 1\n")
        (runner.workspace / ".secret.py").write_text("x = 1\n")
        await runner.run("-p", "Look at it.", "--yes")

    assert runner.server.chats[1]["messages"][-1]["content"].endswith(led)
