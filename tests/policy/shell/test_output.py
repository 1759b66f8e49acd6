"""What printing commands print is guessed, so that what it is fed to can be forbidden."""

import pytest

from tests.policy.conftest import Place, rule, shell
from tests.policy.told_verdicts import check_told

FED = [
    "echo 'rm x' | sh", "echo -n rm x | bash", "printf 'rm %s' x | sh", "printf 'r%s x' m | sh", "printf '%s ' rm x | sh",
    "printf -- 'rm x' | sh", "cat <<E | sh\nrm x\nE", "cat <<< 'rm x' | sh", "echo 'x mr' | rev | sh", "tee <<< 'rm x' | sh",
    "echo cm0geA== | base64 -d | sh", "echo 726d2078 | xxd -r -p | sh", "sh <<< 'rm x'", "bash <(echo rm x)",
    "echo -e '\\x72m x' | sh", "$(echo rm) x", "$(which rm) x", "$(command -v rm) x", "$(type -P rm) x", "`echo rm` x",
    "echo 'rm x' |& sh", "cat < a <<< 'rm x' | sh", "printf '%s %s' rm x | sh", "printf '%b' 'rm x' | sh",
    "printf 'rm x' | cat | sh", "printf '%q' rm | xargs sh -c 'rm x'",
]  # fmt: skip


@pytest.mark.parametrize("line", FED)
def test_what_is_fed_to_a_shell_is_read(place: Place, line: str) -> None:
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), line)
    assert verdict.decision == "deny"
    check_told(verdict, place, line, "without rm alone")


@pytest.mark.parametrize(
    "line", ["echo 'rm x' | cat", "echo rm | base64", "echo 'rm x' | rev", "printf rm", "echo !!! | base64 -d | cat"]
)
def test_what_is_only_shown_is_not(place: Place, line: str) -> None:
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), line)
    assert verdict.decision == "allow"
    check_told(verdict, place, line, "without rm alone")
