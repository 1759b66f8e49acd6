"""The ways to answer, and what each means."""

import msgspec
import pytest

from ollm.acp.permissions import build_options, read_answer
from ollm.domain.tools import ConfirmationDetails, GrantScope, Risk

DETAILS = ConfirmationDetails(
    call_id="c1",
    tool="shell",
    description="npm test",
    risk=Risk.HIGH,
    reason="may modify files",
    grant="shell:npm test",
    prefix="shell:npm",
)


def test_every_scope_is_offered_with_what_it_grants() -> None:
    assert {option["optionId"]: option["kind"] for option in build_options(DETAILS)} == {
        "once": "allow_once",
        "session": "allow_always",
        "always": "allow_always",
        "prefix": "allow_always",
        "everywhere": "allow_always",
        "reject": "reject_once",
    }
    assert any("shell:npm test" in option["name"] for option in build_options(DETAILS))


def test_what_is_locked_can_only_be_allowed_once() -> None:
    locked = msgspec.structs.replace(DETAILS, locked=True)

    assert [option["optionId"] for option in build_options(locked)] == ["once", "reject"]
    assert not read_answer("always", locked).approved


@pytest.mark.parametrize(
    ("chosen", "scope", "prefix"),
    [
        ("once", "once", False),
        ("session", "session", False),
        ("always", "always", False),
        ("prefix", "always", True),
        ("everywhere", "everywhere", False),
    ],
)
def test_an_answer_has_its_scope(chosen: str, scope: GrantScope, prefix: bool) -> None:
    answer = read_answer(chosen, DETAILS)

    assert (answer.approved, answer.scope, answer.prefix) == (True, scope, prefix)


@pytest.mark.parametrize("chosen", ["reject", None, "", "yes"])
def test_anything_else_is_a_no(chosen: str | None) -> None:
    assert not read_answer(chosen, DETAILS).approved
