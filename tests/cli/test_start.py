"""The options of `chat` as data."""

from pathlib import Path
from typing import Any

import pytest

from ollm.cli.chat_options import OPTIONS
from ollm.cli.start import ChatArguments, build_settings_flags, check_grants
from ollm.domain.errors import OllmError, UsageError


def options(**given: Any) -> dict[str, Any]:
    return {"text": None, **{option.destination: option.value_when_absent for option in OPTIONS}, **given}


def test_nothing_given_is_a_new_look_at_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    start = ChatArguments.from_options(options())

    assert start == ChatArguments(workspace=tmp_path.resolve())
    assert not start.pick


def test_what_was_given_is_taken_over(tmp_path: Path) -> None:
    given = options(
        workspace=tmp_path, session="abcd", full=True, force=True, mode="plan", allow=("shell",), yes=True, text="hi"
    )
    start = ChatArguments.from_options(given)

    assert (start.session, start.full, start.force, start.mode, start.allow, start.yes, start.text, start.pick) == (
        *("abcd", True, True, "plan", ("shell",), True, "hi"),
        False,
    )


def test_a_resume_without_an_id_shows_the_list(tmp_path: Path) -> None:
    assert ChatArguments.from_options(options(workspace=tmp_path, session="")).pick


@pytest.mark.parametrize(
    "given", [{"new": True, "continue_": True}, {"new": True, "session": "abcd"}, {"session": "", "continue_": True}]
)
def test_only_one_way_to_begin_is_taken(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Use only one of --new, --resume and --continue") as found:
        ChatArguments.from_options(options(workspace=tmp_path, **given))
    assert found.value.action == "Give one of them."


def test_a_workspace_must_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere is not a directory\.") as found:
        ChatArguments.from_options(options(workspace=tmp_path / "nowhere"))
    assert found.value.action == "Choose the project directory with --workspace."


def test_settings_are_given_in_the_form_of_the_file() -> None:
    given = options(provider="openai", base_url="http://x", model="m", approval="yolo")

    assert build_settings_flags(given) == {
        "provider": {"type": "openai", "baseUrl": "http://x", "model": "m"},
        "policy": {"approval": "yolo"},
    }
    assert build_settings_flags(options()) == {}
    assert build_settings_flags(options(model="m")) == {"provider": {"model": "m"}}


def test_a_conversation_is_opened_as_asked(tmp_path: Path) -> None:
    start = ChatArguments(
        workspace=tmp_path, session="s", full=True, force=True, mode="plan", allow=("a",), yes=True, flags={"x": 1}
    )
    made = start.build_options()

    assert (made.workspace, made.session, made.newest, made.full, made.force) == (tmp_path, "s", False, True, True)
    assert (made.mode, made.grants, made.yes, made.flags, made.interactive, made.one_shot) == (
        *("plan", ("a",), True, {"x": 1}, True),
        False,
    )


@pytest.mark.parametrize(
    ("more", "one_shot"), [({}, True), ({"session": "s"}, False), ({"continue_": True}, False), ({"new": True}, True)]
)
def test_a_question_asked_once_is_its_own_session_unless_it_goes_on_in_one(
    tmp_path: Path, more: dict[str, Any], one_shot: bool
) -> None:
    made = ChatArguments(workspace=tmp_path, **more).build_options(one_shot=True)

    assert made.one_shot is one_shot
    assert not made.interactive
    assert made.newest is bool(more.get("continue_"))


def test_a_grant_that_is_none_is_refused_at_once() -> None:
    check_grants(())
    check_grants(("shell", "shell:npm run test"))
    with pytest.raises(OllmError):
        check_grants(("shell", ""))
