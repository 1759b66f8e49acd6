"""Extensions that come with installed packages."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.servers.answers import Answer


def enable(runner: Runner, *names: str, **more: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"extensions": {"enabled": names}, **more}))


async def test_an_installed_package_brings_tools_context_search_and_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    metadata = site / "ollm_weather-2.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ollm-weather\nVersion: 2.0\nSummary: Weather.\n")
    (metadata / "entry_points.txt").write_text(
        "[ollm.tools]\nweather = ollm_weather:Weather\n[ollm.context]\nplace = ollm_weather:place\n"
        "[ollm.search_backends]\nalmanac = ollm_weather:Almanac\n[ollm.providers]\ncloud = ollm_weather:Cloud\n"
    )
    (site / "ollm_weather.py").write_text(
        dedent("""
        from ollm import SearchHit, Tool, ToolResult

        class Weather(Tool[None], frozen=True):
            "Tell the weather."
            name = "weather"
            def summary(self): return "weather"
            async def run(self, context, needs): return ToolResult(llm_content="rain")

        def place(context): return {"content": "IT IS ABOUT OSLO", "priority": 70}

        class Almanac:
            def __init__(self, context): pass
            async def search(self, query, count): return [SearchHit(title=f"about {query}", url="https://a.example")]

        class Cloud:
            name, base_url = "cloud", "cloud:"
            def __init__(self, context): pass
            async def models(self): return []
        """)
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    script = [Answer(calls=[("weather", {}), ("web_search", {"query": "fog"})]), "Rain."]
    async with running(tmp_path, script) as runner:
        listed = json.loads((await runner.run("extensions", "list", "--json")).out)
        assert {one["name"]: one["version"] for one in listed}["ollm-weather"] == "2.0"
        enable(runner, "ollm-weather", tools={"webSearch": {"backend": "almanac"}})
        done = await runner.run("-p", "weather?", "--yes")

    assert done.out == "Rain.\n", done.err
    first, second = runner.server.chats
    assert "IT IS ABOUT OSLO" in first["messages"][0]["content"]
    assert [message["content"] for message in second["messages"][-2:]] == ["rain", "1. about fog\n   https://a.example"]
