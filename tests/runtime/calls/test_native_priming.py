"""Small models that call natively get the files with the request; large ones do not."""

from pathlib import Path

import pytest

from ollm.domain.lazy import Lazy
from ollm.domain.model_facts import ModelFacts
from ollm.providers.model_families import BLOCKS_BELOW
from ollm.runtime.calls.native_priming import prime_native_request
from ollm.runtime.model.model import Model
from tests.cli.running import running, texts
from tests.runtime.calls.test_project_files import Place
from tests.runtime.model.test_block_answer import Speaking
from tests.servers.answers import Answer


@pytest.mark.parametrize(("model", "primed"), [("tiny-1.7b", True), ("large-32b", False), ("nameless", False)])
async def test_a_small_model_that_calls_natively_is_shown_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, primed: bool
) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", "native")
    call = Answer(calls=[("write_file", {"path": "conf.py", "content": "LIMIT = 20\n", "overwrite": True})])
    async with running(tmp_path, [call, "Done."], model=model) as runner:
        (runner.workspace / "conf.py").write_text("LIMIT = 12\n")
        (runner.workspace / ".env").write_text("KEY=4711\n")
        await runner.run("-p", "Change LIMIT in conf.py to 20, not .env.", "--yes", "--model", model)

    first, second = runner.server.chats[:2]
    said = next(message for message in first["messages"] if message["role"] == "user")
    assert ("conf.py:\n```\nLIMIT = 12\n```" in said["content"]) is primed
    assert "4711" not in str(first["messages"])
    assert second["messages"][: len(first["messages"])] == first["messages"], "prefix-stable"
    assert first["tools"]
    assert texts(runner.sessions()[0])[0] == ("user", "Change LIMIT in conf.py to 20, not .env.")
    if primed:
        assert (runner.workspace / "conf.py").read_text() == "LIMIT = 20\n"


@pytest.mark.parametrize(
    ("form", "parameters", "name", "primed"),
    [
        ("native", BLOCKS_BELOW - 1, "m", True),
        ("unknown", BLOCKS_BELOW - 1, "m", True),
        ("text", BLOCKS_BELOW - 1, "m", False),
        ("blocks", BLOCKS_BELOW - 1, "m", False),
        ("native", BLOCKS_BELOW, "m", False),
        ("native", None, "m", False),
        ("native", None, "tiny-1.7b", True),
        ("native", BLOCKS_BELOW, "tiny-1.7b", False),
    ],
)
async def test_how_small_a_model_is_says_its_server_or_else_its_name(
    tmp_path: Path, form: str, parameters: float | None, name: str, primed: bool
) -> None:
    place = Place(tmp_path / "w")
    place.write("conf.py", "LIMIT = 12\n")
    facts = ModelFacts(key="k", call_form=form, parameters=parameters)  # type: ignore[arg-type]
    try:
        told = await prime_native_request(
            Lazy(lambda: place.files), Model(Speaking(), name, 4096, facts), "Change LIMIT in conf.py to 20."
        )
    finally:
        place.discovery.close()

    assert ("LIMIT = 12" in told) is primed
    assert bool(told) is primed
