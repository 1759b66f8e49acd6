"""An MCP server that says what a real one said: `recorded_mcp.py FILE WORKSPACE`.

FILE holds exchanges as tests/integration writes them down. A request is answered with what followed the same request
then; `{workspace}` stands for the folder.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

IGNORED_PARAMS = ("_meta", "protocolVersion", "capabilities", "clientInfo")


def make_key(method: str, params: Any) -> str:
    told = {key: value for key, value in (params or {}).items() if key not in IGNORED_PARAMS}
    return f"{method} {json.dumps(told, sort_keys=True)}"


def load_script(file: Path, workspace: str) -> dict[str, list[dict[str, Any]]]:
    text = file.read_text(encoding="utf-8").replace("{workspace}", json.dumps(workspace)[1:-1])
    script: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for exchange in json.loads(text)["exchanges"]:
        script[make_key(exchange["method"], exchange["params"])].append(exchange)
    return script


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def put_token(message: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """A notice of progress under the token that this client gave."""
    token = (params.get("_meta") or {}).get("progressToken")
    if message.get("method") != "notifications/progress" or token is None:
        return message
    return {**message, "params": {**message["params"], "progressToken": token}}


def main() -> None:
    script = load_script(Path(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message or "id" not in message:
            continue
        params = message.get("params") or {}
        known = script.get(make_key(message["method"], params))
        if not known:
            say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "not recorded"}})
            continue
        exchange = known.pop(0) if len(known) > 1 else known[0]
        for told in exchange["said"]:
            say(put_token(told, params))
        say({"jsonrpc": "2.0", "id": message["id"], **exchange["answer"]})


if __name__ == "__main__":
    main()
