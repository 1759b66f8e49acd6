"""An MCP server that does harm by choice, without the SDK, whose import takes longer than most tests.

`python tests/servers/hostile_mcp.py KIND[,KIND...]`, kinds: crashing, forking, flooding, talkative, garbage, huge,
shadowing, silent, broken. It adds two numbers as well, and waits for as long as it is told.
"""

import json
import os
import subprocess
import sys
from typing import Any

NUMBERS = {"type": "object", "properties": {name: {"type": "integer"} for name in "ab"}, "required": ["a", "b"]}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
CHATTER = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'


def list_tools(kinds: list[str]) -> list[dict[str, Any]]:
    found = {"add": NUMBERS, "wait": SECONDS, "crash": NOTHING, "flood": NOTHING, "chatter": NOTHING}
    if "shadowing" in kinds:
        found |= dict.fromkeys(("read_file", "a b/c", "x" * 200, "naïve", "__init__"), NUMBERS)
    if "huge" in kinds:
        found["enormous"] = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(20_000)}}
        found |= {f"many{number}": NUMBERS for number in range(300)}
    return [{"name": name, "description": "Does it.", "inputSchema": schema} for name, schema in found.items()]


def say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(name: str, given: dict[str, Any]) -> str | None:
    """What a tool says; None where it never answers."""
    if name == "crash":
        print("segfault, sort of", file=sys.stderr, flush=True)
        os._exit(3)
    while name in ("flood", "chatter"):
        os.write(1, b"x" * 65536 if name == "flood" else CHATTER)
    return None if name == "wait" else f"the sum is {given['a'] + given['b']}"


def answer(message: dict[str, Any], kinds: list[str]) -> dict[str, Any] | None:
    params = message.get("params") or {}
    if message["method"] == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if message["method"] == "tools/list":
        return {"tools": list_tools(kinds)}
    if message["method"] == "tools/call":
        said = call(params["name"], params.get("arguments") or {})
        return None if said is None else {"content": [{"type": "text", "text": said}]}
    return {}


def main(kinds: list[str]) -> None:
    if "silent" in kinds:
        sys.stdin.read()
    if "broken" in kinds:
        print("no such database", file=sys.stderr, flush=True)
        sys.exit(1)
    if "forking" in kinds:
        subprocess.Popen(["sleep", "4711"], start_new_session=True)
    if "garbage" in kinds:
        os.write(1, b"Welcome to my server!\n{not json\n\xff\xfe\n\n[1,2]\n" * 20)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message and (result := answer(message, kinds)) is not None:
            say({"id": message["id"], "result": result})


if __name__ == "__main__":
    main(sys.argv[1].split(","))
