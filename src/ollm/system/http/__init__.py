"""HTTP for model servers: h11 on asyncio streams for `http://`, httpx2 for `https://` and proxies, and the lines both
stream.

A connection to a plain server is kept and used again. Redirects are never followed. Leaving a stream early closes its
connection at once, which is how a model server learns that nobody waits for the answer.
"""

from ollm.system.http.client import Client, open_client
from ollm.system.http.failures import (
    BadResponse,
    CertificateNotTrusted,
    ConnectFailed,
    ConnectionBroken,
    FirstByteTimeout,
    HttpFailure,
    StreamStalled,
    TooLarge,
)
from ollm.system.http.lines import ServerEvent, iter_lines, iter_server_events
from ollm.system.http.response import FullResponse, Response
from ollm.system.http.timeouts import SilenceTimer, Timeouts

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
