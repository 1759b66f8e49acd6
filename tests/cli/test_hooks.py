"""`ollm hooks`: the list, and those of Claude Code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.running import running
from tests.servers.answers import Answer

SCRIPTS = Path(__file__).parents[1] / "extensions" / "claude"


def entry(script: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    command = f"{sys.executable} {SCRIPTS / script}"
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 60, **more}]}


async def test_hooks_of_claude_code_are_imported(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("shell", {"command": "rm -rf x"})]), "Done."]) as runner:
        settings = runner.workspace / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry("command_guard.py", "Bash")]}, "model": "x"}))
        imported = await runner.run("hooks", "import", str(settings))
        listed = await runner.run("hooks", "list")
        done = await runner.run("-p", "clean", "--yes", "-o", "json")

    assert imported.code == 0, imported.err
    assert "PreToolUse" in imported.out
    assert "command_guard.py" in listed.out
    (call,) = json.loads(done.out)["toolCalls"]
    assert call["status"] == "denied"
