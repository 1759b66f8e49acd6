"""An MCP server without the SDK: it offers whatever a JSON file tells it, well formed or not.

`python tests/servers/raw_mcp.py FILE`. Keys of the file: tools, prompts, resources, templates (lists, sent as they are),
pageSize, cursors (given in turn, the last one for ever), instructions, greeting (the whole
answer to initialize), startDelay (seconds), log (a file every message is appended to), answers (tool name → result),
asks (tool name → parameters of elicitation/create, whose answer is the result), progress (tool name → steps, each with
a pause of `progressPause` seconds), logs (tool name → parameters of notifications/message).
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

setup: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
WIRE = {"templates": "resourceTemplates"}


def page(field: str, cursor: str | None) -> dict[str, Any]:
    entries, size = setup.get(field, []), setup.get("pageSize", 1000)
    if cursors := setup.get("cursors"):
        return {WIRE.get(field, field): entries, "nextCursor": cursors.pop(0) if len(cursors) > 1 else cursors[0]}
    start = int(cursor or 0)
    more = {"nextCursor": str(start + size)} if start + size < len(entries) else {}
    return {WIRE.get(field, field): entries[start : start + size], **more}


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    can: dict[str, Any] = {"tools": {"listChanged": True}}
    can |= {"prompts": {}} if "prompts" in setup else {}
    can |= {"resources": {}} if "resources" in setup or "templates" in setup else {}
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": can,
        "serverInfo": {"name": "raw", "version": "1"},
        "instructions": setup.get("instructions"),
    }


def call(params: dict[str, Any]) -> dict[str, Any]:
    name, given = params["name"], params.get("arguments") or {}
    report(name, params)
    if asked := setup.get("asks", {}).get(name):
        say({"id": "ask-1", "method": "elicitation/create", "params": asked})
        answered = json.loads(sys.stdin.readline())
        return {"content": [{"type": "text", "text": json.dumps(answered["result"], sort_keys=True)}]}
    found = setup.get("answers", {}).get(name)
    if found is not None:
        return found  # type: ignore[no-any-return]
    return {"content": [{"type": "text", "text": f"{name} {json.dumps(given, sort_keys=True)}"}]}


def report(name: str, params: dict[str, Any]) -> None:
    """What is told while a call runs."""
    token, steps = (params.get("_meta") or {}).get("progressToken"), setup.get("progress", {}).get(name, 0)
    for step in range(1, steps + 1):
        time.sleep(setup.get("progressPause", 0))
        told = {"progressToken": token, "progress": step, "total": steps, "message": f"step {step}"}
        say({"method": "notifications/progress", "params": told})
    for line in setup.get("logs", {}).get(name, ()):
        say({"method": "notifications/message", "params": line})


def say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def prompt(params: dict[str, Any]) -> dict[str, Any]:
    said = f"{params['name']} {json.dumps(params.get('arguments') or {}, sort_keys=True)}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}


def resource(params: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"text of {params['uri']}"}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method in LISTS:
        return page(LISTS[method], params.get("cursor"))
    known = {"initialize": initialize, "tools/call": call, "prompts/get": prompt, "resources/read": resource}
    return known[method](params) if method in known else {}


def main() -> None:
    time.sleep(setup.get("startDelay", 0))
    for line in sys.stdin:
        if setup.get("log"):
            with Path(setup["log"]).open("a", encoding="utf-8") as log:
                log.write(line)
        message = json.loads(line)
        if message.get("method") == "initialize" and setup.get("greeting"):
            say({"id": message["id"], **setup["greeting"]})
        elif "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            say({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
