"""A picture that a model server refuses is left out, and the conversation goes on."""

import base64
import json
from pathlib import Path

import pytest

from ollm.domain.errors import ModelError, RequestRefusedError
from ollm.domain.messages import ImagePart, PromptMessage
from ollm.runtime.model.pictures import RefusedPictures
from tests.cli.running import Runner
from tests.extensions.raw_servers import configure, raw_entry
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

PICTURE = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()}
TOOLS = [{"name": "shot", "description": "A picture.", "inputSchema": {"type": "object"}}]
REFUSALS = {
    "vllm": (400, "At most 0 image(s) may be provided in one prompt."),
    "llama.cpp": (500, "image input is not supported - hint: you may need to provide the mmproj"),
    "a broken picture": (400, "Error in preprocessing prompt inputs: cannot identify the file"),
}


class BlindServer(ScriptedServer):
    """Refuses every request with a picture in it."""

    refusal = (400, "")

    def answer(self, request: Request) -> Answer:
        if "image_url" in json.dumps(request.body["messages"]):
            status, message = self.refusal
            return Answer(status=status, body={"error": {"message": message, "code": status}})
        return super().answer(request)


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refused_picture_ends_neither_the_turn_nor_the_session(tmp_path: Path, name: str) -> None:
    script = [Answer(calls=[("eye__shot", {})]), "Done.", "More."]
    async with BlindServer(script, kind="vllm", window=32_768) as server:
        server.refusal = REFUSALS[name]
        runner = Runner(tmp_path, server)
        answers = {"shot": {"content": [PICTURE, {"type": "text", "text": "taken"}]}}
        configure(runner, mcpServers={"eye": raw_entry(tmp_path, "eye", tools=TOOLS, answers=answers)})
        first = await runner.run("-p", "look", "--yes")
        second = await runner.run("-p", "again", "--continue")

    assert (first.code, first.out.strip()) == (0, "Done."), first.err
    assert (second.code, second.out.strip()) == (0, "More."), second.err
    assert first.err.count("refused a picture") == 1
    told = next(message for message in server.chats[-1]["messages"] if message["role"] == "tool")
    assert "taken" in told["content"]
    assert "[1 picture left out" in told["content"]


def test_only_what_was_refused_is_left_out() -> None:
    pictures = RefusedPictures()
    first, second = (
        PromptMessage(role="user", content="see", images=(ImagePart(media_type="image/png", data=data),))
        for data in ("AAAA", "BBBB")
    )
    assert not pictures.learn_refusal(ModelError("it fell over"), (first,))
    assert pictures.learn_refusal(RequestRefusedError("no"), (first,))
    assert not pictures.learn_refusal(RequestRefusedError("no"), (first,))

    kept = pictures.leave_out((first, second))

    assert [len(message.images) for message in kept] == [0, 1]
    assert kept[1] is second
