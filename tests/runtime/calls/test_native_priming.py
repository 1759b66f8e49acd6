"""Small models that call natively get the files with the request; large ones do not."""

from pathlib import Path

import pytest

from tests.cli.running import running, texts
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
