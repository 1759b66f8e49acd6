"""A home with sessions in it, and the command on it."""

import json

from ollm.domain.messages import Message, TextPart, ThinkingPart, ToolCallPart
from tests.cli.command import ollm
from tests.store.sessions.support import AT, Home, call, said


async def full_session(home: Home) -> str:
    service = home.service()
    session_id = await service.create_session("llama3.2:3b", "ollama", workspace="/some/where")
    await service.record_message(session_id, said("What is in <b>here</b>?\x1b[31m"))
    parts = (ThinkingPart(text="let me look"), TextPart(text="Code:\n```py\nx = 1"), ToolCallPart(id="c1"))
    await service.record_message(session_id, Message(role="assistant", parts=parts, timestamp=AT))
    key = "sk-proj-" + "a1B2" * 12
    await service.record_tool_call(
        session_id, call(result=f"````\nfile.txt\n<script>alert(1)</script> {key}", message_id=2)
    )
    await service.close_session(session_id)
    return session_id


def json_of(*arguments: str, home: Home):
    done = ollm(*arguments, home=home.root)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
