"""Titles: what the person wrote, not what they pasted."""

import pytest

from ollm.domain.messages import Message, TextPart
from ollm.services.chat_recording import make_title

LONG = "Look at " + "every " * 30 + "file"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n  first line  \nsecond", "first line"),
        ("Fix the parser. Then run the tests.", "Fix the parser."),
        (
            'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1\nWhy does this fail?',
            "Why does this fail?",
        ),
        ("```python\ndef a(): pass\n```\nWhat does this do?", "What does this do?"),
        ("2024-01-01 12:00 INFO start\nERROR boom happened\nplease explain these lines", "please explain these lines"),
        ('{\n "a": 1\n}\nturn this into yaml', "turn this into yaml"),
        ("import os\nfrom sys import path\nwhat is this file for", "what is this file for"),
        ("> they said this\nI disagree with that. Why?", "I disagree with that."),
        ("なぜ失敗するのですか？直して。\n二行目", "なぜ失敗するのですか？"),
        ("{}\n[]", "{}"),
        ("x" * 100, "x" * 79 + "…"),
        ("", ""),
    ],
)
def test_the_title_is_the_first_sentence_of_prose(text: str, title: str) -> None:
    assert make_title(Message(id=1, role="user", parts=(TextPart(text=text),), timestamp="")) == title


def test_a_long_line_is_cut_between_words() -> None:
    title = make_title(Message(id=1, role="user", parts=(TextPart(text=LONG),), timestamp=""))

    assert len(title) <= 80
    assert title.endswith("every…")
