"""The profile for sandbox-exec, as text: that it says what a box says."""

from ollm.system.sandbox.box import Box
from ollm.system.sandbox.seatbelt import build_profile, wrap_in_seatbelt


def test_a_reading_profile_forbids_writing_secrets_and_the_network() -> None:
    profile = build_profile(Box("reading", "/Users/u/work", "/Users/u", scratch="/private/tmp/box"))

    assert "(deny file-write*)" in profile
    assert '(allow file-write* (subpath "/private/tmp/box"))' in profile
    assert '(allow file-write* (subpath "/Users/u/work"))' not in profile
    assert '(deny file-read* (subpath "/Users/u/.ssh"))' in profile
    assert "(deny network*)" in profile


def test_a_working_profile_keeps_steering_names_but_for_approved_ones() -> None:
    box = Box("working", "/w", "/Users/u", network="all", approved=("/w/AGENTS.md",))
    profile = build_profile(box)

    assert "(deny network*)" not in profile
    assert profile.rindex('(subpath "/w/AGENTS.md")') > profile.rindex("(deny file-write* (regex")
    assert wrap_in_seatbelt(box, ("ls",))[-1] == "ls"


def test_what_is_hidden_in_the_workspace_stays_hidden_whatever_its_letters() -> None:
    box = Box(
        "working", "/Users/jürgen/work", "/Users/jürgen", hidden=("/Users/jürgen/work/vault",), executed=("/w/h",)
    )
    profile = build_profile(box)

    seen, hidden = '(allow file-read* (subpath "/Users/jürgen/work"))', "(deny file-read* (subpath {}))"
    assert profile.index(seen) < profile.index(hidden.format('"/Users/jürgen/work/vault"'))
    assert hidden.format('"/Users/jürgen/.ssh"') in profile
    assert '(deny file-write* (literal "/w/h"))' in profile


def test_a_command_signals_what_it_started_and_examples_of_environment_files_are_seen() -> None:
    profile = build_profile(Box("reading", "/w", "/Users/u"))

    assert "(deny signal)(allow signal (target same-sandbox))" in profile
    assert profile.index("[eE][nN][vV][^/]*") < profile.index("(example|sample|template)")
