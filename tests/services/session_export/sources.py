"""A session to be exported, in memory."""

from collections.abc import Iterator

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord

AT = "2026-01-27T10:00:00.000Z"


def call(name: str = "ls", call_id: str = "c1", **more: object) -> ToolCallRecord:
    return ToolCallRecord(
        **{"id": call_id, "name": name, "args": {"path": "."}, "timestamp": AT, "status": "ok"} | more
    )  # type: ignore[arg-type]


class Source:
    def __init__(self, *messages: Message, calls: tuple[ToolCallRecord, ...] = (), **metadata: object) -> None:
        self.session = Session(
            session_id="s1",
            start_time=AT,
            last_activity=AT,
            model="m",
            provider="p",
            messages=(),
            tool_calls=(),
            metadata=SessionMetadata(**metadata),  # type: ignore[arg-type]
        )
        self._messages = messages
        self._calls = {one.id: one for one in calls}
        self._told: set[str] = set()

    def iter_messages(self) -> Iterator[Message]:
        return iter(self._messages)

    def find_call(self, call_id: str) -> ToolCallRecord | None:
        self._told.add(call_id)
        return self._calls.get(call_id)

    def iter_other_calls(self) -> Iterator[ToolCallRecord]:
        return (one for name, one in self._calls.items() if name not in self._told)


TALK = Source(
    Message(
        id=1, role="user", parts=(TextPart("Look <b>here</b>\n```py\nx"), ImagePart("image/png", "aGk=")), timestamp=AT
    ),
    Message(
        id=2,
        role="assistant",
        parts=(ThinkingPart("hm\nhm"), TextPart("Looking."), ToolCallPart("c1"), ToolCallPart("gone")),
        timestamp=AT,
        interrupted=True,
    ),
    Message(id=3, role="tool", parts=(ToolResultPart("c1"),), timestamp=AT),
    Message(id=4, role="tool", parts=(TextPart("a fact"),), timestamp=AT),
    calls=(
        call(result=RecordedResult(llm_content="short", full_output="a ``` b\x1b[31m", exit_code=2)),
        call("other", "c9", status="failed"),
    ),
    title="A  title <x>",
    workspace="/w",
)
