"""Commands inside other commands are found where the records say they stand."""

import pytest

from ollm.policy.shell.programs import get_program
from ollm.policy.shell.programs.inner_commands import (
    abbreviates,
    find_inner_commands,
    split_off_command,
    strip_command_prefix,
)
from ollm.policy.shell.programs.record import InnerCommand
from ollm.policy.shell.words import UNKNOWN_WORD, make_literal
from tests.policy.conftest import Place, rule, shell

FOUND = [  # the line, the commands in it that are sure, and whether there are guesses
    (["nice", "-n", "5", "rm", "x"], ["rm x"], False), (["nice", "--", "rm", "x"], ["rm x"], False),
    (["timeout", "-k", "1", "5", "rm"], ["rm"], False), (["env", "-", "A=b", "rm"], ["rm"], False),
    (["env", "-S", "rm x"], ["rm x"], False), (["ssh", "-p", "1", "h", "rm", "x"], ["rm x"], False),
    (["ssh", "-o", "ProxyCommand=rm x", "h"], [], True), (["watch", "rm", "x"], ["rm x"], False), (["ls", "rm"], [], False),
    (["flock", "a", "-c", "rm x"], ["rm x"], False), (["flock", "-c", "rm x", "a"], ["rm x a"], False),
    (["su", "u", "-c", "rm x"], ["rm x"], False), (["runuser", "-u", "u", "rm", "x"], ["rm x"], False),
    (["runuser", "-c", "rm x"], ["rm x"], False), (["su", "u"], [], False), (["bash", "-c", "rm x", "y"], ["rm x"], False),
    (["bash", "+e", "-c", "rm x"], ["rm x"], False), (["bash", "x", "-c", "rm"], [], False), (["bash", "-c"], [], False),
    (["eval", "rm", "x"], ["rm x"], False), (["eval", "--", "rm", "x"], ["rm x"], False), (["eval"], [], False),
    (["trap", "rm x", "EXIT"], ["rm x"], False), (["trap", "-", "EXIT"], [], False), (["trap", "rm"], [], False),
    (["alias", "a=rm x"], [], True), (["alias", "a"], [], False), (["alias", "a= "], [], False),
    (["mapfile", "-C", "rm x"], [], True), (["command", "rm", "x"], ["rm x"], False), (["command", "-v", "rm"], [], False),
    (["--", "rm"], ["rm"], False), (["--"], [], False), (["parallel", "rm", ":::", "x"], ["rm"], True),
    (["parallel", ":::", "rm x"], ["rm x"], False), (["parallel", "rm {}", ":::", "x"], ["rm {}"], True),
    (["parallel", "rm"], ["rm"], False), (["docker", "run", "i", "rm"], [], True), (["docker", "ps"], [], False),
    (["npx", "rm", "x"], [], True), (["vim", "-c", ":!rm x"], [], True), (["vim", "-c", "a b"], [], False),
    (["tar", "--to-command=rm x"], [], True), (["tar", "--to-com", "rm x"], [], True), (["tar", "--t", "rm x"], [], False),
    (["tar", "-x"], [], False), (["python3", "-c", "os.system('rm x')"], [], True), (["python3", "-c", "1"], [], False),
    (["find", ".", "-exec", "rm", "{}", ";"], ["rm "], False), (["find", ".", "-exec", "rm", "{}", "+"], ["rm "], False),
    (["fd", "-x", "rm"], ["rm"], False), (["git", "bisect", "run", "rm", "x"], ["rm x"], False),
    (["git", "-c", "core.pager=rm x", "log"], [], True), (["git", "-c", "user.name=rm", "log"], [], False),
    (["git", "config", "alias.x", "!rm x"], [], True), (["git", "rebase", "-x", "rm x"], [], True), (["sed", "1e rm x"], [], True),
    (["awk", 'BEGIN{system("rm x")}'], [], True), (["awk", "{print}"], [], False), (["sftp", "-S", "rm x"], [], True),
]  # fmt: skip


def spell(inner: InnerCommand) -> str:
    return inner.script if inner.script is not None else " ".join(word.text for word in inner.words)


@pytest.mark.parametrize(("line", "sure", "guesses"), FOUND)
def test_what_stands_inside_a_command(line: list[str], sure: list[str], guesses: bool) -> None:
    found = find_inner_commands(get_program(line[0]), [make_literal(word) for word in line])

    assert [spell(one) for one in found if not one.guess] == sure
    assert any(one.guess for one in found) is guesses


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("timeout 5 ls -l", "ls -l"), ("timeout 5", None), ("time ls", "ls"), ("time -o x ls", None), ("nice -- ls", "ls"),
        ("env ls", None), ("stdbuf -o 0 ls", "ls"), ("nohup", None),
    ],
)  # fmt: skip
def test_a_harmless_wrapper_gives_its_command(line: str, rest: str | None) -> None:
    words = [make_literal(word) for word in line.split()]
    found = split_off_command(get_program(words[0].text), words)

    assert (None if found is None else " ".join(word.text for word in found)) == rest


def test_a_wrapper_with_words_that_are_not_known_is_not_harmless() -> None:
    words = [make_literal("timeout"), UNKNOWN_WORD, make_literal("ls")]

    assert split_off_command(get_program("timeout"), words) is None
    assert any(one.guess for one in find_inner_commands(get_program("timeout"), [*words, make_literal("x")]))


def test_what_a_host_wants_before_a_command_is_taken_off() -> None:
    stripped = {text: strip_command_prefix(text) for text in (":!rm x", "shell rm x", "--exec=rm x", "!'rm x'", "rm x")}

    assert set(stripped.values()) == {"rm x"}
    assert strip_command_prefix("rm 'x y'") == "rm 'x y'"


def test_long_options_may_be_abbreviated() -> None:
    assert abbreviates("--to=x", ["--to-command"])
    assert not abbreviates("--", ["--to-command"])
    assert not abbreviates("-t", ["--to-command", "-t"])
    assert not abbreviates("--too", ["--to-command"])


@pytest.mark.parametrize(
    "line", ["docker run -it x rm y", "kubectl exec p -- rm y", "npx rm y", "tmux new 'rm y'", "uv run rm y"]
)
def test_a_launcher_is_read_in_every_way(place: Place, line: str) -> None:
    assert shell(place.engine([rule("deny", "program", "rm")], "allow"), line).decision == "deny"


@pytest.mark.parametrize("line", ["docker run x y z rm", "uv run x rm", "docker ps rm"])
def test_a_word_far_behind_is_an_argument(place: Place, line: str) -> None:
    assert shell(place.engine([rule("deny", "program", "rm")], "allow"), line).decision == "allow"


def test_behind_a_word_that_may_be_an_option_every_word_may_begin_the_command() -> None:
    words = [make_literal("nice"), UNKNOWN_WORD, make_literal("rm"), make_literal("x")]

    assert [spell(one) for one in find_inner_commands(get_program("nice"), words) if one.guess] == ["rm x", "x"]
