"""A part that waits until it is asked for."""

from ollm.domain.lazy import Lazy


def test_a_part_is_built_by_the_first_who_asks_and_once_only() -> None:
    built: list[object] = []

    def build() -> object:
        built.append(object())
        return built[-1]

    part = Lazy(build)

    assert part.built is None
    assert built == []
    assert part.get() is part.get() is part.built
    assert len(built) == 1


def test_a_part_that_could_not_be_built_is_tried_again() -> None:
    outcomes = [None, "built"]

    def build() -> str:
        outcome = outcomes.pop(0)
        if outcome is None:
            raise OSError
        return outcome

    part = Lazy(build)
    try:
        part.get()
    except OSError:
        assert part.built is None
    assert part.get() == "built"
