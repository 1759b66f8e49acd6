"""What clients have sent to go beside their next message: piece by piece, since a request holds 1 MiB at most."""

from __future__ import annotations

import base64
from uuid import uuid4

from ollm.daemon.bodies import AttachmentBody
from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.messages import ImagePart
from ollm.runtime.base import Attachment

MAX_ATTACHMENT_BYTES = 10_000_000
MAX_WAITING_BYTES = 32_000_000  # bytes that wait in one session


class TooLargeError(OllmError):
    """More than is kept."""


class PendingAttachments:
    """Of one session. Each waits until a message takes it."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[AttachmentBody, bytearray]] = {}

    def add(self, body: AttachmentBody) -> str:
        """A new one, or what follows in the one that is named; gives its id."""
        name = body.id or str(uuid4())
        _, content = self._find(name) if body.id else (body, bytearray())
        waiting = sum(len(found) for _, found in self._waiting.values())
        if len(content) + len(body.data) > MAX_ATTACHMENT_BYTES or waiting + len(body.data) > MAX_WAITING_BYTES:
            self._waiting.pop(name, None)
            raise TooLargeError(
                f"{body.name[:80]!r} is too large to attach: the limit is 10 MB per file, 32 MB in total."
            )
        content += body.data
        self._waiting[name] = (body, content)
        return name

    def take(self, ids: tuple[str, ...]) -> tuple[Attachment, ...]:
        """Those a message names, in its order; they wait no more."""
        found = [self._find(name) for name in ids]
        for name in ids:
            self._waiting.pop(name, None)
        return tuple(make_attachment(body, bytes(content)) for body, content in found)

    def _find(self, name: str) -> tuple[AttachmentBody, bytearray]:
        if name not in self._waiting:
            raise NotFoundError(f"No attachment {name[:80]}.", action="Send it again.")
        return self._waiting[name]


def make_attachment(body: AttachmentBody, content: bytes) -> Attachment:
    if body.media_type == "text/plain":
        return Attachment(name=body.name, text=content.decode("utf-8", "replace"))
    image = ImagePart(media_type=body.media_type, data=base64.b64encode(content).decode())
    return Attachment(name=body.name, image=image)
