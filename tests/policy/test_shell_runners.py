"""A denied command is found in whatever is told to start it, and nowhere else."""

import pytest

from tests.policy.conftest import Place, rule, shell
from tests.policy.runner_lines import FOUND_BY_VALUE, LONG, RUN, RUN_BY_INPUT, SPELLED, SPELLED_UNSURELY, TOLD
from tests.policy.told_verdicts import check_told

DENY = [
    rule("deny", "program", "rm", flags=["recursive", "force"]),
    rule("deny", "program", ["curl", "shutdown"]),
    rule("deny", "startsWith", "git push --force"),
]


@pytest.mark.parametrize("command", [*RUN, *RUN_BY_INPUT, *LONG, *FOUND_BY_VALUE])
def test_a_denied_command_is_found_in_whatever_starts_it(place: Place, command: str):
    verdict = shell(place.engine(DENY, "allow"), command)
    assert verdict.decision == "deny"
    check_told(verdict, place, command, "without rm -rf")


@pytest.mark.parametrize("command", TOLD)
def test_naming_a_denied_program_is_not_running_it(place: Place, command: str):
    verdict = shell(place.engine(DENY, "allow"), command)
    assert verdict.decision != "deny"
    check_told(verdict, place, command, "without rm -rf")


@pytest.mark.parametrize("command", SPELLED)
def test_a_denied_program_is_found_however_it_is_said(place: Place, command: str):
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), command)
    assert verdict.decision == "deny"
    check_told(verdict, place, command, "without rm alone")


@pytest.mark.parametrize("command", SPELLED_UNSURELY)
def test_what_only_bash_can_find_out_is_asked_about(place: Place, command: str):
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "without rm alone")
