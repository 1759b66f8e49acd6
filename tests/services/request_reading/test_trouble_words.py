"""How a request says that something fails."""

import pytest

from ollm.services.request_reading.trouble_words import find_failing, find_only_failing, has_trouble, is_complaint
from ollm.services.request_reading.wanted_runs import find_first_command, find_wanted_commands

WAYS = (
    *("fails", "crashes", "breaks", "dies", "blows up", "throws", "raises", "is broken", "is failing", "errors out"),
    *("stops with an error", "gives an error", "gives me a strange error", "throws a KeyError", "exits with an error"),
    *(
        "won't run",
        "won't start",
        "does not start",
        "doesn't even start",
        "does not work",
        "will not run",
        "cannot run",
    ),
    *("breaks when the list is empty", "throws ValueError", "ends with a traceback", "breaks on line 3"),
)


@pytest.mark.parametrize("way", WAYS)
def test_what_fails_is_run_first_however_it_is_said(way: str) -> None:
    assert find_failing(f"race.py {way}. Fix it.") == ["race.py"]
    assert find_first_command(f"race.py {way}. Fix it.") == "python race.py"
    if not way.startswith(("throws", "raises")):  # that may be what it is to do
        assert find_first_command(f"count.sh should print 3, but it {way}. Fix it.") == "sh count.sh"
        assert has_trouble(f"Since today it {way}.")


@pytest.mark.parametrize(
    "request_",
    [
        "wrap.py breaks lines at 80 columns. Make it 72.",
        "clean.py throws away the results, keep them.",
        "Remove the line breaks from a.txt and run a.py.",
        "a.py should stop with an error when the list is empty.",
        "Let a.py exit with an error if x is missing.",
        "a.py should give an error for negative numbers.",
        "a.py starts. Add a flag.",
        "Write a script a.py that throws dice.",
        "a.py works, but b.txt is empty.",
    ],
)
def test_other_words_are_no_failure(request_: str) -> None:
    assert find_failing(request_) == []
    assert not has_trouble(request_)
    assert find_only_failing(request_) == ""


def test_it_means_the_only_script() -> None:
    assert find_only_failing("a.py reads b.txt, but it crashes. Fix it.") == "a.py"
    assert find_only_failing("Change a.py so that it fails when x is 0.") == ""
    assert find_only_failing("Let a.py try again if it fails.") == ""
    assert find_only_failing("a.py calls b.py, but it crashes. Fix it.") == ""
    assert find_first_command("a.py reads b.txt. Why does it say that it crashes?") == ""


@pytest.mark.parametrize(
    ("request_", "commands"),
    [
        ("The test in test_slug.py fails when I run it with python. Correct slug.py, not the test.", []),
        ("Run it with python.", []),
        ("Run python a.py. Correct b.py then.", ["python a.py"]),
        ("Can you run python a.py? It should print 1.", ["python a.py"]),
        ("Run python src/a.py v1.2 ../b.txt!", ["python src/a.py v1.2 ../b.txt"]),
        ("Run make. Tell me what it says.", ["make"]),
        ("Run `python a.py`. Then stop.", ["python a.py"]),
        ("Start node. Fine.", []),
    ],
)
def test_a_command_ends_where_its_sentence_does(request_: str, commands: list[str]) -> None:
    assert find_wanted_commands(request_) == commands


@pytest.mark.parametrize(
    "asked",
    [
        "a.py crashes when i run it??",
        "a.py is broken",
        "my script a.py fails",
        "I get a KeyError from a.py",
        "python a.py dies",
    ],
)
def test_a_complaint_is_a_wish_to_have_it_mended(asked: str) -> None:
    assert is_complaint(asked)
    assert find_first_command(asked) == "python a.py"


@pytest.mark.parametrize(
    "asked",
    [
        "why does a.py crash?",
        "a.py fails, what is the reason?",
        "a.py fails. Do not change anything.",
        "a.py crashed yesterday",
        "a.py fails only on Windows",
        "When a.py fails, b.py is run.",
        "The page says that a.py fails",
        "a.py fails. Look at it.",
    ],
)
def test_other_words_about_it_are_no_complaint(asked: str) -> None:
    assert not is_complaint(asked)
