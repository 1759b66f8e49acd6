import asyncio
import tempfile
from pathlib import Path

from ollm import (
    ActiveContext,
    Boundary,
    ChatCompressionService,
    ChatRecordingService,
    CompressionOptions,
    ConfirmationAnswer,
    ConfirmationDetails,
    ConfirmationRequested,
    ContextManager,
    ContextState,
    Event,
    Message,
    MessageBus,
    PolicyEngine,
    PolicyRequest,
    PromptMessage,
    Risk,
    RuleSet,
    SnapshotFiles,
    SnapshotManager,
    TextPart,
    read_rules,
)


async def recording(directory: Path) -> None:
    """Every record is on disk when its call returns."""
    service = ChatRecordingService.in_directory(directory)
    session_id = await service.create_session("qwen3:8b", "ollama")
    asked = Message(role="user", parts=(TextPart(text="Why is the sky blue?"),), timestamp="2026-01-01T00:00:00.000Z")
    print((await service.record_message(session_id, asked)).id)
    await service.close_session(session_id)
    print([(summary.title, summary.message_count) for summary in await service.list_sessions()])


async def context(directory: Path) -> None:
    """A context that was kept as a snapshot, made smaller, and taken back."""
    said = [
        PromptMessage(role="assistant" if number % 2 else "user", content=f"Line {number}. " * 40, sources=(number,))
        for number in range(1, 41)
    ]
    snapshots = SnapshotManager(SnapshotFiles(directory))
    state = ContextState(
        session_id="0b9e9c1e-3f0a-4e0e-8a53-5d1c3f7f2a10",
        model="qwen3:8b",
        window=8192,
        token_count=5000,
        context=ActiveContext(messages=tuple(said)),
    )
    kept = await snapshots.create_snapshot(state)
    smaller = await ChatCompressionService().compress(said, CompressionOptions(strategy="truncate", target_tokens=2500))
    print(smaller.original_token_count > smaller.compressed_token_count)
    if kept:
        print(len((await snapshots.restore_snapshot(kept.id)).messages))


def prompt() -> None:
    """Entries are ordered by priority, and stay where they are when their text is replaced."""
    entries = ContextManager()
    entries.add_context("style", "Write short functions.")
    entries.add_context("release", "The release is on Friday.", priority=80, source="hook")
    print(entries.get_system_prompt_additions())


def policy(workspace: Path) -> None:
    """Nothing is run to judge a call."""
    makes = {"param": "command", "operator": "program", "value": "make"}
    rules = read_rules([{"tool": "shell", "action": "allow", "conditions": [makes]}])
    engine = PolicyEngine(RuleSet(rules=rules), Boundary.around(workspace))
    for line in ("make test", "make test && rm -rf /"):
        verdict = engine.evaluate(PolicyRequest(tool="shell", params={"command": line}, risk=Risk.HIGH))
        print(line, "→", verdict.decision)


async def confirmation() -> None:
    """Whoever listens answers; the first answer wins."""
    bus = MessageBus()

    def answer(event: Event) -> None:
        if isinstance(event, ConfirmationRequested):
            bus.respond(event.correlation_id, ConfirmationAnswer(approved=True))

    bus.subscribe(answer)
    question = ConfirmationDetails(call_id="c1", tool="shell", description="Run make", risk=Risk.HIGH, reason="it asks")
    print((await bus.request(question, timeout=5)).approved)


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        await recording(Path(directory) / "sessions")
        await context(Path(directory) / "snapshots")
        policy(Path(directory))
    prompt()
    await confirmation()


asyncio.run(main())
