"""The exchanges a model that writes blocks is shown before its own."""

import pytest

from ollm.providers.text_calls.worked_exchanges import EXCHANGES, READING_EXCHANGES, parse_exchanges


def test_pairs_of_role_and_content() -> None:
    assert parse_exchanges("ignored\n>>> user\na\n\nb\n>>> assistant\n>>> user\nc\n\n") == (
        ("user", "a\n\nb"),
        ("assistant", ""),
        ("user", "c"),
    )
    assert parse_exchanges("") == ()


@pytest.mark.parametrize("exchanges", [EXCHANGES, READING_EXCHANGES])
def test_roles_alternate_from_the_user_to_an_answer_in_words(exchanges: tuple[tuple[str, str], ...]) -> None:
    assert [role for role, _ in exchanges] == ["user", "assistant"] * (len(exchanges) // 2)
    assert "```" not in exchanges[-1][1]
    assert all(content for _, content in exchanges)


def test_one_who_only_reads_is_shown_nothing_that_writes() -> None:
    shown = "\n".join(content for role, content in READING_EXCHANGES if role == "assistant")

    assert not any(word in shown for word in ("sed -i", "rm ", "mv ", " > "))
