"""What the API takes: limits, and nothing that it does not know."""

from typing import Any

import msgspec
import pytest

from ollm.daemon.bodies import (
    AnswerBody,
    AttachmentBody,
    ChangeBody,
    CommandBody,
    InitBody,
    MessageBody,
    OpenBody,
    Problem,
)


def decode(kind: type[Any], **fields: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(fields), type=kind)


def test_what_is_left_out_has_its_usual_value() -> None:
    opened = decode(OpenBody, workspacePath="/w")
    said = decode(AnswerBody, approved=True)

    assert (opened.session_id, opened.full, opened.force) == (None, False, False)
    assert (said.scope, said.reason, said.prefix) == ("once", "", False)
    assert decode(MessageBody, text="hi").attachments == ()
    assert decode(CommandBody, name="help").arguments == ""
    assert decode(ChangeBody) == ChangeBody(title=None, status=None)
    assert Problem(title="t", status=400, detail="d").type == "about:blank"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (MessageBody, {"text": "x" * 1_000_000, "attachments": ["a"] * 50}),
        (CommandBody, {"name": "n" * 200, "arguments": "x" * 100_000}),
        (InitBody, {"workspacePath": "/" * 4096}),
        (ChangeBody, {"title": "t" * 200, "status": "archived"}),
        (AnswerBody, {"approved": False, "reason": "r" * 10_000, "scope": "everywhere"}),
        (AttachmentBody, {"name": "n", "mediaType": "image/png", "data": "AAAA"}),
    ],
)
def test_as_much_as_fits_is_taken(kind: type[Any], fields: dict[str, Any]) -> None:
    assert isinstance(decode(kind, **fields), kind)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (MessageBody, {"text": ""}),
        (MessageBody, {"text": "x" * 1_000_001}),
        (MessageBody, {"text": "x", "attachments": ["a"] * 51}),
        (MessageBody, {"text": "x", "extra": 1}),
        (CommandBody, {"name": ""}),
        (CommandBody, {"name": "n" * 201}),
        (CommandBody, {"name": "n", "arguments": "x" * 100_001}),
        (InitBody, {"workspacePath": ""}),
        (InitBody, {"workspacePath": "/" * 4097}),
        (InitBody, {"workspacePath": "/w", "extra": 1}),
        (OpenBody, {"workspacePath": "/w", "extra": 1}),
        (ChangeBody, {"title": ""}),
        (ChangeBody, {"title": "t" * 201}),
        (ChangeBody, {"status": "active"}),
        (ChangeBody, {"extra": 1}),
        (AnswerBody, {"approved": True, "reason": "r" * 10_001}),
        (AnswerBody, {"approved": True, "scope": "forever"}),
        (AnswerBody, {"approved": True, "extra": 1}),
        (AttachmentBody, {"name": "n", "mediaType": "text/html", "data": "AAAA"}),
        (AttachmentBody, {"name": "n", "mediaType": "image/png", "data": "AAAA", "extra": 1}),
        (CommandBody, {"name": "n", "extra": 1}),
    ],
)
def test_anything_more_is_refused(kind: type[Any], fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(kind, **fields)
