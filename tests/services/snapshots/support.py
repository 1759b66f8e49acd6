"""A place with snapshots in it, and contexts to take them of."""

from pathlib import Path
from typing import Any

from ollm.config.settings import SnapshotSettings
from ollm.domain.context import (
    ActiveContext,
    Checkpoint,
    Goal,
    GoalDecision,
    GoalStack,
    ReasoningStorage,
    ReasoningTrace,
)
from ollm.domain.events import Event
from ollm.services.snapshots import ContextState, SnapshotManager
from ollm.store.snapshot_files import SnapshotFiles
from tests.services import contexts as make

SESSION = "550e8400-e29b-41d4-a716-446655440000"
OTHER = "660e8400-e29b-41d4-a716-446655440001"


CONTEXT = ActiveContext(
    messages=tuple(make.talk(3)[1:]),
    checkpoints=(Checkpoint(id="k", text="Earlier.", message_ids=(1, 2), timestamp="", tokens=9),),
    goals=GoalStack(goals=(Goal(id="g", text="Ship", decisions=(GoalDecision(text="SQLite", locked=True),)),)),
    reasoning=ReasoningStorage(traces=(ReasoningTrace(message_id=4, text="Hm", tokens=1),), total_tokens=1),
    mode="debug",
)


def state(
    context: ActiveContext = CONTEXT, session: str = SESSION, words: dict[int, str] | None = None
) -> ContextState:
    return ContextState(
        session_id=session, model="llama3", window=8192, token_count=900, context=context, user_messages=words or {}
    )


class Shelf:
    def __init__(self, root: Path, **wanted: Any) -> None:
        self.root = root
        self.events: list[Event] = []
        self.files = SnapshotFiles(root)
        self.manager = SnapshotManager(self.files, SnapshotSettings(**wanted), emit=self.events.append)

    def file(self, snapshot_id: str, session: str = SESSION) -> Path:
        return self.root / session / "snapshots" / f"snapshot-{snapshot_id}.json"

    def kinds(self) -> list[type[Event]]:
        return [type(event) for event in self.events]
