"""HTTP for model servers: httptools for `http://`, httpx2 for `https://` and proxies, and the lines both
stream.

A connection to a plain server is kept and used again. Redirects are never followed. Leaving a stream early closes its
connection at once, which is how a model server learns that nobody waits for the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from ollm.system.http.client import (
    BadResponse,
    CertificateNotTrusted,
    Client,
    ConnectFailed,
    ConnectionBroken,
    FirstByteTimeout,
    FullResponse,
    HttpFailure,
    PlainClient,
    Response,
    SilenceTimer,
    StreamStalled,
    Timeouts,
    TooLarge,
    parse_address,
)
from ollm.system.http.lines import ServerEvent, iter_lines, iter_server_events

__all__ = [
    "BadResponse",
    "CertificateNotTrusted",
    "Client",
    "ConnectFailed",
    "ConnectionBroken",
    "FirstByteTimeout",
    "FullResponse",
    "HttpFailure",
    "Response",
    "ServerEvent",
    "SilenceTimer",
    "StreamStalled",
    "Timeouts",
    "TooLarge",
    "iter_lines",
    "iter_server_events",
    "open_client",
]


def open_client(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
    socket_path: str | None = None,
    proxied: bool = False,
) -> Client:
    """Make a client for this base URL; nothing is connected yet. Raises ValueError for a bad URL. `proxied`
    says that the environment names a proxy for `http://`; a server on this machine is reached without one."""
    address = parse_address(url, socket_path)
    if address.secure or (proxied and not address.local):
        from ollm.system.http.secure import SecureClient

        return SecureClient(address, dict(headers or {}), timeouts or Timeouts())
    return PlainClient(address, dict(headers or {}), timeouts or Timeouts())
