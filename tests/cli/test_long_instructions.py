"""A long AGENTS.md stands in every turn in the same words, whatever was learnt about counting since."""

from __future__ import annotations

from pathlib import Path

from bench.context_simulation.scenario import ScriptedTurn, Step
from bench.context_simulation.server import CountingServer

from tests.cli.command import ollm


class SomeTokenizer:
    """As far from our estimate as real vocabularies are."""

    def count(self, text: str) -> int:
        return max(1, round(len(text.encode()) / 4.2)) if text else 0


def test_it_is_shortened_the_same_way_in_every_process(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    rules = "".join(f"\n## Section {n}\n{'Some long rule about things. ' * 30}\n" for n in range(230))
    (project / "AGENTS.md").write_text(f"# Rules\nAlways use tabs.\n{rules}", "utf-8")
    server = CountingServer(SomeTokenizer(), 4096)
    with server:
        where = {
            "OLLM_PROVIDER": "openai",
            "OLLM_BASE_URL": server.base_url,
            "OLLM_MODEL": "counting",
            "OLLM_CONTEXT_WINDOW": "4096",
        }
        assert ollm("trust", str(project), home=home, cwd=project, **where).returncode == 0
        for number in range(1, 4):
            server.play(ScriptedTurn(number, "Go on.", (Step(text="Done. " * 20),)))
            again = ["--continue"] if number > 1 else []
            ended = ollm("-p", "Go on.", *again, home=home, cwd=project, **where)
            assert ended.returncode == 0, ended.stderr
    told = [heard.body["messages"][0]["content"] for heard in server.heard]

    assert "Always use tabs." in told[0]
    assert "## Section 9" in told[0]
    assert told[1] == told[2] == told[0]
