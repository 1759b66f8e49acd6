"""What bash runs, policy finds: random lines are run by a real bash in which the denied program leaves a mark.

The line is made of harmless words only, and runs in an empty directory with a PATH of our own.
"""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.policy.conftest import Place, rule, shell
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


@pytest.mark.soak
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
