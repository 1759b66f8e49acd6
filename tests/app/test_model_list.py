"""All models there are, in one document."""

import json
from pathlib import Path

from tests.cli.running import running


async def test_installed_served_and_downloadable_models_are_told_apart(tmp_path: Path) -> None:
    async with running(tmp_path, [], models=("scripted", "other")) as runner:
        (runner.home / "models").mkdir(parents=True)
        (runner.home / "models" / "mine.gguf").write_bytes(b"GGUF" + bytes(64))

        listed = json.loads((await runner.run("models", "--json")).out)

    assert [file["name"] for file in listed["files"]] == ["mine"]
    assert [model["name"] for server in listed["servers"] for model in server["models"]] == ["scripted", "other"]
    assert not any(model["installed"] for model in listed["catalogue"])
