"""What can go wrong in an exchange, told apart so that the caller can say what to do about it."""

from __future__ import annotations


class HttpFailure(Exception):  # noqa: N818 - an outcome the caller translates
    """Base of all. `started` tells whether any byte of a response had come: before that a request may be repeated."""

    started = False


class ConnectFailed(HttpFailure):
    """Nobody listens there, the name is unknown, or connecting took too long."""


class CertificateNotTrusted(ConnectFailed):
    """Somebody answers, with a certificate that nobody this machine trusts vouches for, or for another name."""


class FirstByteTimeout(HttpFailure):
    """Connected, but no sign of an answer in time."""


class StreamStalled(HttpFailure):
    """The answer began and then nothing came for too long."""

    started = True


class ConnectionBroken(HttpFailure):
    """The connection ended before the answer did."""

    def __init__(self, message: str, *, started: bool) -> None:
        super().__init__(message)
        self.started = started


class BadResponse(HttpFailure):
    """What came is not HTTP."""

    started = True


class TooLarge(HttpFailure):
    """A header, line or body over its limit."""

    started = True
