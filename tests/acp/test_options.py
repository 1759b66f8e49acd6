"""What an editor can offer to choose from."""

from pathlib import Path

from ollm.acp.options import SCREEN_COMMANDS, build_commands, build_config_options, build_modes
from ollm.runtime.base import Status

STATUS = Status(
    session_id=None,
    title="",
    model="small",
    provider="p",
    base_url="u",
    window=1,
    mode="code",
    approval="ask",
    workspace="w",
)


def test_modes_are_the_approval_levels() -> None:
    modes = build_modes("ask")

    assert modes["currentModeId"] == "ask"
    assert [mode["id"] for mode in modes["availableModes"]] == ["read-only", "ask", "accept-edits", "yolo"]


def test_the_model_of_the_moment_is_always_among_those_offered() -> None:
    found = {option["id"]: option for option in build_config_options(STATUS, ["large", "small"])}

    assert [each["value"] for each in found["model"]["options"]] == ["small", "large"]
    assert (found["model"]["category"], found["approval"]["category"]) == ("model", "mode")
    assert found["mode"]["currentValue"] == "code"


def test_commands_are_ours_and_the_persons_own_but_not_those_of_the_screen(tmp_path: Path) -> None:
    (tmp_path / "review.md").write_text("Review $ARGUMENTS")
    (tmp_path / "exit.md").write_text("no")
    names = {command["name"]: command for command in build_commands((tmp_path,))}

    assert {"status", "compact", "review"} <= names.keys()
    assert not SCREEN_COMMANDS & names.keys()
    assert names["review"]["description"] == "Review $ARGUMENTS"
