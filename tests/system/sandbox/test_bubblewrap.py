"""Boxes made by bubblewrap: what is told to it, and that it is used where namespaces are refused to us."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.system.process_tree import find_descendants
from ollm.system.sandbox.box import Box, find_bubblewrap
from ollm.system.sandbox.bubblewrap import _make_scratch, make_arguments
from ollm.system.sandbox.kernel import CLONE_NEWUSER
from ollm.system.sandbox.seccomp import CallFilter, fail_with
from tests.cli.command import SCRIPT

needs_bubblewrap = pytest.mark.skipif(not find_bubblewrap(), reason="bubblewrap (bwrap) is not installed here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can refuse itself namespaces and not bubblewrap")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("home/.ssh/id_rsa", "home/work/.git/config", "home/work/.git/hooks/x", "home/work/.env", "scratch/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret")
    return tmp_path


def list_options(box: Box, *environment_files: Path) -> list[tuple[str, ...]]:
    """The arguments, each option with its words."""
    words = list(make_arguments(box, list(map(str, environment_files))))
    starts = [at for at, word in enumerate(words) if word.startswith("--")]
    return [tuple(words[at:end]) for at, end in zip(starts, [*starts[1:], len(words)], strict=True)]


def test_a_reading_box_writes_nowhere_and_shows_no_home(place: Path) -> None:
    home, work = str(place / "home"), str(place / "home/work")
    options = list_options(Box("reading", work, home, scratch=str(place / "scratch")), place / "home/work/.env")

    assert [option[1:] for option in options if option[0] == "--bind"] == [
        (str(place / "scratch"), "/tmp"),
        (str(place / "scratch"), "/var/tmp"),
    ]
    assert ("--unshare-net",) in options
    assert options.index(("--tmpfs", home)) < options.index(("--ro-bind", work, work))
    assert options.index(("--ro-bind", work, work)) < options.index(("--dev-bind", "/dev/null", f"{work}/.env"))
    assert options.index(("--remount-ro", home)) > options.index(("--ro-bind", work, work))


def test_a_working_box_writes_in_the_workspace_but_not_where_git_is_steered(place: Path) -> None:
    home, work = str(place / "home"), str(place / "home/work")
    options = list_options(Box("working", work, home, network="all", scratch=str(place / "scratch")))
    approved = list_options(
        Box("working", work, home, approved=(f"{work}/.git/config",), scratch=str(place / "scratch"))
    )

    protected = ("--ro-bind", f"{work}/.git/config", f"{work}/.git/config")
    assert options.index(("--bind", work, work)) < options.index(("--bind", f"{work}/.git", f"{work}/.git"))
    assert options.index(("--bind", f"{work}/.git", f"{work}/.git")) < options.index(protected)
    assert ("--tmpfs", f"{home}/.ssh") in options
    assert ("--unshare-net",) not in options
    assert protected not in approved
    assert ("--unshare-net",) in approved


def test_a_workspace_in_a_hidden_place_is_there(place: Path) -> None:
    work = place / "home/.config/gh/work"
    work.mkdir(parents=True)
    options = list_options(Box("working", str(work), str(place / "home"), scratch=str(place / "scratch")))

    assert options.index(("--tmpfs", str(work.parent))) < options.index(("--bind", str(work), str(work)))


def test_a_temporary_directory_that_went_away_is_made_again_and_must_be_ours(tmp_path: Path) -> None:
    _make_scratch(str(tmp_path / "box"))
    (tmp_path / "link").symlink_to(tmp_path / "box")

    assert (tmp_path / "box").stat().st_mode & 0o777 == 0o700
    with pytest.raises(OSError, match="not ours"):
        _make_scratch(str(tmp_path / "link"))


def refuse_user_namespaces() -> None:
    calls = CallFilter()
    for name in ("unshare", "clone"):
        calls.add_bit_rule(name, 0, CLONE_NEWUSER, fail_with(1))
    calls.add_rule(["clone3"], fail_with(38))
    calls.install(listen=False)


def run(place: Path, *arguments: str) -> str:
    environment = {"HOME": str(place / "home"), "OLLM_HOME": str(place / "home/.ollm"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        cwd=place / "home/work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=refuse_user_namespaces,
    )
    return done.stdout + done.stderr


@needs_bubblewrap
@needs_root
def test_it_is_used_where_namespaces_are_refused_to_us(place: Path) -> None:
    work = place / "home/work"
    (work / "try.sh").write_text(
        "echo $$; echo made > new; cat ../.ssh/id_rsa\n"
        "for f in ../out .git/config .mcp.json; do echo x >> $f; done\n(setsid sleep 1000 &); exit 3\n"
    )
    call = json.dumps({"command": "sh try.sh"})

    said = run(place, "tools", "run", "shell", "--json", "--yes", "--args", call)
    result = json.loads(said)

    assert "full, through bubblewrap" in run(place, "doctor")
    assert result["exitCode"] == 3, said
    assert int(result["llmContent"].split()[0]) < 100  # processes are counted anew inside
    assert "secret" not in said
    assert (work / "new").read_text() == "made\n"
    assert (work / ".git/config").read_text() == "secret"
    assert {one.name for one in work.iterdir()} == {".env", ".git", "new", "try.sh"}
    assert {one.name for one in (place / "home").iterdir()} == {".ollm", ".ssh", "work"}
    assert not [one for one in find_descendants([os.getpid()]) if _is_sleeping(one)]


def _is_sleeping(process: int) -> bool:
    try:
        return b"sleep\x001000" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
