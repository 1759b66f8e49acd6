"""What real model servers said, replayed through the command in the usual run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.messages import ImagePart, PromptMessage
from ollm.providers.server_errors import make_server_error
from ollm.runtime.model.model import RefusedPictures
from ollm.system.http import FullResponse
from tests.cli.running import Ended, Runner
from tests.integration.model_cases import CASES, SCENARIOS
from tests.integration.model_tap import CHAT_PATH, ReplayedModelServer
from tests.integration.recordings import load_model_server
from tests.integration.refusals import MEANINGS

RECORDINGS: dict[str, dict[str, Any]] = {name: load_model_server(name) for name in CASES}
REFUSALS = [(name, refused) for name, kept in RECORDINGS.items() for refused in kept["refusals"]]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_recorded_server_is_understood(tmp_path: Path, name: str, scenario: str) -> None:
    case = CASES[name]
    async with ReplayedModelServer(RECORDINGS[name]["scenarios"][scenario]) as server:
        runner = Runner(tmp_path, server)

        async def run(*arguments: str, **variables: str) -> Ended:
            return await runner.run(*arguments, **{"OLLM_MODEL": case.model, **variables})

        await SCENARIOS[scenario](case, run, runner.home)


@pytest.mark.parametrize(("name", "refused"), REFUSALS)
def test_a_refusal_means_what_was_asked_for(name: str, refused: str) -> None:
    kept = RECORDINGS[name]["refusals"][refused]
    error = make_server_error("here", FullResponse(status=kept["status"], headers={}, body=kept["body"].encode()))

    assert isinstance(error, MEANINGS[refused]), error
    if refused == "overflow":
        assert error.window == CASES[name].window, kept  # type: ignore[attr-defined]
    if refused in ("answer", "sum"):
        assert error.only_answer_too_long, kept  # type: ignore[attr-defined]
    if refused == "picture":
        seen = PromptMessage(role="user", content="", images=(ImagePart(media_type="image/png", data="AAAA"),))
        assert RefusedPictures().learn_refusal(error, (seen,))


@pytest.mark.parametrize(
    ("name", "refused"), [pair for pair in REFUSALS if pair[1] in ("overflow", "answer", "sum", "tools")]
)
async def test_a_turn_goes_on_after_a_refusal(tmp_path: Path, name: str, refused: str) -> None:
    """The recorded refusal as the answer to the first request, and then the greeting as it was streamed."""
    kept = RECORDINGS[name]
    pages = [page for page in kept["scenarios"]["doctor"] if page["path"] != CHAT_PATH]
    greeting = next(
        said for said in kept["scenarios"]["greeting"] if said["path"] == CHAT_PATH and said["status"] == 200
    )
    first = {"path": CHAT_PATH, **kept["refusals"][refused]}
    async with ReplayedModelServer([*pages, first, greeting]) as server:
        runner = Runner(tmp_path, server)
        done = await runner.run("-p", "Say hello.", OLLM_MODEL=CASES[name].model, OLLM_CALL_FORM="native")

    assert done.code == 0, done.err
    assert len(server.chats) >= 2
