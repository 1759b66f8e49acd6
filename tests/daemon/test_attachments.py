"""What goes beside a message, sent before it."""

import base64
from pathlib import Path
from typing import Any

import pytest

from ollm.daemon.bodies import MAX_ATTACHMENT_BYTES, AttachmentBody, PendingAttachments, TooLargeError
from ollm.daemon.client import DaemonClient, open_remote
from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.events import AnyEvent, TextDelta
from ollm.domain.messages import ImagePart
from ollm.runtime.base import Attachment, Conversation
from tests.daemon.running import Daemon, daemon


class Client:
    """One terminal, as far as the daemon can tell."""

    def __init__(self, found: Daemon) -> None:
        self.client = DaemonClient(found.socket)
        self.body = {"workspacePath": str(found.workspace)}

    async def open(self, session: str | None = None) -> Conversation:
        return await open_remote(self.client, {**self.body, **({"sessionId": session} if session else {})})


async def heard(turn) -> list[AnyEvent]:
    async with turn as events:
        return [event async for event in events]


def text_of(events: list[AnyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("size", [100, 3_000_000])
async def test_pictures_and_texts_go_beside_a_message_whatever_their_size(tmp_path: Path, size: int) -> None:
    data = base64.b64encode(b"\x89PNG" + bytes(size)).decode()
    beside = (
        Attachment(name="look.png", image=ImagePart(media_type="image/png", data=data)),
        Attachment(name="notes.txt", text="ä note\n" * (size // 10)),
    )
    async with daemon(tmp_path, ["I see."]) as found:
        conversation = await Client(found).open()
        events = await heard(conversation.turn("What is this?", beside))
        (message, _) = await conversation.history(limit=2)
        await conversation.close()

    assert text_of(events) == "I see."
    kinds = [part["type"] for part in message["parts"]]
    assert kinds == ["text", "image", "text"]
    assert message["parts"][1] == {"type": "image", "mediaType": "image/png", "data": data}
    assert message["parts"][2]["text"] == f"\n\n[notes.txt]\n{beside[1].text}"


async def test_an_attachment_too_large_or_unknown_is_refused(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["I see."]) as found:
        conversation = await Client(found).open()
        huge = Attachment(name="huge.txt", text="x" * 10_500_000)
        with pytest.raises(OllmError, match="too large"):
            await heard(conversation.turn("read this", (huge,)))
        at = f"/sessions/{conversation.session_id}"
        unknown = await found.ask("POST", f"{at}/messages", {"text": "hi", "attachments": ["nothing"]})
        wrong = await found.ask("POST", f"{at}/attachments", {"name": "a", "mediaType": "text/html", "data": ""})
        broken = await found.ask("POST", f"{at}/attachments", {"name": "a", "mediaType": "text/plain", "data": "%"})
        await conversation.close()
    assert (unknown.status, wrong.status, broken.status) == (404, 422, 422)


def piece(data: bytes, name: str | None = None, kind: Any = "text/plain") -> AttachmentBody:
    return AttachmentBody(name="a.txt", media_type=kind, data=data, id=name)


def test_pieces_become_one_text_and_wait_no_more_once_taken() -> None:
    pending = PendingAttachments()
    name = pending.add(piece("é".encode()[:1]))
    assert pending.add(piece("é".encode()[1:] + b"!", name)) == name
    other = pending.add(piece(b"\x89PNG", kind="image/png"))
    picture, text = pending.take((other, name))

    assert (text.name, text.text, text.image) == ("a.txt", "é!", None)
    assert picture.image is not None
    assert (picture.image.media_type, picture.image.data) == ("image/png", "iVBORw==")
    with pytest.raises(NotFoundError, match=f"No attachment {name}") as found:
        pending.take((name,))
    assert found.value.action == "Send it again."


def test_one_file_and_all_together_have_their_limits() -> None:
    pending = PendingAttachments()
    name = pending.add(piece(bytes(MAX_ATTACHMENT_BYTES)))
    with pytest.raises(TooLargeError, match=r"'a.txt' is too large to attach: the limit is 10 MB per file, 32 MB"):
        pending.add(piece(b"x", name))
    with pytest.raises(NotFoundError):
        pending.take((name,))
    kept = [pending.add(piece(bytes(MAX_ATTACHMENT_BYTES))) for _ in range(3)]
    pending.add(piece(bytes(2_000_000)))
    with pytest.raises(TooLargeError):
        pending.add(piece(b"x"))
    assert len(pending.take(tuple(kept))) == 3
