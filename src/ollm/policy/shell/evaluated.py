"""Words that a builtin or a program takes as code although they look like text: `test -v`, `printf %n`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.policy.shell.words import ShellWord

_PLAIN_NAME = r"[A-Za-z_]\w*(\[\d+\])?"
_COUNT_FORMAT = r"%[^%A-Za-z]*[hlqjztL]*n"
_JQ_MODULE = r"(?<![\w.$\"])(import|include|modulemeta|get_search_list|input_filename)\b"
_NAME_TESTS = frozenset({"-v", "-R"})


def find_test_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """`-v NAME` evaluates the subscript of a name, and a word that is not known may be `-v`."""
    found = [(place, "its words are only known when it runs") for place, word in enumerate(words) if word.several]
    ends = len(words) - (words[0].text == "[")
    for place in range(2, ends):
        before, word = words[place - 1], words[place]
        may_name = before.text in _NAME_TESTS or (not before.static and before.might_be_option)
        plain = word.static and not word.glob and "[" not in word.text
        named = word.static and not word.glob and re.fullmatch(_PLAIN_NAME, word.text)
        if (before.text in _NAME_TESTS and not named) or (may_name and not plain and not named):
            found.append((place, "a name in it is evaluated when it runs"))
    return found


def find_printf_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """`%n` sets a variable, `PATH` too."""
    place = 2 if len(words) > 2 and words[1].text == "--" else 1
    if len(words) <= place:
        return []
    form = words[place]
    unknown = not form.static or form.glob
    if unknown and len(words) == place + 1 and not form.several and not form.glob:
        return []  # without a second word there is no variable to set
    if unknown or re.search(_COUNT_FORMAT, form.text):
        return [(place, "printf may set a variable")]
    return []


def find_status_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """`exit 1` and `exit $?`: some shells evaluate what is written there and is no number."""
    written = [(place, word) for place, word in enumerate(words[1:], 1) if word.static]
    return [(place, "its status is no number") for place, word in written if not word.text.isdecimal()]


def find_jq_dangers(words: Sequence[ShellWord]) -> list[tuple[int, str]]:
    """Modules and files that a jq program names."""
    places = [place for place, word in enumerate(words[1:], 1) if re.search(_JQ_MODULE, word.text)]
    return [(place, "the jq program may read other files") for place in places]
