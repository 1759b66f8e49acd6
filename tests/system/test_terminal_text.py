"""What a person sees before they say yes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.system.terminal_text import (
    escape_controls,
    escape_json,
    find_hidden_characters,
    is_hidden,
    render_command,
)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls -la", "ls -la"),
        ("ls\n\tcat x", "ls\n\tcat x"),
        ("echo \u202eevil", "echo ⟨U+202E⟩evil"),
        ("l\u200bs", "l⟨U+200B⟩s"),
        ("ls\x1b[2K", "ls⟨U+001B⟩[2K"),
        ("ls\rrm x", "ls⟨U+000D⟩rm x"),
        ("ls\u00a0x", "ls⟨U+00A0⟩x"),
        ("ls" + " " * 300 + "; rm x", "ls ⟨300 blanks⟩ ; rm x"),
        ("ls" + "\n" * 50 + "rm x", "ls\n⟨49 empty lines⟩\nrm x"),
        ("echo 'für élise → ✓ 漢字'", "echo 'für élise → ✓ 漢字'"),
    ],
)
def test_nothing_is_hidden_and_nothing_is_cut(command: str, shown: str):
    assert render_command(command) == shown


@given(st.text(max_size=300))
def test_no_hidden_character_reaches_the_screen_and_every_visible_one_does(text: str):
    shown = render_command(text)

    assert not any(is_hidden(character) for character in shown)
    assert bool(find_hidden_characters(text)) == any(is_hidden(character) for character in text)
    visible = [character for character in text if not is_hidden(character) and not character.isspace()]
    remaining = iter(shown)
    assert all(character in remaining for character in visible)


@pytest.mark.parametrize("hidden", "\u202e\u2066\u200b\ufeff\u061c\u00ad\u200d\u200e\u2060\ufff9\U000e0041\U0001d173")
def test_format_characters_are_shown_in_texts_and_json(hidden: str):
    shown = escape_controls(f"zero{hidden}width\n\tend")

    assert shown == f"zero{hidden.encode('unicode_escape').decode()}width\n\tend"
    document = json.dumps({"a": f"zero{hidden}width é"}, ensure_ascii=False)
    assert hidden not in escape_json(document)
    assert json.loads(escape_json(document)) == json.loads(document)


@pytest.mark.parametrize("text", ["👩\u200d🔬 🏳\ufe0f\u200d🌈", "می\u200cخواهم", "12\u00a0000 \ue0b0", "é\n\tè"])
def test_joined_letters_and_pictures_stay_as_they_are(text: str):
    assert escape_controls(text) == text
    assert escape_json(text) == text
