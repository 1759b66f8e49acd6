"""Levels of the sandbox."""

import asyncio
import json
import os
import resource
from pathlib import Path

import pytest

from ollm.domain.errors import StartError
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.caches import limit_cache, measure_cache
from ollm.system.sandbox.confined import make_git_environment
from ollm.system.sandbox.levels import detect_level
from ollm.system.sandbox.sandbox import Sandbox, read_cached_level
from ollm.system.sandbox.seatbelt import build_profile, wrap_in_seatbelt
from tests.ordinary_user import as_ordinary_user


def make(tmp_path: Path, **more: object) -> Sandbox:
    home, workspace = tmp_path / "home", tmp_path / "home" / "work"
    workspace.mkdir(parents=True, exist_ok=True)
    return Sandbox(workspace, home, **{"cache": tmp_path / "cache", **more})  # type: ignore[arg-type]


def test_the_reading_box_has_no_network_and_the_working_one_what_is_set(tmp_path: Path) -> None:
    boxes = [make(tmp_path), make(tmp_path, auto_approve=True), make(tmp_path, network="loopback", auto_approve=True)]

    networks = [tuple(box.network for kind in ("reading", "working") if (box := one.make_box(kind))) for one in boxes]

    assert networks == [("none", "all"), ("none", "none"), ("none", "loopback")]


def test_off_and_a_workspace_that_holds_the_home_have_no_box(tmp_path: Path) -> None:
    off = make(tmp_path, mode="off")
    whole = Sandbox(tmp_path, tmp_path / "home", cache=tmp_path, mode="require")

    assert (off.level, off.make_box("working"), off.refusal) == ("none", None, "")
    assert whole.level == "none"
    assert "contains your home" in whole.refusal


def test_the_level_is_known_without_trying_once_it_was_found(tmp_path: Path) -> None:
    first = make(tmp_path)
    before = first.known_level
    found = first.level

    assert before == ""
    assert make(tmp_path).known_level == found


def test_a_level_of_another_start_of_the_machine_or_of_a_container_is_not_believed(tmp_path: Path) -> None:
    cache = tmp_path / "sandbox.json"
    cache.write_text(json.dumps({"key": ["then", os.uname().release, str(os.geteuid())], "level": "full"}))

    assert read_cached_level(cache) is None
    make(tmp_path).probe()
    found = json.loads((tmp_path / "cache/sandbox.json").read_text())
    in_container = [line.replace("mnt:[", "mnt:[9") for line in found["key"]]
    cache.write_text(json.dumps({"key": in_container, "level": "none"}))
    assert read_cached_level(cache) is None
    for level in ("seatbelt", "none", "best", 3):
        cache.write_text(json.dumps({**found, "level": level}))
        assert read_cached_level(cache) is None
    cache.write_text("[]")
    assert read_cached_level(cache) is None


def test_a_program_sees_its_own_folder_and_no_more_of_what_is_hidden(tmp_path: Path) -> None:
    own = tmp_path / "own"
    for name in ("hook.sh", "config.yaml", "tools/server.py", "extensions/x.py"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).touch()
    sandbox = make(tmp_path, hidden=(own,), shared=(own / "extensions",))

    box = sandbox.make_box("working", program=("python3", f"{own}/tools/server.py", f"{own}/hook.sh", "/etc/hosts"))

    assert box is not None
    assert set(box.readable) == {f"{own}/extensions", f"{own}/tools", f"{own}/hook.sh"}


def test_git_started_unasked_runs_nothing_a_repository_names() -> None:
    variables = make_git_environment()

    count = int(variables["GIT_CONFIG_COUNT"])
    settings = {variables[f"GIT_CONFIG_KEY_{n}"]: variables[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}
    assert settings["safe.bareRepository"] == "explicit"
    assert settings["core.fsmonitor"] == "false"
    assert settings["core.hooksPath"] == os.devnull


def test_the_level_is_found_by_trying() -> None:
    assert detect_level() == ("full", "")


def test_the_level_is_found_by_an_ordinary_user() -> None:
    def body(_: Path) -> None:
        from ollm.system.sandbox import levels

        assert levels._works("full")
        assert levels._works("landlock")

    as_ordinary_user(body)


def test_a_reading_profile_forbids_writing_the_home_and_the_network(tmp_path: Path) -> None:
    home, work = tmp_path / "jürgen", tmp_path / "jürgen" / "work"
    (work / "vault").mkdir(parents=True)
    box = Box("reading", str(work), str(home), covered=(str(home),), hidden=(str(work / "vault"),), scratch="/tmp/box")
    profile = build_profile(box)

    assert "(deny file-write*)" in profile
    assert '(allow file-write* (subpath "/tmp/box"))' in profile
    assert f'(allow file-write* (subpath "{work}"))' not in profile
    rules = [f'(allow file-read* (subpath "{work}"))']
    places = [profile.index(rule) for rule in (*rules, f'(deny file-read* (subpath "{work}/vault"))')]
    assert places == sorted(places), "the deepest comes last, and counts"
    assert "(deny network*)" in profile


def test_a_working_profile_keeps_protected_places_but_for_approved_ones() -> None:
    box = Box("working", "/w", "/Users/u", network="all", protected=("/w/.git",), approved=("/w/.git/info",))
    profile = build_profile(box)

    assert "(deny network*)" not in profile
    assert profile.rindex('(allow file-write* (subpath "/w/.git/info"))') > profile.rindex(
        '(deny file-write* (subpath "/w/.git"))'
    )
    assert wrap_in_seatbelt(box, ("ls",))[-1] == "ls"


def test_a_command_signals_what_it_started_and_examples_of_environment_files_are_seen() -> None:
    profile = build_profile(Box("reading", "/w", "/Users/u"))

    assert "(deny signal)(allow signal (target same-sandbox))" in profile
    assert profile.index("[eE][nN][vV][^/]*") < profile.index("(example|sample|template)")


def test_levels_that_could_not_be_tried_are_not_stored_and_nothing_runs_without_a_box() -> None:
    def body(place: Path) -> None:
        sandbox = make(place)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

        assert sandbox.level == "none"
        assert "could not be tried" in sandbox.refusal
        with pytest.raises(StartError, match="could not be tried"):
            sandbox.make_box("working")
        assert not (place / "cache" / "sandbox.json").exists()

    as_ordinary_user(body)


def test_a_level_that_stopped_working_is_found_again(tmp_path: Path) -> None:
    told: list[str] = []
    sandbox = make(tmp_path, report=told.append)
    sandbox.level = "landlock"

    async def start() -> str:
        if sandbox.level == "landlock":
            raise StartError("Operation not permitted", "start")
        return sandbox.level

    assert asyncio.run(sandbox.start(start)) == "full"
    assert make(tmp_path).known_level == "full"
    sandbox.level = "none"
    assert [sandbox.make_box("working"), sandbox.make_box("working")] == [None, None]
    assert len(told) == 1
    assert told[0].startswith("Sandbox level none")


def test_the_limit_of_downloads_removes_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    cache, mine = tmp_path / "box/work", tmp_path / "mine"
    for path in (mine / "thesis", mine / "deep/notes", cache / "npm/_cacache/x", cache / "npm/_npx/server"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 5000)
    for link, target in {
        "aaa": mine,
        "npm/inner": mine,
        "npm/_cacache/y": mine / "deep",
        "gone": tmp_path / "none",
    }.items():
        (cache / link).symlink_to(target)
    with (cache / "npm/sparse").open("wb") as file:
        file.truncate(2**40)

    assert sum(measure_cache(tmp_path).values()) < 2**20
    limit_cache(tmp_path, 0)

    assert (mine / "thesis").exists()
    assert (mine / "deep/notes").exists()
    assert not [*cache.iterdir()]
