"""A session that is not open: its context as the archive has it, and its snapshots."""

import pytest

from ollm.app import ClosedSession
from ollm.domain.errors import BusyError
from ollm.domain.events import Notice
from ollm.domain.messages import Message, TextPart
from tests.app.places import AppPlace


async def record(place: AppPlace, *texts: str, window: int | None = 8192, mode: str = "") -> str:
    recording = place.process().create_recording_service(lambda _: None)
    session = await recording.create_session("llama3", "ollama", workspace=str(place.workspace))
    changes: dict[str, object] = {"contextWindow": window} if window else {}
    if mode:
        changes["modeHistory"] = [{"from": "code", "to": mode, "trigger": "manual", "timestamp": "", "confidence": 1}]
    if changes:
        await recording.update_metadata(session, changes)
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        await recording.record_message(session, Message(role=role, parts=(TextPart(text),), timestamp=""))  # type: ignore[arg-type]
    await recording.close_session(session)
    return session


def closed(place: AppPlace) -> ClosedSession:
    return ClosedSession(place.process(), place.workspace)


async def test_the_prompt_of_a_session_holds_what_was_said_in_its_window(place: AppPlace) -> None:
    session = await record(place, "Build it", "Built.")
    scope = closed(place)
    prompt = await scope.build_prompt(scope.process.session_files.read(session).session)

    assert prompt.compute_budget().window == 8192
    assert [message.content for message in prompt.get_active_context().messages] == ["Build it", "Built."]
    assert prompt.mode == "code"


async def test_a_new_session_begins_as_the_settings_say(place: AppPlace) -> None:
    place.configure(provider={"contextWindow": 16_384, "model": "m"}, modes={"default": "plan"})
    prompt = await closed(place).build_prompt(None)

    assert prompt.compute_budget().window == 16_384
    assert prompt.mode == "plan"
    assert prompt.get_active_context().messages == ()
    assert prompt.used_tokens > 100


async def test_a_session_goes_on_in_the_mode_it_was_left_in(place: AppPlace) -> None:
    session = await record(place, "Plan it", "Planned.", mode="plan")
    scope = closed(place)

    assert (await scope.build_prompt(scope.process.session_files.read(session).session)).mode == "plan"


async def test_looking_makes_no_database(place: AppPlace) -> None:
    session = await record(place, "Hello", "Hi.")
    scope = closed(place)
    await scope.build_prompt(scope.process.session_files.read(session).session)

    assert not (place.workspace / ".ollm").exists()


async def test_a_snapshot_is_taken_and_restored(place: AppPlace) -> None:
    session = await record(place, "One", "1", "Two", "2")
    scope = closed(place)
    made = await scope.take_snapshot(session)
    assert made is not None
    assert made.session_id == session

    assert await closed(place).restore_snapshot(made.id) == session
    metadata = scope.process.session_files.read(session).session.metadata
    (step,) = metadata.context_history
    assert (step["step"], step["snapshotId"]) == ("restore", made.id)
    assert not metadata.mode_history


async def test_a_restore_goes_back_to_the_mode_of_the_snapshot(place: AppPlace) -> None:
    session = await record(place, "One", "1", "Two", "2")
    made = await closed(place).take_snapshot(session)
    assert made is not None
    recording = place.process().create_recording_service(lambda _: None)
    await recording.open_session(session)
    change = {"from": "code", "to": "debug", "trigger": "manual", "timestamp": "", "confidence": 1}
    await recording.update_metadata(session, {"modeHistory": [change]})
    with pytest.raises(BusyError):
        await closed(place).restore_snapshot(made.id)
    await recording.close_session(session)
    await closed(place).restore_snapshot(made.id)

    history = place.process().session_files.read(session).session.metadata.mode_history
    assert [entry["to"] for entry in history] == ["debug", "code"]


async def test_a_refusal_is_explained(place: AppPlace) -> None:
    place.configure(snapshots={"enabled": False})
    session = await record(place, "One", "1")
    scope = closed(place)
    assert scope.explain_refusal() == "No snapshot was taken."
    assert await scope.take_snapshot(session) is None
    assert "snapshots" in scope.explain_refusal().lower()
    scope.events.append(Notice(level="info", text="And more."))
    assert scope.explain_refusal().endswith(" And more.")
