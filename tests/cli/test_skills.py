"""What a model is given besides the messages: skills, a map of the project, messages found by meaning."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.command import ollm
from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.servers.answers import Answer
from tests.sizes import SOAK
from tests.store.sessions.support import Home

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

    assert ".ollm/skills/NAME/SKILL.md" in nothing.out
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
    script = [f"```run\ncat {file}\n```\n", f"```run\ncat {file.parent}/../../config.yaml\n```\n", "I know how now."]
    async with running(tmp_path, script, kind="llama.cpp") as runner:
        await runner.run("-p", "what do I do in a review?", "--yes")

        assert f"- review: How to review ({file})" in prompt_of(runner, 0)
        assert "Be kind." in prompt_of(runner, 1)
        assert [call["status"] for call in runner.sessions()[0]["toolCalls"]] == ["ok", "denied"]


ROOM = 200


async def parts(runner: Runner) -> dict[str, int]:
    shown = await runner.run("context", "show", "--json")
    return {part["name"]: part["tokens"] for part in json.loads(shown.out)["parts"]}


def system(runner: Runner, request: int) -> str:
    return str(runner.server.chats[request]["messages"][0]["content"])


async def test_what_agents_files_say_is_counted(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        (runner.workspace / "AGENTS.md").write_text("Always say moo. " * 50)
        before = (await parts(runner))["context entries"]
        assert (await runner.run("trust")).code == 0

        assert before == 0
        assert (await parts(runner))["context entries"] > 100


SUBJECTS = (("cat", "kitten", "feline"), ("car", "vehicle", "van"), ("rain", "weather", "storm"))

FACT = "Our cat Biscuit limps."

TALK = [f"Part {number} of the report is ready now." for number in range(20)]


class Handler(BaseHTTPRequestHandler):
    """Embeds a text by the subjects it speaks of."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, asked["model"], self.headers.get("authorization")))  # type: ignore[attr-defined]
        rows = [
            [1.0 if any(word in text.lower() for word in words) else -0.1 for words in SUBJECTS] + [0.3]
            for text in asked["input"]
        ]
        ordered = [{"index": place, "embedding": row} for place, row in enumerate(rows)][::-1]
        body = json.dumps({"data": ordered}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Stay silent."""


@contextmanager
def embedding_server() -> Iterator[tuple[str, list[tuple[str, str, str | None]]]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def count_vectors(runner: Runner) -> int:
    with suppress(sqlite3.Error), closing(sqlite3.connect(runner.home / "index.db")) as connection:
        count: int = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
        return count
    return 0


async def recall_in_chat(runner: Runner, url: str, query: str, kind: str = "openai") -> str:
    """Resume a session, let its messages be embedded, and ask; the text of the last request to the model. The session
    is deleted at the end, and its vectors with it."""
    runner.home.mkdir(exist_ok=True)
    search = {"embeddingModel": "m", "type": kind, "baseUrl": f"{url}/v1", "apiKeyEnv": "EMBEDDING_KEY"}
    (runner.home / "config.yaml").write_text(json.dumps({"search": search}))
    session = await asyncio.to_thread(Home(runner.home).recorded, *TALK[:9], FACT, *TALK[9:])
    runner.server.script = ["Ready.", Answer(calls=[("recall", {"queries": [query]})]), "It limps."]  # type: ignore[attr-defined]
    async with at_terminal(
        runner, "chat", "--resume", session, "--yes", OLLM_PLAIN="1", EMBEDDING_KEY="key"
    ) as terminal:
        await terminal.wait_for("\n>")
        terminal.type("Go on.\n")
        await terminal.wait_for("Ready.")
        async with asyncio.timeout(120):
            while count_vectors(runner) < len(TALK) + 3:
                await asyncio.sleep(0.1)
        terminal.type("What is wrong with the pet?\n")
        await terminal.wait_for("It limps.")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
    said = json.dumps(runner.server.chats[-1]["messages"][-1])
    assert (await runner.run("sessions", "delete", session, "--yes")).code == 0
    assert count_vectors(runner) == 0
    return said


@pytest.mark.parametrize("kind", ["openai", "ollama"])
async def test_a_message_is_found_by_its_meaning_and_its_vector_goes_with_the_session(
    tmp_path: Path, kind: str
) -> None:
    with embedding_server() as (url, asked):
        async with running(tmp_path, []) as runner:
            said = await recall_in_chat(runner, url, "feline illness", kind)

    assert FACT in said
    assert set(asked) == {("/v1/embeddings", "m", "Bearer key")}


async def test_a_workspace_cannot_set_the_server(tmp_path: Path) -> None:
    with embedding_server() as (url, asked):
        async with running(
            tmp_path, ["Ready.", Answer(calls=[("recall", {"queries": ["feline"]})]), "Done."]
        ) as runner:
            settings = runner.workspace / ".ollm" / "config.yaml"
            settings.parent.mkdir()
            settings.write_text(json.dumps({"roles": {"embedding": f"{url}/m"}}))
            assert (await runner.run("trust")).code == 0
            await runner.run("-p", "Hello.", "--yes")
            done = await runner.run("-p", "Well?", "--continue", "--yes")

    assert "roles.embedding: can only be set in your own config file" in done.err
    assert asked == []


async def test_a_server_that_is_away_leaves_the_search_by_words(tmp_path: Path) -> None:
    with embedding_server() as (url, _):
        pass
    async with running(tmp_path, ["Ready.", Answer(calls=[("recall", {"queries": ["limps"]})]), "Done."]) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"roles": {"embedding": f"{url}/m"}}))
        await runner.run("-p", FACT, "--yes")
        done = await runner.run("-p", "Well?", "--continue", "--yes")

    assert done.code == 0
    assert FACT in json.dumps(runner.server.chats[-1]["messages"][-1])
