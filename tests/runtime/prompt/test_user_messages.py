"""The user's messages in full, by number."""

from ollm.runtime.prompt.user_messages import UserMessages


def test_earlier_ones_are_read_once_and_only_when_asked_for() -> None:
    asked: list[int] = []

    def load() -> dict[int, str]:
        asked.append(1)
        return {1: "one", 2: "two as archived"}

    words = UserMessages(load)
    words.add_message(2, "two")
    words.add_message(3, "three")
    assert asked == []

    assert words.load_all() == {1: "one", 2: "two", 3: "three"}
    words.load_all().clear()
    assert words.load_all() == {1: "one", 2: "two", 3: "three"}
    assert asked == [1]
    assert UserMessages().load_all() == {}
