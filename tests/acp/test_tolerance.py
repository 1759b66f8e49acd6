"""Small mistakes of an editor are tolerated; others are answered in words."""

import json
from pathlib import Path

from tests.acp.editor import EDIT, raw_agent, variables
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

HELLO = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}}}


def ask(number: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


async def test_parameters_left_out_an_answer_of_nothing_and_a_stop_that_wants_an_answer(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    script = [EDIT, "Done.", Answer(text="word " * 4000, pace=0.05)]
    async with ScriptedServer(script) as server, raw_agent(variables(tmp_path, server.base_url)) as agent:
        agent.write(ask(1, "initialize", **HELLO), ask(2, "session/list"))
        assert (await agent.answer(2))["result"]["sessions"] == []
        agent.write(ask(3, "session/new", cwd=5))
        wrong = (await agent.answer(3))["error"]
        assert wrong["code"] == -32602
        assert wrong["message"] == "Invalid params: cwd: Input should be a valid string; mcpServers is required."
        assert "http" not in json.dumps(wrong)
        agent.write(ask(4, "session/new", cwd=str(tmp_path), mcpServers=[]))
        session = (await agent.answer(4))["result"]["sessionId"]
        text = {"type": "text", "text": "change it"}
        agent.write(ask(5, "session/prompt", sessionId=session, prompt=[text]))
        written = ""
        while (message := await agent.read()).get("id") != 5 or "method" in message:
            if message.get("method") == "session/request_permission":
                chosen = {"outcome": {"outcome": "selected", "optionId": "once"}}
                agent.write({"jsonrpc": "2.0", "id": message["id"], "result": chosen})
            elif message.get("method") == "fs/read_text_file":
                agent.write({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "new\ntwo\n"}})
            elif message.get("method") == "fs/write_text_file":
                written = message["params"]["content"]
                agent.write({"jsonrpc": "2.0", "id": message["id"]})
        assert written == "new\nthree\n"
        agent.write(ask(6, "session/prompt", sessionId=session, prompt=[text]))
        while (await agent.read()).get("params", {}).get("update", {}).get("sessionUpdate") != "agent_message_chunk":
            pass
        agent.write(ask(7, "session/cancel", sessionId=session))
        assert (await agent.answer(7))["result"] is None
        assert (await agent.answer(6))["result"]["stopReason"] == "cancelled"
