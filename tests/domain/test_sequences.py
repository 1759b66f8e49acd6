from ollm.domain.sequences import count_same_objects


def test_objects_count_as_long_as_they_are_the_very_same() -> None:
    first, second, third = [1], [2], [3]

    assert count_same_objects([first, second, third], [first, second]) == 2
    assert count_same_objects([first, second], [first, second, third]) == 2
    assert count_same_objects([first, second, third], [first, [2], third]) == 1
    assert count_same_objects([], [first]) == 0
