"""The pages as files: plain modules, styles and icons out of `web/`, each with its ETag, under a strict policy."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any

from litestar import get
from litestar.params import Parameter
from litestar.response import Response

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
    "cache-control": "no-cache",
}
KnownTag = Annotated[str | None, Parameter(header="If-None-Match")]


@get("/", include_in_schema=False)
async def show_page(if_none_match: KnownTag = None) -> Response[bytes]:
    return make_file_response("index.html", if_none_match)


@get("/web/files/{name:str}", include_in_schema=False)
async def send_file(name: str, if_none_match: KnownTag = None) -> Response[bytes]:
    return make_file_response(name, if_none_match)


def make_file_response(name: str, known: str | None) -> Response[bytes]:
    """A file, or 304 when the browser has it as it is."""
    content = find_file(name).read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers: dict[str, Any] = {**HEADERS, "etag": tag}
    if known and tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
        return Response(b"", status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=KINDS["." + name.rpartition(".")[2]])


def find_file(name: str) -> Traversable:
    """A page's own file, or the style that it shares with exported sessions; nothing else can be named."""
    from ollm.services.session_export.html_page import STYLE_FILES

    shared = {found.name: found for found in STYLE_FILES}
    own = {found.name: found for found in (files("ollm.daemon") / "web").iterdir()}
    found = {**own, **shared}.get(name)
    if found is None or "." + name.rpartition(".")[2] not in KINDS:
        raise NotFoundError(f"No page {name[:80]!r}.")
    return found


PAGE_HANDLERS = [show_page, send_file]
