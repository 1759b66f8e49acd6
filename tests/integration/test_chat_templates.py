"""Every chat template of llama.cpp: what reaches its model, and how much of a prompt its server can reuse.

RECORD=1 writes the table that docs/providers.md shows.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner
from tests.deadline import limit_seconds
from tests.integration import packages
from tests.integration.chat_templates import (
    MODEL,
    STEPS,
    TemplateServer,
    ask_for_thinking,
    fetch_templates,
    judge_prompts,
    make_word,
    serve_template,
)
from tests.integration.recordings import RECORDED, write_recording

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")

TURNS = (("Hello",), ("Read two files",), ("Read two more", "--continue"))
MIN_TEMPLATES = 65
MIN_PREFIX = 0.99
MAX_SERVERS = 2
MAX_SECONDS = 3600
# They show the tools right before the last message of the user, or instructions after it, so these move with each turn.
MOVING_PARTS = {"Mistral-Small-3.2-24B-Instruct-2506", "mistralai-Mistral-Nemo-Instruct-2407"}
MOVING_END = {"CohereForAI-c4ai-command-r-plus-tool_use"}
Found = dict[str, dict[str, Any]]


async def drive_template(place: Path, template: Path, weights: Path) -> dict[str, Any]:
    """Greet the model, which lets ollm look at its template, then drive two turns with two calls each."""
    place.mkdir()
    with serve_template(template, weights) as url:
        if not url:
            return {"served": False}
        async with TemplateServer(url) as server:
            runner = Runner(place, server)
            for step in range(STEPS):
                path = runner.workspace / f"{make_word('path', step)}.txt"
                path.write_text(f"{make_word('result', step)}\n", encoding="utf-8")
            # A busy machine may answer too late for the window to be asked.
            told = {"OLLM_MODEL": MODEL, "OLLM_CONTEXT_WINDOW": "8192"}
            turns = [await runner.run("-p", text, *more, **told) for text, *more in TURNS]
        found = {"served": True, "codes": [turn.code for turn in turns], "told": "".join(turn.err for turn in turns)}
        asked, prompts = ask_for_thinking(url), server.prompts[1:]
        return {**found, "asked": asked, **(judge_prompts(prompts) if len(prompts) == STEPS else {})}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Found:
    places, slots = tmp_path_factory.mktemp("templates"), asyncio.Semaphore(MAX_SERVERS)

    async def drive(name: str, template: Path) -> tuple[str, dict[str, Any]]:
        async with slots:
            return name, await drive_template(places / name, template, smollm2)

    async def drive_all() -> Found:
        return dict(await asyncio.gather(*(drive(*each) for each in fetch_templates().items())))

    with limit_seconds(MAX_SECONDS):
        return asyncio.run(drive_all())


def choose_served(found: Found) -> Found:
    return {name: each for name, each in found.items() if each["served"]}


def test_the_templates_are_served(found: Found) -> None:
    assert sum(each["served"] for each in found.values()) >= MIN_TEMPLATES


def test_no_turn_fails(found: Found) -> None:
    failed = {name: each["told"] for name, each in choose_served(found).items() if each["codes"] != [0, 0, 0]}

    assert failed == {}


def test_every_template_shows_tools_calls_and_results(found: Found) -> None:
    parts = ("tools", "calls", "results")

    assert {
        name: each for name, each in choose_served(found).items() if not all(each.get(part) for part in parts)
    } == {}


def test_a_template_that_leaves_a_part_out_is_named_once(found: Found) -> None:
    counts = {name: each["told"].count("its chat template leaves out") for name, each in choose_served(found).items()}

    assert max(counts.values()) == 1
    assert {"HuggingFaceTB-SmolLM3-3B", "google-gemma-2-2b-it"} <= {name for name, count in counts.items() if count}


def test_the_thinking_that_a_template_can_show_is_in_the_prompt(found: Found) -> None:
    served = choose_served(found)
    hidden = {name: each["asked"] for name, each in served.items() if each["asked"] != each["thinking"]}

    assert hidden == {}
    assert sum(each["thinking"] != "none" for each in served.values()) >= 30


def test_a_prompt_begins_with_the_one_before(found: Found) -> None:
    served = choose_served(found)
    by_design = MOVING_PARTS | MOVING_END | {name for name, each in served.items() if each["thinking"] == "turn"}

    assert {name for name, each in served.items() if each["inside"] < MIN_PREFIX} == MOVING_END
    assert {name for name, each in served.items() if each["across"] < MIN_PREFIX} == by_design


def test_the_table_of_templates_is_up_to_date(found: Found) -> None:
    rows = {
        name: {
            "calls": "text" if "tool calls as text" in each["told"] else "native",
            "system": "user" if "the system prompt" in each["told"] else "system",
            "thinking": each["thinking"],
            "across": f"{each['across']:.0%}",
        }
        for name, each in choose_served(found).items()
    }
    if packages.RECORD:
        write_recording("templates", rows, {})

    assert json.loads((RECORDED / "templates.json").read_text(encoding="utf-8")) == rows, "RECORD=1, then make docs"
