"""OAuth logins at MCP servers: the browser round trip, and the tokens, each bound to one address."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from ollm.domain.errors import OllmError
from ollm.extensions.mcp.http import check_address, open_address
from ollm.extensions.mcp.results import find_root_error, summarize_error
from ollm.extensions.mcp.settings import McpServer
from ollm.system.atomic import read_json, write_private_file

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthMetadata, OAuthToken

LOGIN_SECONDS = 300.0
EARLY_REFRESH_SECONDS = 30.0
CODE_CHALLENGE = "S256"
MAX_HEAD_BYTES = 16 * 1024
PAGE = b"<!doctype html><title>ollm</title><p>ollm has the answer: the terminal says whether you are logged in."
NO_PAGE = b"<!doctype html><title>ollm</title><p>The login failed. The terminal says why."


class LoginRequiredError(OllmError):
    """A server requires a login by a person."""


class LoginRecord(msgspec.Struct, omit_defaults=True, rename="camel"):
    """Record of one login, valid only for `url`."""

    url: str
    tokens: dict[str, Any] | None = None
    client: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    expires_at: float = 0.0


class LoginFile:
    """Logins by server name in a private file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def get(self, server: McpServer) -> LoginRecord | None:
        found = self._read_all().get(server.name)
        return found if found is not None and found.url == server.url and found.tokens else None

    def put(self, name: str, record: LoginRecord) -> None:
        self._write({**self._read_all(), name: record})

    def remove(self, name: str) -> bool:
        """Remove a login. Returns False if it does not exist."""
        known = self._read_all()
        removed = known.pop(name, None)
        if removed is not None:
            self._write(known)
        return removed is not None

    def _read_all(self) -> dict[str, LoginRecord]:
        return read_json(self.file, dict[str, LoginRecord], {})

    def _write(self, records: dict[str, LoginRecord]) -> None:
        write_private_file(self.file, msgspec.json.encode(records))


class LoginStorage:
    """Token storage for the SDK. `fresh`: earlier tokens are not used, and new ones wait for `keep`, so that a failed
    login does not change an earlier one."""

    def __init__(self, file: LoginFile, server: McpServer, *, fresh: bool = False) -> None:
        self._file = file
        self._name = server.name
        self._fresh = fresh
        self.record = (None if fresh else file.get(server)) or LoginRecord(url=server.url)
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        return OAuthToken.model_validate(self.record.tokens) if self.record.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.record.tokens = tokens.model_dump(mode="json", exclude_none=True)
        self.record.expires_at = time.time() + tokens.expires_in - EARLY_REFRESH_SECONDS if tokens.expires_in else 0.0
        if self.provider is not None and self.provider.context.oauth_metadata is not None:
            self.record.metadata = self.provider.context.oauth_metadata.model_dump(mode="json", exclude_none=True)
        if not self._fresh:
            self.keep()

    def keep(self) -> None:
        self._file.put(self._name, self.record)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        return OAuthClientInformationFull.model_validate(self.record.client) if self.record.client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.record.client = client_info.model_dump(mode="json", exclude_none=True)


Redirect = Callable[[str], Awaitable[None]]
Return = Callable[[], Awaitable["AuthorizationCodeResult"]]


def build_auth(
    storage: LoginStorage, server: McpServer, redirect_uri: str, redirect: Redirect, wait: Return | None = None
) -> OAuthClientProvider:
    """Build the SDK's login for this server from the data of an earlier login."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
    from pydantic import AnyUrl

    metadata = OAuthClientMetadata(client_name="ollm", redirect_uris=[AnyUrl(redirect_uri)])
    provider = OAuthClientProvider(server.url, metadata, storage, redirect, wait)
    provider.context.token_expiry_time = storage.record.expires_at or None
    if storage.record.metadata:
        provider.context.oauth_metadata = OAuthMetadata.model_validate(storage.record.metadata)
    storage.provider = provider
    return provider


def build_kept_auth(file: LoginFile, server: McpServer) -> OAuthClientProvider | None:
    """Return the saved login, renewed if no person is needed, or None if there is no saved login."""
    if file.get(server) is None:
        return None

    async def refuse(_url: str) -> None:
        raise LoginRequiredError(f"its login has expired: run `ollm mcp login {server.name}`")

    return build_auth(LoginStorage(file, server), server, "http://127.0.0.1/callback", refuse)


class BrowserReturn:
    """The local address to which the browser returns with the code."""

    def __init__(self) -> None:
        self.uri = ""
        self._found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def wait(self) -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                found = await self._found
        except TimeoutError as error:
            raise LoginRequiredError(f"Nobody logged in within {LOGIN_SECONDS:.0f} seconds.") from error
        if "code" not in found:
            why = found.get("error_description") or found.get("error") or "no code came back"
            raise LoginRequiredError(f"The login was refused: {why}.")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
            parts = head.decode("latin-1").split(" ", 2)
            address = urlsplit(parts[1]) if len(parts) > 1 else urlsplit("")
            found = {name: values[0] for name, values in parse_qs(address.query).items()}
            right = address.path == "/callback" and ("code" in found or "error" in found)
            writer.write(_render_page(found, right=right))
            await writer.drain()
            if right and not self._found.done():
                self._found.set_result(found)
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


def _render_page(found: dict[str, str], *, right: bool) -> bytes:
    status, body = ("200 OK", PAGE if "code" in found else NO_PAGE) if right else ("404 Not Found", b"")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def listen_for_browser(port: int = 0) -> AsyncIterator[BrowserReturn]:
    """Listen on loopback for the duration of the login."""
    browser = BrowserReturn()
    listener = await asyncio.start_server(browser.handle, "127.0.0.1", port, limit=MAX_HEAD_BYTES)
    browser.uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/callback"
    try:
        yield browser
    finally:
        listener.close()


def check_code_challenge(metadata: OAuthMetadata | None, server: McpServer) -> None:
    """Refuse a login whose code could be intercepted: the server must support PKCE with S256. A server that lists no
    methods is sent S256."""
    taken = metadata.code_challenge_methods_supported if metadata is not None else None
    if taken is not None and CODE_CHALLENGE not in taken:
        named = ", ".join(taken)[:80] or "none"
        raise LoginRequiredError(
            f"The login at {server.name} was not made: it takes PKCE as {named}; ollm uses {CODE_CHALLENGE} alone."
        )


async def log_in(server: McpServer, file: LoginFile, show: Redirect, port: int = 0) -> int:
    """Log in again, save the tokens, and return the number of tools offered."""
    from mcp import Client

    async def show_checked(url: str) -> None:
        check_address(url, server)
        check_code_challenge(auth.context.oauth_metadata, server)
        await show(url)

    try:
        async with listen_for_browser(port) as browser:
            storage = LoginStorage(file, server, fresh=True)
            auth = build_auth(storage, server, browser.uri, show_checked, browser.wait)
            mode = "legacy" if server.transport else "auto"
            line = open_address(server, lambda _status: None, lambda _why: None, auth)
            async with Client(line, mode=mode) as client:
                found = await client.list_tools() if client.server_capabilities.tools else None
    except OllmError:
        raise
    except Exception as error:
        if isinstance(root := find_root_error(error), OllmError):
            raise root from error
        raise LoginRequiredError(f"The login at {server.name} failed: {summarize_error(error)}.") from error
    if not storage.record.tokens:
        raise LoginRequiredError(f"{server.name} did not ask for a login.")
    storage.keep()
    return len(found.tools) if found else 0
