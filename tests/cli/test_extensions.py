"""`ollm extensions`, run as people run it."""

import json
from pathlib import Path
from typing import Any

from tests.cli.inside import Inside
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


def make_extension(inside: Inside, name: str = "mine") -> str:
    folder = inside.workspace / name
    folder.mkdir()
    (folder / "extension.yaml").write_text(
        f"name: {name}\nversion: '1'\ndescription: Does it.\nasks: [files]\nadds: {{context: {{words: 'code:words'}}}}\n"
    )
    (folder / "code.py").write_text("def words(context):\n    return 'x'\n")
    return name


def test_an_extension_is_added_disabled_enabled_and_removed(inside: Inside) -> None:
    assert inside.read("extensions") == "No extensions. Add one with `ollm extensions add DIRECTORY`.\n"
    assert inside.read_json("extensions", "list") == []
    name = make_extension(inside)
    said = inside.fail("extensions", "add", name, code=2)
    assert "mine 1: Does it." in said
    assert "Add mine and enable it for new conversations?" in said
    assert not (inside.home / "extensions").exists()
    done = inside.run("extensions", "add", name, "--yes")
    assert done.out == f"mine 1 installed in {inside.home / 'extensions' / 'mine'} and enabled.\n"
    (listed,) = inside.read_json("extensions", "list")
    assert listed == {
        "name": "mine",
        "version": "1",
        "description": "Does it.",
        "adds": [{"kind": "context", "name": "words"}],
        "asks": ["files"],
        "place": str(inside.home / "extensions" / "mine"),
        "enabled": True,
    }
    assert inside.read("extensions", "list").splitlines()[1].split() == ["mine", "1", "on", "words", "Does", "it."]
    assert "already exists" in inside.fail("extensions", "add", name, "--yes", code=2)
    assert inside.run("extensions", "add", name, "--yes", "--force").code == 0
    assert inside.read("extensions", "disable", name) == "Disabled mine.\n"
    assert "mine is not enabled." in inside.fail("extensions", "disable", name, code=2)
    assert inside.read("extensions", "list").splitlines()[1].split()[2] == "off"
    assert "Enable mine for new conversations?" in inside.fail("extensions", "enable", name, code=2)
    assert inside.read("extensions", "enable", name, "--yes") == "Enabled mine.\n"
    assert "Delete the extension mine?" in inside.fail("extensions", "remove", name, code=2)
    assert "Delete the extension" not in inside.fail("extensions", "remove", "nosuch", code=1)
    assert inside.read("extensions", "remove", name, "--yes") == f"Deleted {inside.home / 'extensions' / 'mine'}.\n"
    assert inside.read_json("extensions", "list") == []
    assert "No extension named mine" in inside.fail("extensions", "enable", name, "--yes", code=2)


def test_one_that_is_enabled_and_gone_is_listed_as_missing(inside: Inside) -> None:
    inside.configure("extensions: {enabled: [gone]}\n")

    assert inside.read("extensions", "list").splitlines()[1].split() == ["gone", "missing"]


def test_a_broken_one_is_told_beside_the_others(inside: Inside) -> None:
    inside.read("extensions", "add", make_extension(inside), "--yes")
    (inside.home / "extensions" / "broken").mkdir()
    (inside.home / "extensions" / "broken" / "extension.yaml").write_text("name: [")
    done = inside.run("extensions", "list", "--json")

    assert "broken" in done.err
    assert len(json.loads(done.out)) == 1
