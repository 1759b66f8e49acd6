"""Shell lines as bash reads them."""

import os
import random
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ollm.policy.shell import parse
from ollm.policy.shell.analysis import analyse_command
from ollm.policy.shell.parse import explain_bash_refusal, parse_script
from ollm.policy.shell.words import Atom, ShellWord, WordDecoder, expand_braces
from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.verdicts import load_sections
from tests.sizes import size

FORMS: dict[str, list[str]] = {
    "command": [
        "evil", "'evil'", "ev''il", "e\\vil", "$'evil'", "echo {word}", "cat <<< {word}", "{command}; {command}",
        "{command} && {command}", "( {command} )", "{{ {command}; }}", "if {command}; then {command}; fi",
        "for i in {word}; do {command}; done", "case a in {word}) true;; *) {command};; esac", "[[ -n {word} ]]",
        "[[ a =~ {word} ]]", "test {word}", "x={word} true", "y=({word})", "y[{number}]=1", "(({number}))",
        "cat <<E\n{quoted}\nE\n{command}", "cat <<'E'\n{text}\nE\n{command}", "cat <<E\n${{x:-'{quoted}'}}\nE\n{command}",
        "f() {{ {command}; }}; f", "{command} # {text}\n{command}", "eval {word}", 'eval "{quoted}"', "bash -c {word}",
        "declare x={word}", "trap {word} EXIT", "time {command}", "env {simple}", "command {simple}", "printf -v 'y[{number}]' a",
        "[[ -v 'y[{number}]' ]]", "test -v 'y[{number}]'", "X=ev; ${{X}}il", "bash <<'E'\n{text}\nE", "echo {word} | bash",
        "xargs {simple} <<< a", "find . -maxdepth 0 -exec {simple} \\;", "! {command}", "until {command}; do break; done",
    ],
    "word": [
        "a", "evil", "'$(evil)'", '"$(evil)"', "`evil`", "\\$(evil)", "'{text}'", '"{quoted}"', "$({command})", "${{x:-{word}}}",
        '"${{x:-{word}}}"', '"${{x:-{quoted}}}"', "${{HOME:+{word}}}", "${{HOME/a/{word}}}", '"${{HOME/a/{word}}}"',
        '"${{HOME%{word}}}"', "$(({number}))", "<({command})", "{word}{word}", "$'{text}'", "{word}\\\n{word}", "${{y[{number}]}}",
    ],
    "quoted": [
        "a", "evil", "$(evil)", "`evil`", "\\$(evil)", "'$(evil)'", "\\`evil\\`", "$({command})", "${{x:-{quoted}}}",
        "${{x:-'{quoted}'}}", "$(({number}))", "${{HOME:+'{quoted}'}}", "{quoted} {quoted}",
    ],
    "number": ["1", "1+$(evil)", "y[$(evil)]", "`evil`+1", "y['$(evil)']", '"$(evil)"', "1+{number}", "$({command})"],
    "text": ["a", "evil", "$(evil)", "`evil`", ";evil", "evil x"],
    "simple": ["evil", "evil a", "echo evil", "bash -c evil", "env evil", "ev\\il"],
}  # fmt: skip

PROGRAMS = ("cat", "env", "xargs", "find", "bash", "true")


def line(dice: random.Random, kind: str = "command", depth: int = 3) -> str:
    forms = FORMS[kind] if depth else [form for form in FORMS[kind] if "{" not in form]
    return re.sub(
        r"\{\{|\}\}|\{(\w+)\}",
        lambda match: line(dice, match.group(1), depth - 1) if match.group(1) else match.group()[0],
        dice.choice(forms),
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    directory = tmp_path / "programs"
    directory.mkdir()
    (directory / "evil").write_text('#!/bin/sh\necho x >> "$MARK"\n')
    (directory / "evil").chmod(0o755)
    for name in PROGRAMS:
        (directory / name).symlink_to(shutil.which(name) or "/bin/true")
    return directory


def test_whatever_bash_runs_is_found(place: Place, programs: Path, tmp_path: Path):
    dice = random.Random(20)
    denying = place.engine([rule("deny", "program", "evil")], "allow")
    allowing = place.engine([rule("allow", "program", [*PROGRAMS, "echo", "test", "command", "eval"])])
    found = 0
    for number in range(size(250, 5000)):
        command = line(dice)
        mark = tmp_path / f"mark{number}"
        environment = {"PATH": str(programs), "HOME": "/tmp/a", "MARK": str(mark)}
        subprocess.run(
            [os.path.realpath(shutil.which("bash") or "bash"), "-c", command],
            env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False,
        )  # fmt: skip
        if mark.exists():
            found += 1
            assert shell(allowing, command).decision != "allow", command
            assert shell(denying, command).decision != "allow", command
    assert found > size(60, 1500)


SLOW = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

DENY = [rule("deny", "program", "rm")]

WRAPPERS = [
    "env {}", "env A=1 {}", "nice -n 5 {}", "timeout 5 {}", "nohup {}", "setsid {}", "stdbuf -oL {}", "ionice -c 3 {}",
    "command {}", "builtin {}", "exec {}", "sudo {}", "sudo -u root {}", "doas {}", "xargs {}", "xargs -n 1 {}", "busybox {}",
    "chroot / {}", "unshare -r {}", "time {}", "strace -f {}", "find . -exec {} \\;",
]  # fmt: skip

PREFIXES = ["{}", "A=1 {}", "CI=1 {}", "! {}", "time {}", "coproc {}", "A=1 B=2 {}", "</dev/null {}"]

AROUND = [
    "ls; {}", "{} ; ls", "ls && {}", "ls || {}", "ls | {}", "{} | cat", "( {} )", "{{ {}; }}", "if true; then {}; fi",
    "for i in a b; do {}; done", "while true; do {}; done", "case x in *) {} ;; esac", "f() {{ {}; }}", "echo $( {} )",
    'echo "$( {} )"', "cat <( {} )", "echo ${{x:-$( {} )}}", "[[ -n $( {} ) ]]", "x=$( {} )", "(\ncat <<EOF\n$( {} )\nEOF\n)",
    "ls &\n{}", "ls # x\n{}", "until {}; do ls; done", "echo $(( $( {} ) ))", "select i in a; do {}; done",
]  # fmt: skip

QUOTED_SCRIPTS = [
    "bash -c {}",
    "sh -c {}",
    "eval {}",
    "trap {} EXIT",
    "su -c {}",
    "watch {}",
    "ssh host {}",
    "bash <<< {}",
]


@st.composite
def spelled(draw: st.DrawFn, word: str) -> str:
    """A word written with quotes and escapes in any way that means the same."""
    pieces = []
    for letter in word:
        pieces.append(
            draw(
                st.sampled_from(
                    [
                        letter,
                        f"'{letter}'",
                        f'"{letter}"',
                        f"\\{letter}",
                        f"$'{letter}'",
                        f"$'\\x{ord(letter):02x}'",
                        f"''{letter}",
                    ]
                )
            )
        )
    return "".join(pieces)


@SLOW
@given(spelling=spelled("rm"), argument=spelled("-rf"))
def test_no_quoting_or_escaping_hides_a_denied_program(place: Place, spelling: str, argument: str):
    assert shell(place.engine(DENY, "allow"), f"{spelling} {argument} x").decision == "deny"


@SLOW
@given(
    prefix=st.sampled_from(PREFIXES), wrappers=st.lists(st.sampled_from(WRAPPERS), max_size=5), spelling=spelled("rm")
)
def test_no_chain_of_wrappers_hides_a_denied_program(place: Place, prefix: str, wrappers: list[str], spelling: str):
    command = f"{spelling} x"
    for wrapper in wrappers:
        command = wrapper.format(command)
    unread = prefix.startswith("<") and command.startswith("time ")  # the parser refuses it, bash does not
    command = prefix.format(command)

    assert shell(place.engine(DENY, "allow"), command).decision == ("ask" if unread else "deny")


@SLOW
@given(
    around=st.lists(st.sampled_from(AROUND), max_size=3), scripts=st.lists(st.sampled_from(QUOTED_SCRIPTS), max_size=3)
)
def test_no_nesting_hides_a_denied_program(place: Place, around: list[str], scripts: list[str]):
    command = "rm x"
    for script in scripts:
        command = script.format(shlex.quote(command))
    for form in around:
        command = form.format(command)

    assert shell(place.engine(DENY, "allow"), command).decision == "deny"


@SLOW
@given(
    order=st.permutations(["-r", "-f", "-v", "x", "y"]),
    long=st.sampled_from([("--recursive", "--force"), ("--recurs", "--forc"), ("-R", "-f"), ("-r", "-f")]),
)
def test_flags_count_in_any_order_and_spelling(place: Place, order: list[str], long: tuple[str, str]):
    engine = place.engine([rule("deny", "program", "rm", flags=["recursive", "force"])], "allow")
    words = [dict(zip(("-r", "-f"), long, strict=True)).get(word, word) for word in order]

    assert shell(engine, " ".join(["rm", *words])).decision == "deny"


STRICT = {"allow": 0, "ask": 1, "deny": 2}


@covers("T7.2")
@SLOW
@given(
    parts=st.lists(
        st.sampled_from([row.line for row in load_sections()["built-in rules"] if "\n" not in row.line]),
        min_size=1,
        max_size=4,
    ),
    joint=st.sampled_from(["; ", " && ", " || ", "\n"]),
)
def test_adding_a_part_never_weakens_the_verdict(place: Place, parts: list[str], joint: str):
    engine = place.engine([rule("allow", "program", ["ls", "cat", "git", "grep"]), rule("deny", "program", "find")])
    parts = [part for part in parts if "#" not in part and not part.startswith("cd")] or ["ls"]

    whole = shell(engine, joint.join(parts)).decision
    assert STRICT[whole] >= max(STRICT[shell(engine, part).decision] for part in parts)


@SLOW
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_quoted_text_is_never_a_command(place: Place, text: str):
    quoted = shlex.quote(text.replace("\0", ""))
    verdict = shell(place.engine(DENY, "allow"), f"echo {quoted}")

    assert verdict.decision != "deny"


@SLOW
@given(text=st.text(alphabet=st.sampled_from(list("rm x;|&()<>{}$'\"`\\\n=#*?[]!~-/a0 ")), max_size=60))
def test_any_text_gets_a_verdict_and_what_does_not_parse_is_never_allowed(place: Place, text: str):
    engine = place.engine([{"tool": "shell", "action": "allow"}])
    analysis = analyse_command(text, place.workspace, place.boundary)

    if any("cannot be read" in remark for remark in analysis.remarks):
        assert shell(engine, text).decision == "ask"


@SLOW
@given(
    name=st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6),
    prefix=st.sampled_from(["./", "/tmp/", "../", "~/"]),
)
def test_an_allowed_name_never_covers_a_path_or_a_longer_name(place: Place, name: str, prefix: str):
    engine = place.engine([rule("allow", "program", name)])

    assert shell(engine, f"{prefix}{name}").decision == "ask"
    assert shell(engine, f"{name}x").decision == "ask"


QUOTINGS = [
    r"a\ b", r"'a b'", r'"a b"', r"a'b'\"c\"", r'"a\$b\\c\"d\e"', r"$'a\tb\x41\u00e9\101\cA\n'", r"\a\b", "'a\\b'",
    r"{a,b}c", r"x'{a,b}'", r'"{1..3}"', r"{1..3}", r"$'\'\"\\\?'", "a\\\nb", r"'*'", '"a\\\nb"', r"$'a\0b'", "''",
    r"x{,y}", r"{'',a}",
]  # fmt: skip


def decode(text: str, **values: str) -> list[ShellWord]:
    statement: Any = parse_script(f": {text}").statements[0]
    decoder = WordDecoder(certain=values, assigned={"guess": "a b"})
    return [word for one in statement["Cmd"]["Args"][1:] for word in decoder.decode_words(one)]


@pytest.mark.parametrize("text", QUOTINGS)
def test_static_words_are_what_bash_makes_of_them(text: str) -> None:
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True).stdout
    words = decode(text)

    assert "\0".join(word.text for word in words) + "\0" == told.decode()
    assert all(word.static and word.known == word.text for word in words)


WORDS = [
    "a{b,c}d", "{1..3}", "{3..1}", "{a..e..2}", "{1..9..3}", "{a,b}{c,d}", "{a,{b,c}}", "{a}", "{}", "a{b", "a}b", "{a,b",
    "{1..x}", "{-1..1}", "x{,y}", "{a..c}{1..2}", "{1..2..0}", "{c..a}", "{10..1..4}", "{a,b}}", "{{a,b}",
]  # fmt: skip


def expand(text: str) -> list[str]:
    atoms = [Atom(character, "plain") for character in text]
    return ["".join(atom.character for atom in word) for word in expand_braces(atoms)]


@pytest.mark.parametrize("word", WORDS)
def test_braces_expand_as_in_bash(word: str) -> None:
    told = subprocess.run(["bash", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True).stdout

    assert expand(word) == told.splitlines()


def test_a_list_that_is_cut_is_marked() -> None:
    words = expand_braces([Atom(character, "plain") for character in "{1..5000}"])

    assert len(words) <= 1024
    assert all(word[-1] == Atom("", "unknown") for word in words)
    assert words[0][0].character == "1"
    exact = expand_braces([Atom(character, "plain") for character in "{1..1024}"])
    assert len(exact) == 1024
    assert exact[-1][-1].kind == "plain"


def test_bash_is_asked_about_lines_that_hold_more_than_words() -> None:
    assert explain_bash_refusal("ls -la | wc -l && git log") == ""
    assert explain_bash_refusal("echo 'a b'") == ""
    assert explain_bash_refusal("cat <<E\nx") == "bash cannot read it"
    assert explain_bash_refusal("if true") == ""  # words only: the parser sees to those


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (None, "the shell parser shfmt is not installed"),
        ("/nowhere/shfmt", "the shell parser could not be run: [Errno 2] No such file or directory: '/nowhere/shfmt'"),
        ("false", "the shell parser gave up"),
        ("cat", "cat: invalid option -- 'l'"),
        ("echo", "it is nested too deeply"),
    ],
)
def test_a_parser_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, program: str | None, told: str) -> None:
    found = program and (shutil.which(program) or program)
    monkeypatch.setattr(parse, "find_parser", lambda: found)

    failed = parse_script.__wrapped__("ls")

    assert failed.statements == ()
    assert failed.failed == (program not in ("cat", "echo"))
    assert failed.error.rpartition("/")[2] == told.rpartition("/")[2]
