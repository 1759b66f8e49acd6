"""Which of the tiny tasks a model begins rightly."""

import pytest

from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece, ChatRequest
from ollm.runtime.model.block_answer import FILE_BLOCK
from ollm.runtime.model.form_trials import CONF, MAX_TRIAL_TOKENS, TASKS, count_right_steps
from tests.runtime.model.test_tool_call_fallback import talking
from tests.servers.answers import Answer, Request

SEARCH, CHANGE, DELETE = TASKS


@pytest.mark.parametrize(
    ("task", "call", "right"),
    [
        (SEARCH, CallPiece("grep", {"pattern": "PORT"}), True),
        (SEARCH, CallPiece("shell", {"command": "grep -r PORT ."}), True),
        (SEARCH, CallPiece("read_file", {"path": "PORT"}), False),
        (SEARCH, CallPiece("grep", {"pattern": "port"}), False),
        (CHANGE, CallPiece("edit_file", {"path": "conf.py", "edits": [{"replacement": "LIMIT=20"}]}), True),
        (CHANGE, CallPiece("write_file", {"path": "conf.py", "content": "LIMIT = 20"}), True),
        (CHANGE, CallPiece("edit_file", {"path": "app.py", "edits": ["LIMIT = 20"]}), False),
        (CHANGE, CallPiece("edit_file", {"path": "conf.py", "edits": ["LIMIT = 21"]}), False),
        (CHANGE, CallPiece("shell", {"path": "conf.py", "command": "LIMIT = 20"}), False),
        (CHANGE, CallPiece("edit_file", "LIMIT = 20"), False),
        (CHANGE, CallPiece(FILE_BLOCK, {"path": "conf.py", "content": CONF.replace("12", "20"), "whole": True}), True),
        (CHANGE, CallPiece(FILE_BLOCK, {"path": "conf.py", "content": CONF, "whole": True}), False),
        (DELETE, CallPiece("shell", {"command": "rm old.txt"}), True),
        (DELETE, CallPiece("shell", {"command": "rm app.py"}), False),
        (DELETE, CallPiece("shell", {"command": "cat old.txt"}), False),
        (DELETE, CallPiece("delete", {"path": "rm old.txt"}), False),
    ],
)
def test_a_first_step_is_judged(task: object, call: CallPiece, right: bool) -> None:
    assert task.is_right(call) is right  # type: ignore[attr-defined]


async def test_right_first_steps_are_counted_in_the_form_that_is_tried() -> None:
    tools = tuple(
        ToolSchema(name=name, description=name, parameters={"type": "object", "properties": {}})
        for name in ("grep", "edit_file", "write_file", "shell")
    )

    def say(request: Request) -> Answer:
        asked = request.body["messages"][-1]["content"]
        if "PORT" in asked:
            return Answer(calls=[("grep", {"pattern": "PORT"})])
        return Answer(calls=[("shell", {"command": "rm old.txt"})]) if "old.txt" in asked else Answer(text="I cannot.")

    request = ChatRequest(model="scripted", messages=(), window=4096, tools=tools)
    async with talking(say) as (model, server):  # type: ignore[arg-type]
        facts = ModelFacts(key="k")
        assert await count_right_steps(model.provider, request, facts, "native") == 2
        assert {chat["max_tokens"] for chat in server.chats} == {MAX_TRIAL_TOKENS}
        assert await count_right_steps(model.provider, request, facts, "blocks") == 2
        assert "tools" not in server.chats[-1]


async def test_blocks_that_a_model_writes_by_itself_are_counted() -> None:
    def say(request: Request) -> Answer:
        asked = request.body["messages"][-1]["content"]
        if "PORT" in asked:
            return Answer(text="```bash\ngrep -rn PORT .\n```")
        changed = CONF.replace("12", "20")
        return Answer(text="```bash\nrm old.txt\n```" if "old.txt" in asked else f"conf.py\n```\n{changed}```")

    tools = tuple(
        ToolSchema(name=name, description=name, parameters={"type": "object", "properties": {}})
        for name in ("shell", "write_file", "edit_file")
    )
    request = ChatRequest(model="scripted", messages=(), window=4096, tools=tools)
    async with talking(say) as (model, _):  # type: ignore[arg-type]
        assert await count_right_steps(model.provider, request, ModelFacts(key="k"), "blocks") == 3
