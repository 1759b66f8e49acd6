"""A session with every text passed through a function."""

import json

from ollm.domain.messages import ImagePart, Message, TextPart
from ollm.domain.tools import RecordedResult
from ollm.services.session_export.redacted import RedactedSession
from tests.services.session_export.sources import AT, Source, call


def hide(text: str) -> str:
    return text.replace("secret", "***")


SOURCE = Source(
    Message(id=7, role="user", parts=(TextPart("my secret"), ImagePart("image/secret", "secret")), timestamp=AT),
    calls=(
        call(
            "secret_tool",
            "secret-id",
            args={"deep": [{"x": "a secret"}], "id": "secret", "n": 5},
            result=RecordedResult(llm_content="secret out"),
        ),
    ),
    title="a secret title",
)


def test_texts_are_changed_and_ids_times_roles_and_pictures_are_not() -> None:
    redacted = RedactedSession(SOURCE, hide)

    (message,) = redacted.iter_messages()
    assert (message.id, message.role, message.timestamp, message.text) == (7, "user", AT, "my ***")
    assert message.parts[1] == ImagePart("image/secret", "secret")
    assert redacted.session.metadata.title == "a *** title"
    assert redacted.session.session_id == "s1"


def test_calls_are_changed_to_the_bottom_and_found_by_their_id() -> None:
    redacted = RedactedSession(SOURCE, hide)
    assert [found.name for found in redacted.iter_other_calls()] == ["***_tool"]

    found = redacted.find_call("secret-id")

    assert found is not None
    assert found.args == {"deep": [{"x": "a ***"}], "id": "secret", "n": 5}
    assert found.result is not None
    assert found.result.llm_content == "*** out"
    assert redacted.find_call("unknown") is None


def test_the_document_is_a_session_without_secrets() -> None:
    fresh = Source(*SOURCE.iter_messages(), calls=(call("x", "c1", result=RecordedResult(llm_content="secret")),))

    document = json.loads(b"".join(RedactedSession(fresh, hide).iter_document()))

    assert document["sessionId"] == "s1"
    assert [message["id"] for message in document["messages"]] == [7]
    assert document["toolCalls"][0]["result"]["llmContent"] == "***"
