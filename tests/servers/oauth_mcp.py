"""An MCP server over HTTP that wants an OAuth login, and the authorization server in front of it, on one port."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

TOOL = {"name": "whoami", "description": "Who is logged in", "inputSchema": {"type": "object", "properties": {}}}


class OAuthMcp:
    """What was granted. `life` is how many seconds a token is said to live."""

    def __init__(self) -> None:
        self.life = 3600
        self.challenges: dict[str, str] = {}
        self.valid: set[str] = set()
        self.refreshing: set[str] = set()
        self.asked: list[str] = []
        self.refuse_login = False
        self.open_to_all = False
        self.endpoints: dict[str, str] = {}  # what the metadata says in place of the truth
        self.methods = ["S256"]  # of PKCE that it says it takes
        self.is_broken = False  # whoever is logged in gets nothing
        self.root = ""

    @property
    def url(self) -> str:
        return f"{self.root}/mcp"

    def grant(self) -> dict[str, Any]:
        token, refresh = secrets.token_hex(8), secrets.token_hex(8)
        self.valid.add(token)
        self.refreshing.add(refresh)
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.life, "refresh_token": refresh}

    def may_enter(self, header: str) -> bool:
        return self.open_to_all or header.removeprefix("Bearer ") in self.valid

    def authorize(self, query: dict[str, str]) -> str:
        code = secrets.token_hex(8)
        self.challenges[code] = query["code_challenge"]
        told = {"error": "access_denied"} if self.refuse_login else {"code": code}
        return f"{query['redirect_uri']}?{urlencode({**told, 'state': query.get('state', '')})}"

    def exchange(self, form: dict[str, str]) -> tuple[int, Any]:
        if form.get("grant_type") == "refresh_token":
            if form["refresh_token"] not in self.refreshing:
                return 400, {"error": "invalid_grant"}
            self.refreshing.discard(form["refresh_token"])
            return 200, self.grant()
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        right = base64.urlsafe_b64encode(digest).decode().rstrip("=") == self.challenges.pop(form.get("code", ""), "")
        return (200, self.grant()) if right else (400, {"error": "invalid_grant"})

    def page(self, path: str) -> Any:
        if path.startswith("/.well-known/oauth-protected-resource"):
            return {"resource": self.url, "authorization_servers": [self.root]}
        if path.startswith("/.well-known/oauth-authorization-server"):
            named = {name: f"{self.root}/{name.split('_')[0]}" for name in ("token_endpoint",)}
            return {
                "issuer": self.root,
                "authorization_endpoint": f"{self.root}/authorize",
                "registration_endpoint": f"{self.root}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": self.methods,
                **named,
                **self.endpoints,
            }
        return None

    def call(self, message: dict[str, Any]) -> Any:
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                info = {"name": "safe", "version": "1"}
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                return {"tools": [TOOL]}
            case "tools/call":
                return {"content": [{"type": "text", "text": "you are Ada"}]}
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: OAuthMcp

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        self.state.asked.append(f"GET {address.path}")
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/authorize":
            self.send(302, None, Location=self.state.authorize(query))
        else:
            found = self.state.page(address.path)
            self.send(405 if address.path == "/mcp" else 404 if found is None else 200, found)

    def do_DELETE(self) -> None:
        self.send(200, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        self.state.asked.append(f"POST {self.path}")
        if self.path == "/register":
            self.send(201, {**json.loads(body), "client_id": "client-1", "token_endpoint_auth_method": "none"})
        elif self.path == "/token":
            self.send(*self.state.exchange({name: values[0] for name, values in parse_qs(body).items()}))
        elif not self.state.may_enter(self.headers.get("authorization", "")):
            self.send(401, {"error": "no token"}, **{"WWW-Authenticate": "Bearer"})
        elif self.state.is_broken:
            self.send(500, {"error": "no database"})
        else:
            self.answer(json.loads(body))

    def answer(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.send(202, None)
            return
        result = self.state.call(message)
        error = {"error": {"code": -32601, "message": "unknown method"}}
        self.send(200, {"jsonrpc": "2.0", "id": message["id"], **({"result": result} if result is not None else error)})

    def send(self, status: int, document: Any, **headers: str) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve_oauth_mcp(handler: type[Handler] = Handler) -> Iterator[OAuthMcp]:
    state = OAuthMcp()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (handler,), {"state": state}))
    state.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
