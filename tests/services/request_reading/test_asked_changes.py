"""Whether a request asks for a change; where the words leave it open nothing is insisted on."""

import pytest

from ollm.services.request_reading.asked_changes import asks_for_change, asks_for_edit
from ollm.services.request_reading.plain_words import strip_courtesy


@pytest.mark.parametrize(
    "asked",
    [
        "Could you please rename gross to with_vat in all files? Don't touch net.",
        "Join a.txt and b.txt into c.txt.",
        "Copy all lines of a.log that contain FAULT to b.log",
        "Order the lines of a.txt by their number.",
        "Keep only the lines with a number.",
        "deduplicate the names",
        "Show me what's in a.json and then set port to 1.",
        "mean.py dies when it gets no numbers. Can you make it print 0 in that case?",
        "Would you mind renaming foo to bar in a.py?",
        "How about adding a retry to fetch()?",
        "The tests fail. Any chance you can fix that?",
        "withdraw should raise ValueError if amount is greater than balance.",
        "The default in conf.py has to be 5.",
        "I'd like links to be green instead of blue.",
        "I need a function that reverses a string in utils.py.",
        "turn on strict in tsconfig.json",
        "foo.py: rename x to y",
        "In the file config.json, set debug to true",
        "For every file in src, add a licence header.",
        "Let's rename the class Foo to Bar.",
        "Go ahead and delete old.txt.",
        "OK now delete it.",
        "Only change settings.py: timeout 60.",
        "Get rid of all .tmp files here, nothing else.",
        "Don't change a.py, change b.py.",
        "Do not touch the test. Make it pass.",
        "Never edit generated.py, but add the import to main.py.",
        "Add a docstring to area, but don't change the code.",
        "Give the parameter name of greet in greeting.py the default value 3.",
        "What is wrong with app.py? Please repair it.",
        "Find and fix the bug in app.py.",
        "Check app.py for errors and correct them.",
        "Read data.txt and write the sum into sum.txt.",
        "Find out why, repair shop.py and run it again.",
    ],
)
def test_a_change_is_asked_for(asked: str) -> None:
    assert asks_for_change(strip_courtesy(asked))


@pytest.mark.parametrize(
    "asked",
    [
        "Any idea how to fix the test?",
        "Give me a summary of a.py.",
        "Give an explanation of the regex.",
        "Give the name of a file.",
        "I need to understand how add works.",
        "Let me know what a.py does.",
        "Make a list of the functions in a.py.",
        "Make a suggestion for a better name.",
        "Review my code and make suggestions.",
        "Must the port be set?",
        "Should I use a list or a set here?",
        "The API must be called with a token. Does client.py do that?",
        "The team should review this tomorrow.",
        "You should know that we use tabs.",
        "Think about how to make this faster.",
        "Write a summary of a.py.",
        "Add 2 and 3.",
        "Add up the numbers in numbers.txt and tell me the total.",
        "What do add and remove do?",
        "Explain what set and get do.",
        "The output in a.txt is wrong?",
        "Comment supprimer un fichier ?",
        "I changed the port to 9000.",
        "What needs to be changed in a.py to support Windows?",
        "Explain why the test fails. Don't fix it.",
        "Great, that works.",
        "Sort of.",
    ],
)
def test_nothing_is_insisted_on_where_no_change_is_asked_for(asked: str) -> None:
    assert not asks_for_change(strip_courtesy(asked))


def test_a_file_that_is_only_made_is_no_edit() -> None:
    assert not asks_for_edit("Run python main.py and write its output into out.txt.")
    assert asks_for_edit("Change main.py and write its output into out.txt.")


def test_many_places_before_a_verb_are_read_in_no_time() -> None:
    assert not asks_for_change("in a.py " * 60)  # each twice as long as the one before, where they are read in two ways
    assert asks_for_change("In a.py, in the function f, please also rename x to y.")


def test_what_would_be_nice_is_a_wish() -> None:
    assert asks_for_change("would be nice if a.py also printed the level")
    assert asks_for_change("It would be great if f in a.py returned 0.")
    assert not asks_for_change("would be nice if you could explain a.py")
    assert not asks_for_change("Would it be better if I used a list?")
