"""HTTP for model servers: h11 on asyncio streams for `http://`, httpx2 for `https://` and proxies, and the lines both
stream.

A connection to a plain server is kept and used again. Redirects are never followed. Leaving a stream early closes its
connection at once, which is how a model server learns that nobody waits for the answer.
"""

from ollm.system.http.client import Client, open_client
from ollm.system.http.failures import (
    BadResponse,
    BrokenOff,
    ConnectFailed,
    HttpFailure,
    NoFirstByte,
    NotTrusted,
    Stalled,
    TooLarge,
)
from ollm.system.http.lines import ServerEvent, lines, server_events
from ollm.system.http.response import Response, Whole
from ollm.system.http.timeouts import Patience, Timeouts

__all__ = [
    "BadResponse",
    "BrokenOff",
    "Client",
    "ConnectFailed",
    "HttpFailure",
    "NoFirstByte",
    "NotTrusted",
    "Patience",
    "Response",
    "ServerEvent",
    "Stalled",
    "Timeouts",
    "TooLarge",
    "Whole",
    "lines",
    "open_client",
    "server_events",
]
