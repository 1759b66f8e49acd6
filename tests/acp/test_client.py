"""What an editor offers, when it says nothing."""

from ollm.acp.client import ClientAbilities


def test_an_editor_that_says_nothing_offers_nothing() -> None:
    assert ClientAbilities() == ClientAbilities(reads_files=False, writes_files=False, shows_terminals=False)
