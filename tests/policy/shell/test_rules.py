"""Every kind of rule against shell commands: what it covers, what it does not, and what stays unsure."""

from typing import Any

import pytest

from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.rule_lines import (
    COVERED_BY_PROGRAM,
    COVERED_BY_WORDS,
    DENIED,
    FORBIDDEN,
    HARMLESS_WORDS,
    NOT_COVERED_BY_PROGRAM,
    NOT_COVERED_BY_WORDS,
    NOT_DENIED,
    PROGRAMS,
    UNSURE,
)
from tests.policy.told_verdicts import check_told

BY_PROGRAM = [rule("allow", "program", PROGRAMS.split())]
BY_WORDS = [
    rule("allow", "startsWith", ["git diff", "git log", "npm run test"]),
    rule("allow", "equals", "npm test"),
    rule("allow", "matches", r"^pytest( -q)?$"),
    rule("allow", "matches", r"cargo (build|test)"),
    rule("allow", "program", "ls"),
]
RESTRICTING = [
    rule("deny", "program", "rm", flags=["recursive", "force"]),
    rule("deny", "startsWith", "git push --force"),
    rule("deny", "program", "curl"),
    rule("deny", "startsWith", "npm publish"),
    rule("deny", "matches", "^terraform (apply|destroy)"),
    rule("deny", "contains", "--no-verify"),
    rule("deny", "equals", "make deploy"),
    rule("deny", "under", "secrets"),
    rule("allow", "program", ["rm", "git", "ls", "make", "cat", "npm"]),
]


@covers("T7.1", "T7.6")
@pytest.mark.parametrize("command", COVERED_BY_PROGRAM)
def test_an_allowed_program_runs_with_ordinary_words(place: Place, command: str):
    verdict = shell(place.engine(BY_PROGRAM), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command, "programs")


@pytest.mark.parametrize("command", NOT_COVERED_BY_PROGRAM)
def test_allowing_many_programs_allows_no_more_than_these_programs(place: Place, command: str):
    verdict = shell(place.engine(BY_PROGRAM), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "programs")


@covers("T7.2", "T7.6")
@pytest.mark.parametrize("command", DENIED)
def test_a_restricting_rule_finds_its_command_in_every_spelling(place: Place, command: str):
    verdict = shell(place.engine(RESTRICTING, "allow"), command)
    assert verdict.decision == "deny"
    check_told(verdict, place, command, "restricting")


@pytest.mark.parametrize("command", FORBIDDEN)
def test_a_denied_program_is_found_behind_everything_that_can_run_it(place: Place, command: str):
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), command)
    assert verdict.decision == "deny"
    check_told(verdict, place, command, "without rm alone")


@pytest.mark.parametrize("command", HARMLESS_WORDS)
def test_a_denied_name_that_is_only_a_word_is_never_denied(place: Place, command: str):
    verdict = shell(place.engine([rule("deny", "program", "rm")], "allow"), command)
    assert verdict.decision != "deny"
    check_told(verdict, place, command, "without rm alone")


@pytest.mark.parametrize("command", UNSURE)
def test_a_command_that_may_turn_out_to_be_denied_is_asked_about(place: Place, command: str):
    verdict = shell(place.engine(RESTRICTING, "allow"), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "restricting")


@pytest.mark.parametrize("command", NOT_DENIED)
def test_a_restricting_rule_leaves_its_neighbours_alone(place: Place, command: str):
    verdict = shell(place.engine(RESTRICTING, "allow"), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command, "restricting")


@pytest.mark.parametrize("command", COVERED_BY_WORDS)
def test_words_are_compared_after_quotes_and_harmless_options_are_gone(place: Place, command: str):
    verdict = shell(place.engine(BY_WORDS), command)

    assert verdict.decision == "allow", verdict.reason
    check_told(verdict, place, command, "words")


@pytest.mark.parametrize("command", NOT_COVERED_BY_WORDS)
def test_an_allowing_rule_covers_whole_words_only(place: Place, command: str):
    verdict = shell(place.engine(BY_WORDS), command)
    assert verdict.decision == "ask"
    check_told(verdict, place, command, "words")


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        ([rule("allow", "startsWith", "git -C sub status")], "git -C sub status"),
        ([rule("allow", "equals", "sort -o out.txt in.txt")], "sort -o out.txt in.txt"),
        ([rule("allow", "startsWith", "find . -delete")], "find . -delete"),
    ],
)
def test_an_option_that_runs_or_writes_is_covered_where_the_rule_names_it(
    place: Place, rules: list[dict[str, Any]], command: str
):
    assert shell(place.engine(rules), command).decision == "allow"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("rm build/x", "allow"),
        ("rm -r build", "allow"),
        ("rm build/../src/a.py", "ask"),
        ("rm build/x src/a.py", "ask"),
        ("rm buildx", "ask"),
        ("rm $X", "ask"),
        ("cd src && rm build/x", "ask"),
    ],
)
def test_under_allows_only_when_every_path_is_inside(place: Place, command: str, decision: str):
    conditions = [
        {"param": "command", "operator": "program", "value": "rm"},
        {"param": "command", "operator": "under", "value": "build"},
    ]
    engine = place.engine(
        [{"tool": "shell", "action": "allow", "conditions": conditions}, rule("allow", "program", "cd")]
    )

    assert shell(engine, command).decision == decision


def test_a_write_rule_also_forbids_redirection_to_that_path(place: Place):
    condition = {"param": "path", "operator": "under", "value": "vendor"}
    engine = place.engine([{"tool": "write_file", "action": "deny", "conditions": [condition]}], "allow")

    assert shell(engine, "echo x > vendor/a").decision == "deny"
    assert shell(engine, "echo x > src/a").decision == "ask"


def test_parts_tell_what_was_thought_of_each_command(place: Place):
    verdict = shell(
        place.engine([rule("allow", "program", "ls"), rule("deny", "program", "rm")]), "ls -la && (sudo rm x)"
    )

    assert [(part.command, part.decision) for part in verdict.parts] == [
        ("ls -la", "allow"),
        ("sudo rm x", "ask"),
        ("rm x", "deny"),
    ]
    assert verdict.rule is not None
    assert verdict.rule.text == "deny shell, command program rm"


@pytest.mark.parametrize(
    ("value", "line", "decision"),
    [
        ("key", "frob key", "deny"), ("key", "frob a/key", "deny"), ("key", "frob akey", "allow"), ("key", "frob keya", "allow"),
        ("key", "frob key/a", "deny"), ("key", "frob keyb:key", "deny"), ("key", "frob akeykey", "allow"),
        ("/key", "frob a/key", "deny"), ("key/", "frob akey/", "allow"), ("key/", "frob b/key/a", "deny"),
        ("=key", "frob a=keyb", "allow"), ("=key=", "frob a=key=b", "deny"), ("k", "frob ak", "allow"), ("k", "frob ,k@", "deny"),
    ],
)  # fmt: skip
def test_contains_finds_whole_components(place: Place, value: str, line: str, decision: str) -> None:
    verdict = shell(place.engine([rule("deny", "contains", value)], "allow"), line)
    assert verdict.decision == decision


@pytest.mark.parametrize(
    ("operator", "value", "line", "decision"),
    [
        ("equals", "make deploy", "make deploy", "deny"),
        ("equals", "make deploy", "make deploy x", "allow"),
        ("equals", "make deploy", "make -j deploy", "deny"),
        ("equals", "make deploy", "make -j4 deploy", "deny"),
        ("equals", "make deploy", "make deploy -j", "deny"),
        ("equals", "make deploy", "make x deploy", "allow"),
        ("equals", "make deploy", "make", "allow"),
        ("equals", "make deploy", "make $x", "ask"),
        ("equals", "make deploy", "make deploy $x", "ask"),
        ("equals", "make deploy", "/bin/make deploy", "deny"),
        ("equals", "make deploy", "MAKE deploy", "deny"),
        ("equals", "frob -x a", "frob -x a", "deny"),
        ("equals", "frob -x a", "frob a -x", "deny"),
        ("equals", "frob -x a", "frob a", "allow"),
        ("equals", "frob -x a", "frob -x b", "allow"),
        ("equals", "frob -x a", "frob -xy a", "deny"),
        ("equals", "frob -x a", "frob -x a b", "allow"),
        ("equals", "frob -x a", "frob $x a", "ask"),
        ("equals", "frob", "frob", "deny"),
        ("equals", "frob", "frob -x", "deny"),
        ("equals", "frob", "frob x", "allow"),
        ("equals", "frob", "frob $x", "ask"),
        ("startsWith", "git push --force", "git push --force", "deny"),
        ("startsWith", "git push --force", "git push -f", "deny"),
        ("startsWith", "git push --force", "git push origin --force x", "deny"),
        ("startsWith", "git push --force", "git push", "allow"),
        ("startsWith", "git push --force", "git -C x push --force", "deny"),
        ("startsWith", "git push --force", "git --git-dir x push -f", "deny"),
        ("startsWith", "git push --force", "git push --forc", "deny"),
        ("startsWith", "git push --force", "git push $x", "ask"),
        ("startsWith", "git push --force", "git $x --force", "ask"),
        ("startsWith", "git push --force", "git pull --force", "allow"),
        ("startsWith", "git push --force", "git -- push --force", "ask"),
        ("startsWith", "frob go", "frob go", "deny"),
        ("startsWith", "frob go", "frob -v go", "deny"),
        ("startsWith", "frob go", "frob -v x go", "deny"),
        ("startsWith", "frob go", "frob --v=x go", "deny"),
        ("startsWith", "frob go", "frob --v=x y go", "allow"),
        ("startsWith", "frob go", "frob x go", "allow"),
        ("startsWith", "frob go", "frob -v go go", "deny"),
        ("startsWith", "frob go", "frob $x", "ask"),
        ("startsWith", "frob go", "frob -v $x", "ask"),
        ("startsWith", "frob go", "frob -- go", "deny"),
        ("startsWith", "frob go", "frob go $x", "deny"),
        ("startsWith", "kubectl delete", "kubectl delete x", "deny"),
        ("startsWith", "kubectl delete", "kubectl --token t delete x", "deny"),
        ("startsWith", "kubectl delete", "kubectl -n a delete x", "deny"),
        ("startsWith", "kubectl delete", "kubectl --token=t get delete", "allow"),
        ("startsWith", "kubectl delete", "kubectl get delete", "allow"),
        ("startsWith", "kubectl delete", "kubectl -v=6 delete", "deny"),
        ("startsWith", "git push", "git --no-pager log push", "allow"),
        ("startsWith", "git push", "git -P push", "deny"),
        ("startsWith", "git push", "git --bare push", "deny"),
        ("startsWith", "git push", "git -C push push", "deny"),
        ("matches", "^kubectl delete", "kubectl --token t delete x", "deny"),
        ("matches", "^kubectl delete", "kubectl -n a --token t delete", "deny"),
        ("matches", "^kubectl delete", "kubectl get delete", "allow"),
        ("startsWith", "npm publish", "npm publish", "deny"),
        ("startsWith", "npm publish", "npm --tag x publish", "deny"),
        ("startsWith", "npm publish", "npm -w a publish", "deny"),
        ("startsWith", "npm publish", "npm run publish", "allow"),
        ("startsWith", "npm publish", "npm publish x", "deny"),
        ("contains", "--no-verify", "git commit --no-verify", "deny"),
        ("contains", "--no-verify", "git commit --no-v", "deny"),
        ("contains", "--no-verify", "git commit --no", "deny"),
        ("contains", "--no-verify", "git commit -n", "allow"),
        ("contains", "--no-verify", "frob --no-verify", "deny"),
        ("contains", "--no-verify", "frob x--no-verify", "allow"),
        ("contains", "--no-verify", "frob '--no-verify x'", "allow"),
        ("contains", "--no-verify", "echo --no-verifyx", "allow"),
        ("contains", "-xy", "frob -xy", "deny"),
        ("contains", "-xy", "frob -yx", "deny"),
        ("contains", "-xy", "frob -x -y", "deny"),
        ("contains", "-xy", "frob -x", "allow"),
        ("contains", "-xy", "frob -yzx", "deny"),
        ("contains", "-xy", "frob --xy", "allow"),
        ("contains", "git push", "git push", "deny"),
        ("contains", "git push", "git -C x push", "deny"),
        ("contains", "git push", "echo git push", "deny"),
        ("contains", "git push", "git 'push'", "deny"),
        ("contains", "git push", "git pull; echo push", "allow"),
        ("contains", "git push", "git pushx", "allow"),
        ("contains", "git push", "frob a git push b", "deny"),
        ("contains", "rm", "rm x", "deny"),
        ("contains", "rm", "echo rm", "deny"),
        ("contains", "rm", "frob --rm", "allow"),
        ("contains", "rm", "frob a/rm", "deny"),
        ("contains", "rm", "frob rm=x", "deny"),
        ("contains", "rm", "frob a@rm", "deny"),
        ("contains", "rm", "/bin/rm x", "deny"),
        ("contains", "rm", "frob arm", "allow"),
        ("contains", "rm", "RM x", "deny"),
        ("contains", "--force --all", "frob --force --all", "deny"),
        ("contains", "--force --all", "frob --all --force", "deny"),
        ("contains", "--force --all", "frob --force", "allow"),
        ("contains", "--force --all", "frob --all x --force", "deny"),
        ("matches", "^terraform (apply|destroy)", "terraform apply", "deny"),
        ("matches", "^terraform (apply|destroy)", "terraform -chdir=x apply", "deny"),
        ("matches", "^terraform (apply|destroy)", "terraform plan", "allow"),
        ("matches", "^terraform (apply|destroy)", "/usr/bin/terraform apply", "deny"),
        ("matches", "^terraform (apply|destroy)", "echo terraform apply", "allow"),
        ("matches", "^terraform (apply|destroy)", "terraform 'apply x'", "deny"),
        ("matches", "^terraform (apply|destroy)", "terraform -x y apply", "deny"),
        ("matches", "^terraform (apply|destroy)", "TERRAFORM apply", "deny"),
        ("matches", "a b", "echo a b", "deny"),
        ("matches", "a b", "echo 'a b'", "allow"),
        ("matches", "a b", "echo a\\ b", "allow"),
        ("matches", "a b", "echo xa bx", "deny"),
        ("matches", "^git push", "git push", "deny"),
        ("matches", "^git push", "git -C x push", "deny"),
        ("matches", "^git push", "git -c a=b --no-pager push", "deny"),
        ("matches", "^git push", "git --git-dir=x push", "deny"),
        ("matches", "^git push", "git pull", "allow"),
        ("under", "secrets", "cat secrets", "deny"),
        ("under", "secrets", "cat secrets/a", "deny"),
        ("under", "secrets", "cat ./secrets/a", "deny"),
        ("under", "secrets", "cat secretsx", "allow"),
        ("under", "secrets", "cat --file=secrets/a", "deny"),
        ("under", "secrets", "cat -secrets", "ask"),
        ("under", "secrets", "cd secrets; cat a", "deny"),
        ("under", "secrets", "cd src; cat ../secrets/a", "deny"),
        ("under", "secrets", "cat src/../secrets", "deny"),
        ("under", "secrets", "cat a=secrets/x", "allow"),
        ("under", "secrets", "cat $x", "ask"),
        ("under", "~/.ssh", "cat ~/.ssh/id", "deny"),
        ("under", "~/.ssh", "cat ~", "ask"),
        ("under", "~/.ssh", "cat ~/x", "ask"),
        ("under", "~/.ssh", "cat ~/.ssh", "deny"),
        ("program", "rm", "rm x", "deny"),
        ("program", "rm", "/bin/rm x", "deny"),
        ("program", "rm", "./rm", "deny"),
        ("program", "rm", "rm.exe x", "deny"),
        ("program", "rm", "RM x", "deny"),
        ("program", "rm", "rmx", "allow"),
        ("program", "rm", "rm", "deny"),
        ("program", "rm", "echo rm", "allow"),
        ("program", "rm", "гm x", "ask"),
        ("program", "rm", "rМ x", "ask"),
        ("program", "rm", "$x rm", "ask"),
    ],
)
def test_a_line_against_one_rule_that_denies_where_all_else_runs(
    place: Place, operator: str, value: str, line: str, decision: str
) -> None:
    assert shell(place.engine([rule("deny", operator, value)], "allow"), line).decision == decision


@pytest.mark.parametrize(
    ("operator", "value", "flags", "line", "decision"),
    [
        ("program", "rm", ["recursive", "force"], "rm -rf x", "deny"),
        ("program", "rm", ["recursive", "force"], "rm -r x", "allow"),
        ("program", "rm", ["recursive", "force"], "rm -r $x", "ask"),
        ("program", "rm", ["recursive", "force"], "rm $x", "ask"),
        ("program", "rm", ["recursive", "force"], "rm -fr", "deny"),
        ("program", "rm", ["recursive", "force"], "rm --recursive --force", "deny"),
        ("program", "rm", ["recursive", "force"], "$x -rf", "ask"),
        ("program", "git push", ["force"], "git push -f", "deny"),
        ("program", "git push", ["force"], "git push", "allow"),
        ("program", "git push", ["force"], "git push $x", "ask"),
        ("program", "git push", ["force"], "git pull -f", "allow"),
        ("program", "git push", ["force"], "git push +x", "deny"),
    ],
)
def test_a_line_against_one_rule_that_denies_a_program_with_flags(
    place: Place, operator: str, value: str, flags: list[str], line: str, decision: str
) -> None:
    assert shell(place.engine([rule("deny", operator, value, flags=flags)], "allow"), line).decision == decision


@pytest.mark.parametrize(
    ("operator", "value", "line", "decision"),
    [
        ("program", "frob", "frob", "allow"),
        ("program", "frob", "frob x", "allow"),
        ("program", "frob", "./frob", "ask"),
        ("program", "frob", "frobx", "ask"),
        ("program", "frob", "$x", "ask"),
        ("program", "frob", "frob $x", "allow"),
        ("program", "frob", "FROB", "ask"),
        ("startsWith", "frob go", "frob go", "allow"),
        ("startsWith", "frob go", "frob go x", "allow"),
        ("startsWith", "frob go", "frob -v go", "ask"),
        ("startsWith", "frob go", "frob gox", "ask"),
        ("startsWith", "frob go", "frob", "ask"),
        ("startsWith", "frob go", "frob $x", "ask"),
        ("startsWith", "frob go", "'frob' \"go\"", "allow"),
        ("equals", "npm test", "npm test", "allow"),
        ("equals", "npm test", "npm test x", "ask"),
        ("equals", "npm test", "npm", "ask"),
        ("equals", "npm test", "npm  'test'", "allow"),
        ("equals", "npm test", "npm test $x", "ask"),
        ("equals", "npm test", "npm test; ls", "ask"),
        ("equals", "git status", "git --no-pager status", "allow"),
        ("equals", "git status", "git status", "allow"),
        ("equals", "git status", "git -c a=b status", "ask"),
        ("contains", "go far", "frob go far", "allow"),
        ("contains", "go far", "frob go x far", "ask"),
        ("contains", "go far", "frob gofar", "ask"),
        ("contains", "go far", "go far", "allow"),
        ("contains", "go far", "frob far go", "ask"),
        ("matches", "frob( -q)?", "frob", "allow"),
        ("matches", "frob( -q)?", "frob -q", "allow"),
        ("matches", "frob( -q)?", "frob -qx", "ask"),
        ("matches", "frob( -q)?", "frobx", "ask"),
        ("matches", "frob( -q)?", "frob -x", "allow"),
        ("matches", "frob( -q)?", "frob $x", "ask"),
        ("matches", "frob( -q)?", "frob *", "ask"),
        ("matches", "frob( -q)?", "x frob", "ask"),
        ("matches", "frob ", "frob x", "allow"),
        ("matches", "frob ", "frob", "ask"),
        ("matches", "frob ", "frob  x", "allow"),
        ("matches", "fr", "frob", "ask"),
        ("matches", "fr", "fr ob", "allow"),
        ("matches", "frob 'a b'|frob a.b", "frob 'a b'", "allow"),
        ("matches", "frob 'a b'|frob a.b", "frob a b", "allow"),
        ("matches", "frob 'a b'|frob a.b", "frob axb", "allow"),
        ("under", "build", "rm build/x", "allow"),
        ("under", "build", "rm build/x src", "ask"),
        ("under", "build", "rm -r", "ask"),
        ("under", "build", "rm", "ask"),
        ("under", "build", "rm *", "ask"),
        ("under", "build", "rm build/*", "ask"),
        ("under", "build", "cd src; rm build/x", "ask"),
    ],
)
def test_a_line_against_one_rule_that_allows_where_all_else_asks(
    place: Place, operator: str, value: str, line: str, decision: str
) -> None:
    assert shell(place.engine([rule("allow", operator, value)]), line).decision == decision


@pytest.mark.parametrize(
    ("action", "value", "line", "decision"),
    [
        ("allow", "src", "rm src/a.py", "allow"),
        ("allow", "src", "rm src/dir-out/x", "ask"),
        ("allow", "src", "rm src/link-out", "ask"),
        ("allow", "src", "rm ./src/../src/a.py", "allow"),
        ("allow", "src", "rm src/../a", "ask"),
        ("allow", "src", "rm src", "allow"),
        ("allow", "src", "rm srcx", "ask"),
        ("allow", ".", "rm a", "allow"),
        ("allow", ".", "rm ../x", "ask"),
        ("deny", "src", "cat src", "deny"),
        ("deny", "src", "cat ./src/a.py", "deny"),
        ("deny", "/etc", "cat src/dir-out/passwd", "deny"),
        ("deny", "/etc", "cat out/passwd", "deny"),
        ("deny", "src", "cat out/x", "ask"),
        ("deny", "src/a.py", "cat src/a.py", "deny"),
        ("deny", "src/a.py", "cat src/b.py", "allow"),
        ("deny", "src", "ls a", "allow"),
        ("deny", "~", "cat ~/x", "deny"),
        ("deny", "src", "cd src && cat a.py", "deny"),
        ("deny", "src", "cat --x=src/a.py", "deny"),
        ("deny", "src", "cat -xsrc/a.py", "ask"),
    ],
)
def test_a_path_counts_as_written_and_where_it_leads(
    place: Place, action: str, value: str, line: str, decision: str
) -> None:
    engine = place.engine([rule(action, "under", value)], "allow" if action == "deny" else "ask")
    assert shell(engine, line).decision == decision
