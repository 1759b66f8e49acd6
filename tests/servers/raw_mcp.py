"""An MCP server without the SDK: it offers whatever a JSON file tells it, well formed or not.

`python tests/servers/raw_mcp.py FILE`. Keys of the file: tools, prompts, resources, templates (lists, sent as they are),
pageSize, instructions, startDelay (seconds), log (a file every message is appended to), answers (tool name → result).
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
    found = setup.get("answers", {}).get(name)
    if found is not None:
        return dict(found)
    return {"content": [{"type": "text", "text": f"{name} {json.dumps(given, sort_keys=True)}"}]}


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
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
