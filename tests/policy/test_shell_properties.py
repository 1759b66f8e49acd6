"""What holds for every command line, not only for those in the tables."""

import shlex

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ollm.policy.shell.analysis import analyse_command
from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.verdicts import load_sections

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
