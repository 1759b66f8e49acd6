"""Skills: told in a line each, read when they fit, only from places the person trusts."""

import json
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import Runner, running
from tests.cli.terminal import ENTER, at_terminal
from tests.servers.answers import Answer
from tests.sizes import SOAK

RELEASE = """---
name: release
description: >
  How to make a release:
  version, changelog, tag
license: MIT
---
# Release

Run `make release` and nothing else.
"""


def plant(directory: Path, name: str, text: str = RELEASE) -> Path:
    file = directory / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def trust(runner: Runner) -> None:
    assert ollm("trust", str(runner.workspace), home=runner.home).returncode == 0


def prompt_of(runner: Runner, number: int = -1) -> str:
    return json.dumps(runner.server.chats[number]["messages"])


async def test_a_skill_is_a_line_in_the_prompt_and_read_on_demand(tmp_path: Path) -> None:
    read = [Answer(calls=[("read_file", {"path": ".ollm/skills/release/SKILL.md"})]), "I know how now."]
    async with running(tmp_path, [*read, "Nothing."]) as runner:
        plant(runner.workspace / ".ollm" / "skills", "release")
        trust(runner)
        done = await runner.run("-p", "make a release")

        first, second = prompt_of(runner, 0), prompt_of(runner)
        line = "- release: How to make a release: version, changelog, tag (.ollm/skills/release/SKILL.md)"
        assert line in first
        assert "make release` and nothing else" not in first
        assert "make release` and nothing else" in second
        assert (done.code, done.out) == (0, "I know how now.\n")
        assert ".ollm/skills/release/SKILL.md" in (await runner.run("-p", "/skills")).out
        (runner.workspace / ".ollm" / "skills" / "release" / "SKILL.md").write_text("changed since it was trusted")
        untrusted = await runner.run("-p", "make a release")
        assert "skills" not in prompt_of(runner)
        assert "not trusted" in untrusted.err


async def test_skills_of_the_home_are_read_anywhere_unasked_and_never_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = plant(home / "skills", "review", "# How to review\n\nBe kind.\n")
    (home / "config.yaml").write_text("policy: {approval: ask}\n")
    script = [
        Answer(calls=[("read_file", {"path": str(file)})]),
        Answer(calls=[("read_file", {"path": str(home / "config.yaml")})]),
        Answer(calls=[("write_file", {"path": str(file), "content": "Be rude."})]),
        "Done.",
    ]
    async with running(tmp_path, script) as runner:
        await runner.run("-p", "review it", "--yes")

        assert f"- review: How to review ({file})" in prompt_of(runner, 0)
        read, outside, written = (call["status"] for call in runner.sessions()[0]["toolCalls"])
        assert (read, outside, written) == ("ok", "denied", "denied")
        assert "Be kind." in prompt_of(runner)
        assert file.read_text().endswith("Be kind.\n")


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_many_skills_take_a_small_share_of_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."], window=8192) as runner:
        await runner.run("-p", "hi")
        for number in range(100):
            plant(runner.home / "skills", f"skill-{number:03}", f"---\ndescription: {'words ' * 100}\n---\nBody.")
        await runner.run("-p", "hi")

        without, with_skills = len(prompt_of(runner, 0)), len(prompt_of(runner))
        assert "skill-000" in prompt_of(runner)
        assert "more in .ollm/skills" in prompt_of(runner)
        assert with_skills - without <= 700


async def test_skills_are_listed_by_the_command_and_in_the_chat(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        nothing = await runner.run("skills")
        plant(runner.home / "skills", "release")
        plant(runner.workspace / ".ollm" / "skills", "deploy", "# How to deploy\n")
        ignored = await runner.run("skills", "list")
        trust(runner)
        listed = await runner.run("skills", "--json")
        async with at_terminal(runner, "--new", size=(110, 30)) as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("/skills" + ENTER)
            await terminal.wait_for("deploy", "release", "How to make a release")

    assert ".ollm/skills/NAME/SKILL.md" in nothing.err
    assert "deploy" not in ignored.out
    assert "not trusted" in ignored.err
    assert "release" in ignored.out
    assert [found["name"] for found in json.loads(listed.out)] == ["deploy", "release"]


async def test_a_model_that_writes_blocks_reads_a_skill_of_the_home_unasked_and_nothing_else_there(
    tmp_path: Path,
) -> None:
    file = plant(tmp_path / "home" / "skills", "review", "# How to review\n\nBe kind.\n")
    config = tmp_path / "home" / "config.yaml"
    config.write_text("provider: {callForm: blocks}\n")
    script = [f"```bash\ncat {file}\n```\n", f"```bash\ncat {file.parent}/../../config.yaml\n```\n", "I know how now."]
    async with running(tmp_path, script, kind="llama.cpp") as runner:
        await runner.run("-p", "what do I do in a review?", "--yes")

        assert f"- review: How to review ({file})" in prompt_of(runner, 0)
        assert "Be kind." in prompt_of(runner, 1)
        assert [call["status"] for call in runner.sessions()[0]["toolCalls"]] == ["ok", "denied"]
