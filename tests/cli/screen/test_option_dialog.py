"""Lists above the input: what keys do there."""

from ollm.cli.screen.call_list import CallList
from ollm.cli.screen.option_dialog import OptionDialog


def test_a_list_of_calls_stays_open_for_more_and_makes_way_for_what_is_typed() -> None:
    shown: list[tuple[str, str]] = []
    inserted: list[str] = []
    dialog = OptionDialog(lambda _: None, inserted.append)
    dialog.list = CallList([("Run b", "1\n2"), ("Run a", "")], lambda *call: shown.append(call))

    dialog.choose(True)
    dialog.list.move(1)
    dialog.choose(True)
    assert shown == [("Run b", "1\n2"), ("Run a", "")]
    assert dialog.type("k")
    assert (dialog.list, inserted, dialog.type("x")) == (None, ["k"], False)


def test_a_choice_closes_its_list_and_letters_do_nothing_there() -> None:
    submitted: list[str] = []
    dialog = OptionDialog(submitted.append, lambda _: None)
    dialog.offer_options("mode", {"plan": "", "code": ""}, "code")

    assert not dialog.type("x")
    dialog.choose(True)
    assert (dialog.list, submitted) == (None, ["/mode code"])
