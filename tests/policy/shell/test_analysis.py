"""A line is taken apart into everything it would run, read and write."""

import pytest

from ollm.policy.shell import analyse_command
from tests.policy.conftest import Place, rule, shell
from tests.policy.told_verdicts import check_told
from tests.policy.verdict_table import judge

RUN = [
    "ls; rm x", "sh -c 'rm x'", "sh -c 'sh -c \"rm x\"'", "env A=b rm x", "sudo -u x rm x", "timeout 5 nice rm x",
    "PAGER='rm x' man ls", "export EDITOR='rm x'", "env LESSOPEN='|rm x' less a", "GIT_SSH_COMMAND='rm x' git fetch",
    "echo 'rm x' | sh", "echo x | xargs rm", "echo rm x | xargs env", "echo rm | xargs -I@ @ x", "crontab <<< '* * * * * rm x'",
    "at now <<< 'rm x'", "python3 <<< 'os.system(\"rm x\")'", "sqlite3 a <<< '.shell rm x'", "make <<< 'rm x'",
    "test -v 'a[$(rm x)]'", "read 'a[$(rm x)]'", "ls\u200b; rm x", "echo $(rm x", "f() { rm x; }; f", "bash -c 'rm \"$0\"' x",
    "bash -c '$0 x' rm", "bash -c '$@' x rm y", "find . -exec sh -c 'rm x' ;", "trap 'rm x' EXIT", "source <(echo rm x)",
    "cat <<E | sh\nrm x", "if rm x", "{ rm x", "--  rm x",
    "bash -c '$@' x rm", "bash -c '$* y' x rm", "bash -c '$1 y' x rm", "test -v 'a[`rm x`]'",
    "echo 'rm x' | xargs -I@ sh -c @", "env EDITOR='rm x' ls", "sudo PAGER='|rm x' ls", "doas VISUAL='rm x' ls",
    "crontab <<< '@daily rm x'", "at now <<< '!rm x'", "timeout() { :; }; timeout 5 rm x", "LESSCLOSE='rm x' less a",
    "GIT_EXTERNAL_DIFF='rm x' git diff", "PS4='rm x' sh a", "sh <<< 'rm x'", "node <<< 'execSync(\"rm x\")'",
]  # fmt: skip
NOT_RUN = [
    "echo 'rm x' | cat", "cat <<'E'\nrm x\nE", "ls # rm x", "git commit -m 'rm x'", "FOO='rm x' ls", "grep 'rm x' a",
    "python3 <<< 'rm x'", "test -n 'a$(rm x)'", "test -n 'a[rm x]'", "frob EDITOR='rm x'", "bash -c '$2 y' x rm", "EDITOR=' ' ls",
    "export FOO='rm x'", "xargs -I@ echo @ rm", "cat <<< 'rm x'", "env FOO='rm x' ls",
    "docker run img 'rm x'", "npx --", "docker exec a b --",
]  # fmt: skip


@pytest.mark.parametrize("line", RUN)
def test_a_command_is_found_inside_whatever_runs_it(place: Place, line: str) -> None:
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), line)
    assert verdict.decision == "deny"
    check_told(verdict, place, line, "without rm alone")


@pytest.mark.parametrize("line", NOT_RUN)
def test_a_word_is_not_a_command(place: Place, line: str) -> None:
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), line)
    assert verdict.decision != "deny"
    check_told(verdict, place, line, "without rm alone")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ls\u200b", "invisible"), ("ls " + "a" * 10_000, "10,000"), ("ls (", "not a valid shell command"),
        ("$x", "the program is computed at run time"), ("l?", "computed at run time"), ("{ls,a}", "computed"),
        ("lſ", "looks like another name"), ("ls() { :; }; ls", "is defined by the line itself"), ("'' a", "without a name"),
        ("X=1 ls", "it sets X"), ("env X=1 ls", "it sets X"), ('sh -c "$x"', "a script in it is computed at run time"),
        ("timeout $x ls", "what it runs is computed at run time"), ("ls > $x", "it writes a file computed at run time"),
        ("sh -c '" + "(" * 3000 + "'", "valid"), ("timeout() { :; }; timeout 5 ls", "is defined by the line itself"),
    ],
)  # fmt: skip
def test_the_reason_to_ask_is_said(place: Place, line: str, reason: str) -> None:
    verdict = judge(place, line)
    assert verdict.decision == "ask"
    assert reason in verdict.reason or any(reason in part.reason for part in verdict.parts)


def test_ten_thousand_characters_are_the_limit(place: Place) -> None:
    assert judge(place, "echo " + "a" * 9_995).decision == "allow"
    assert judge(place, "echo " + "a" * 9_996).decision == "ask"


@pytest.mark.parametrize(("levels", "deep"), [(19, False), (20, False), (21, True), (30, True)])
def test_nesting_ends_somewhere_and_asks(place: Place, levels: int, deep: bool) -> None:
    line = "eval " * levels + "rm x"
    verdict = judge(place, line)
    assert verdict.decision == "ask"
    told = [verdict.reason, *(part.reason for part in verdict.parts)]
    assert any("it is not a valid shell command (it is nested too deeply)" in reason for reason in told) is deep
    assert analyse_command(line, place.workspace, place.boundary).parts
    assert shell(place.engine([rule("deny", "program", "rm")], "allow"), line).decision == "deny"


@pytest.mark.parametrize(("documents", "denied"), [(1, True), (19, True), (20, False)])
def test_here_documents_that_nobody_closed_are_closed_one_by_one(place: Place, documents: int, denied: bool) -> None:
    line = "; ".join(["sh <<E0", *(f"cat <<E{number}" for number in range(1, documents))]) + "\nr\\\nm x"
    assert shell(place.engine([rule("deny", "program", "rm")], "allow"), line).decision == ("deny" if denied else "ask")


@pytest.mark.parametrize(("length", "told"), [(60_000, False), (60_001, True)])
def test_a_very_long_line_is_not_taken_apart(place: Place, length: int, told: bool) -> None:
    verdict = judge(place, "echo " + "a" * (length - 5))
    assert "it is longer than 10,000 characters" in verdict.reason
    assert ("it is not a valid shell command (it is longer than 60,000 characters)" in verdict.reason) is told


@pytest.mark.parametrize(("words", "denied"), [(8, True), (9, False)])
def test_a_harmless_wrapper_is_compared_with_the_beginning_of_what_it_runs(
    place: Place, words: int, denied: bool
) -> None:
    given = [*"abcdefghij"]
    deny = rule("deny", "startsWith", f"nice {' '.join(given[:words])}")
    found = shell(place.engine([deny], "allow"), f"nice {' '.join(given)}").decision
    assert found == ("deny" if denied else "allow")


def test_descriptors_are_no_files(place: Place) -> None:
    for line in ("ls 2>&1", "ls >&2", "ls 2>&-", "ls > /dev/null", "cat <&0"):
        assert judge(place, line).decision == "allow", line
    for line in ("ls >& x", "ls <> x", "ls &> x", "ls >| x", "ls &>> x", "cat <& $x"):
        assert judge(place, line).decision == "ask", line
