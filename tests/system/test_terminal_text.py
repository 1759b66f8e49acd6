"""What a person sees before they say yes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.system.terminal_text import find_hidden_characters, is_hidden, render_command


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
