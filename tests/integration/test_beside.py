"""Ordinary work, attacks and other people's command lines in the sandbox, as an ordinary user and as root.

`make integration` takes a share of each list, `make soak` all of it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.beside.sides import list_user_prefixes
from tests.integration.packages import WANTED
from tests.sizes import SOAK, size

pytestmark = pytest.mark.skipif(not (WANTED or SOAK), reason="run with `make integration` or `make soak`")
ROOT = Path(__file__).parents[2]
USERS = list_user_prefixes()
LEVELS = ("full", "bubblewrap", "landlock")
ALIKE_SHARE = 0.9
FORKABLE = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}  # as for the commands, which are then forked


def run_list(user: str, name: str, *arguments: str) -> str:
    done = subprocess.run(
        [*USERS[user], sys.executable, "-m", f"tests.integration.beside.{name}", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **FORKABLE, "HOME": find_home(user)},
    )  # fmt: skip
    print(done.stdout, done.stderr)
    return done.stdout


def find_home(user: str) -> str:
    """Return a home that the user owns; root makes one for the ordinary user."""
    if user == "root" or os.geteuid() != 0:
        return str(Path.home())
    home = Path("/home/ollm-beside")
    (home / ".cache").mkdir(parents=True, exist_ok=True)
    for path in (home, home / ".cache"):
        os.chown(path, 1234, 1234)
    return str(home)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("number", range(len(LEVELS)), ids=LEVELS)
def test_ordinary_work_ends_as_it_does_outside(user: str, number: int) -> None:
    part = f"{number}/{size(12, 1)}" if size(0, 1) == 0 else "0/1"
    said = run_list(user, "stories", LEVELS[number], part)
    assert " 0 stories end differently" in said


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("number", range(len(LEVELS)), ids=LEVELS)
def test_no_attack_has_an_effect(user: str, number: int) -> None:
    part = f"{number}/{size(24, 1)}" if size(0, 1) == 0 else "0/1"
    said = run_list(user, "attacks", LEVELS[number], part)
    assert " 0 had an effect" in said


def test_lines_of_other_projects_end_as_they_do_outside() -> None:
    user = "ordinary" if "ordinary" in USERS else "root"
    said = run_list(user, "world", "full", str(size(30, 10_000)))
    if " lines exit 0 outside" not in said:
        pytest.skip("no package of the list can be fetched")
    counted, alike = map(int, re.findall(r"(\d+) lines exit 0 outside, (\d+) end alike", said)[-1])
    assert counted >= size(30, 300)
    assert alike >= ALIKE_SHARE * counted
