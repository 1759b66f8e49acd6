"""The pages as files: plain modules, styles and icons out of `web/`, each with its ETag, under a strict policy.

The page names its files by their version, and modules name each other beside themselves: a browser keeps them for good
and asks for none of them twice, and a page never mixes the files of two versions.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from ollm.daemon.auth import PAGE_FILES, Application, Receive, Scope, Send
from ollm.domain.errors import NotFoundError

KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types ollm"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
ALL_STYLES, STYLES = "all.css", ("colours.css", "transcript.css", "app.css")  # one request instead of three
CHECKED, KEPT = "no-cache", "private, max-age=31536000, immutable"


def serve_pages(inner: Application) -> Application:
    """Answer for the pages' files without the routing the API has: a page asks for many of them at once."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if scope["method"] != "GET" or not (path == "/" or path.startswith(PAGE_FILES)):
            await inner(scope, receive, send)
            return
        version, _, name = ("", "", "index.html") if path == "/" else path.removeprefix(PAGE_FILES).rpartition("/")
        try:
            content, tag = read_file(name)
        except NotFoundError:
            tag = ""
        if tag and version in ("", make_version()):
            await send_file(scope, send, name, content, tag, KEPT if version else CHECKED)
        else:
            await inner(scope, receive, send)

    return answer


async def send_file(scope: Scope, send: Send, name: str, content: bytes, tag: str, caching: str) -> None:
    """The file, or 304 when the browser has it as it is."""
    known = b",".join(value for name, value in scope["headers"] if name == b"if-none-match").decode("latin-1")
    same = tag in [one.strip().removeprefix("W/") for one in known.split(",")]
    kind = f"{KINDS['.' + name.rpartition('.')[2]]}; charset=utf-8"
    about = {} if same else {"content-type": kind, "content-length": str(len(content))}
    headers = {**HEADERS, "cache-control": caching, "etag": tag, **about}
    encoded = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": 304 if same else 200, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if same else content})


@cache
def read_file(name: str) -> tuple[bytes, str]:
    """Its content and its ETag; a daemon has the files it was started with."""
    content = b"".join(find_file(one).read_bytes() for one in (STYLES if name == ALL_STYLES else (name,)))
    if name == "index.html":
        content = content.replace(PAGE_FILES.encode(), f"{PAGE_FILES}{make_version()}/".encode())
    return content, f'"{hashlib.sha256(content).hexdigest()[:20]}"'


@cache
def make_version() -> str:
    """Another one whenever a file of the pages is."""
    names = sorted(name for name in list_files() if name != "index.html" and name.endswith(tuple(KINDS)))
    return hashlib.sha256("".join(read_file(name)[1] for name in names).encode()).hexdigest()[:16]


def find_file(name: str) -> Traversable:
    """A page's own file, or the style that it shares with exported sessions; nothing else can be named."""
    found = list_files().get(name)
    if found is None or "." + name.rpartition(".")[2] not in KINDS:
        raise NotFoundError(f"No page {name[:80]!r}.")
    return found


@cache
def list_files() -> dict[str, Traversable]:
    from ollm.services.session_export.html_page import STYLE_FILES

    own = (files("ollm.daemon") / "web").iterdir()
    return {found.name: found for found in (*own, *STYLE_FILES)}
