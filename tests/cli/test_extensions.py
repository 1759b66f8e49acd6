"""`ollm extensions`, run as people run it."""

import json
from pathlib import Path
from typing import Any

from tests.cli.running import Runner, running
from tests.covers import covers
from tests.servers.answers import Answer

EXAMPLE = Path(__file__).parents[2] / "examples" / "word-count"


def enable(runner: Runner, *names: str, **more: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"extensions": {"enabled": names}, **more}))


@covers("S5.6")
async def test_the_example_is_added_used_disabled_and_removed(tmp_path: Path) -> None:
    script = [Answer(calls=[("count_words", {"path": "a.txt"})]), "Three.", "None."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("one two three")
        refused = await runner.run("extensions", "add", str(EXAMPLE))
        assert refused.code == 2
        assert "tools the model can call, under your policy: count_words" in refused.err
        assert "requests: files" in refused.err
        assert not (runner.home / "extensions").exists()

        added = await runner.run("extensions", "add", str(EXAMPLE), "--yes")
        assert added.code == 0, added.err
        listed = json.loads((await runner.run("extensions", "list", "--json")).out)
        assert [(one["name"], one["enabled"]) for one in listed] == [("word-count", True)]

        done = await runner.run("-p", "how many words?", "--yes")
        assert done.out == "Three.\n", done.err
        first = runner.server.chats[0]
        assert "count_words" in [tool["function"]["name"] for tool in first["tools"]]
        assert (
            "## From an extension: word-count.changed-files.newest\n\nChanged last:\n- a.txt"
            in (first["messages"][0]["content"])
        )
        assert runner.server.chats[1]["messages"][-1]["content"] == "a.txt has 3 words."

        assert (await runner.run("extensions", "disable", "word-count")).code == 0
        await runner.run("-p", "and now?")
        assert "count_words" not in json.dumps(runner.server.chats[2])
        assert (await runner.run("extensions", "enable", "word-count", "--yes")).code == 0
        assert (await runner.run("extensions", "remove", "word-count", "--yes")).code == 0
        assert not (runner.home / "extensions" / "word-count").exists()
        assert (await runner.run("extensions", "enable", "word-count", "--yes")).code == 2
