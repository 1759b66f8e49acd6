"""The profile for sandbox-exec, as text: that it says what a box says."""

from pathlib import Path

from ollm.system.sandbox.box import Box
from ollm.system.sandbox.seatbelt import build_profile, wrap_in_seatbelt


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


def test_a_working_profile_keeps_steering_names_but_for_approved_ones() -> None:
    box = Box("working", "/w", "/Users/u", network="all", approved=("/w/AGENTS.md",))
    profile = build_profile(box)

    assert "(deny network*)" not in profile
    assert profile.rindex('(subpath "/w/AGENTS.md")') > profile.rindex("(deny file-write* (regex")
    assert wrap_in_seatbelt(box, ("ls",))[-1] == "ls"


def test_a_command_signals_what_it_started_and_examples_of_environment_files_are_seen() -> None:
    profile = build_profile(Box("reading", "/w", "/Users/u"))

    assert "(deny signal)(allow signal (target same-sandbox))" in profile
    assert profile.index("[eE][nN][vV][^/]*") < profile.index("(example|sample|template)")
