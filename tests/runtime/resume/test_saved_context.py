"""The context as it stood at the end of a turn, there and back."""

import msgspec

from ollm.runtime.resume.saved_context import SavedContext, read_last_number, read_saved_context
from tests.runtime.prompt.test_prompt import Talk


def talked() -> Talk:
    talk = Talk()
    talk.entries.add_context("mine", "Use tabs.", source="user")
    talk.entries.add_context("theirs", "From a file.", source="system")
    talk.user("Build it")
    talk.step("all good")
    talk.prompt.build_request_messages()
    return talk


def test_what_was_kept_comes_back() -> None:
    talk = talked()
    talk.counter.calibrate(1.4, 5)

    kept = SavedContext.from_prompt(talk.prompt, 3)
    again = read_saved_context(msgspec.json.encode(kept))

    assert again == kept
    assert (kept.model, kept.window, kept.mode, kept.last_number) == ("m", 4096, "code", 3)
    assert kept.context == talk.prompt.get_active_context()
    assert [entry.key for entry in kept.entries] == ["mine"]
    assert kept.token_factor == 1.4
    assert kept.ledger == talk.prompt.ledger.last is not None
    assert (kept.goals_told, kept.armed) == (True, True)


def test_goals_the_model_has_not_heard_of_and_a_taken_snapshot_are_remembered() -> None:
    talk = talked()
    talk.prompt.goals.set("Ship it")
    talk.prompt.snapshot_armed = False

    kept = SavedContext.from_prompt(talk.prompt, 3)

    assert (kept.goals_told, kept.armed) == (False, False)


def test_what_cannot_be_read_is_none() -> None:
    assert read_saved_context(None) is None
    assert read_saved_context(b"") is None
    assert read_saved_context(b'{"lastNumber": 5}') is None
    assert read_last_number(b'{"lastNumber": 5, "other": 1}') == 5
    assert (read_last_number(None), read_last_number(b"{"), read_last_number(b"{}")) == (0, 0, 0)


def test_one_of_an_earlier_version_knows_of_no_goals_to_tell_and_no_snapshot() -> None:
    kept = msgspec.to_builtins(SavedContext.from_prompt(talked().prompt, 3))
    for name in ("goalsTold", "armed", "counted", "entries", "ledger", "forms", "tokenFactor"):
        del kept[name]

    again = read_saved_context(msgspec.json.encode(kept))

    assert again is not None
    assert (again.goals_told, again.armed, again.counted, again.entries) == (True, True, None, ())
