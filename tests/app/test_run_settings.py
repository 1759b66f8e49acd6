"""Home, environment and settings of one run."""

from pathlib import Path

import pytest

from ollm.app.run_settings import print_warning, redact_error
from ollm.domain.errors import OllmError
from tests.app.places import AppPlace

KEY = "sk-proj-" + "a1B2" * 12


def test_settings_are_those_of_the_file_and_flags_win(place: AppPlace) -> None:
    place.configure(provider={"model": "filed", "type": "openai"})

    assert place.process().settings.provider.model == "filed"
    assert place.process(flags={"provider": {"model": "flagged"}}).settings.provider.model == "flagged"
    assert place.process(OLLM_MODEL="named").settings.provider.model == "named"
    assert place.said == []


def test_a_mistake_is_said_once_and_the_rest_stands(place: AppPlace) -> None:
    place.configure(provider={"model": "m"}, colour=KEY, nonsense=1)
    process = place.process()
    assert process.settings.provider.model == "m"
    assert process.settings is process.settings

    assert len(place.said) == 2
    assert all(KEY not in text for text in place.said)


def test_a_file_that_cannot_be_read_ends_the_command(place: AppPlace) -> None:
    place.home.mkdir()
    (place.home / "config.yaml").write_text("provider: [unfinished")
    process = place.process()
    with pytest.raises(OllmError):
        _ = process.settings
    assert process.loaded_settings.problems


def test_the_settings_of_a_workspace_count_once_it_is_trusted(place: AppPlace) -> None:
    place.configure(hooks={"before-turn": ["mine"]})
    place.configure_workspace(modes={"default": "plan"}, hooks={"before-turn": ["theirs"]})
    assert not place.process().trusted
    assert place.process().settings.modes.default == "code"
    place.trust()
    process = place.process()

    assert process.trusted
    assert process.settings.modes.default == "plan"
    assert process.own_settings.modes.default == "code"
    assert process.own_hooks == {"before-turn": ("mine",)} or process.own_hooks == {"before-turn": ["mine"]}
    assert not place.process(workspace=False).trusted


def test_without_trust_the_users_own_settings_are_the_settings(place: AppPlace) -> None:
    process = place.process()

    assert process.own_settings is process.settings


def test_the_log_is_begun_with_the_settings(place: AppPlace) -> None:
    place.configure(nonsense=1)
    process = place.process()
    assert not process.home.log.exists()
    _ = process.settings

    assert "nonsense" in process.home.log.read_text()


def test_variables_that_hold_a_key_are_kept_from_tools_and_taken_out_of_texts(place: AppPlace) -> None:
    place.configure(
        provider={"apiKeyEnv": "MY_SERVER"}, tools={"webSearch": {"apiKeyEnv": "MY_SEARCH"}}, environment={}
    )
    process = place.process(MY_SERVER="server-value-123", MY_SEARCH="search-value-123", LANG="C")

    assert "MY_SERVER" not in process.tool_environment
    assert "MY_SEARCH" not in process.tool_environment
    assert process.tool_environment["LANG"] == "C"
    assert "server-value-123" not in process.redactor.redact("it said server-value-123")


def test_paths_of_the_settings_lie_in_the_users_home(place: AppPlace) -> None:
    process = place.process()

    assert process.user_home == place.root
    assert process.resolve_user_path("~") == place.root
    assert process.resolve_user_path("~/a/b") == place.root / "a/b"
    assert process.resolve_user_path("a") == place.root / "a"
    assert process.resolve_user_path("/abs") == Path("/abs")
    assert process.resolve_directory("", Path("/usual")) == Path("/usual")
    assert process.resolve_directory("~/.ollm/x", Path("/usual")) == place.home / "x"


def test_an_error_is_printed_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert KEY not in redact_error(f"refused {KEY}")
    assert redact_error("plain words") == "plain words"
    print_warning("mind the gap")
    assert capsys.readouterr().err == "ollm: mind the gap\n"
