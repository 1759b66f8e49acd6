"""Which paths are touched, in which order, and which are not."""

from ollm.services.file_checkpoints.tree import (
    IGNORED,
    PathChange,
    TreeEntry,
    drop_hidden,
    order_steps,
    plan_steps,
)

FILE, OTHER, FOLDER = TreeEntry("f", 0o644, b"1"), TreeEntry("f", 0o644, b"2"), TreeEntry("d", 0o755, b"t")
LARGE = TreeEntry("x", 0o644, b"is too large (5 bytes)\0007")


def test_what_goes_goes_from_the_bottom_and_what_comes_comes_from_the_top() -> None:
    steps = [
        PathChange("a", FOLDER, FILE),
        PathChange("a/b", FILE, None),
        PathChange("c", FILE, FOLDER),
        PathChange("c/d", None, FILE),
        PathChange("e", FILE, OTHER),
    ]

    assert [step.path for step in order_steps(steps)] == ["c", "a/b", "a", "a", "c", "c/d", "e"]


def test_what_cannot_be_brought_back_or_is_not_ours_stays() -> None:
    changes = [
        PathChange("fine", FILE, OTHER),
        PathChange("foreign", FILE, OTHER),
        PathChange("large", LARGE, FILE),
        PathChange("was large", None, LARGE),
        PathChange("was hidden", FILE, IGNORED),
        PathChange("hidden now", IGNORED, FILE),
        PathChange("lost", None, TreeEntry("f", 0o644, b"lost")),
    ]

    steps, skipped = plan_steps(changes, {"foreign": "not ours"}, lambda digest: "is lost" if digest == b"lost" else "")

    assert [step.path for step in steps] == ["fine"]
    assert {one.path: one.why for one in skipped} == {
        "foreign": "not ours",
        "large": "not saved: it is too large (5 bytes)",
        "was large": "not saved: it is too large (5 bytes), as it was then",
        "hidden now": "is ignored now",
        "lost": "is lost",
    }


LINK, CLOSED, SAME = TreeEntry("l", 0, b"a"), TreeEntry("d", 0o700, b"t"), TreeEntry("d", 0o755, b"other")


def test_a_new_hidden_name_is_told_only_below_a_rule_that_changed() -> None:
    hidden = [PathChange(path, IGNORED, None) for path in ("a", "d/b", "dd/b", "d/.git", "d/e/.ollm")]

    def told(*rules: str) -> list[str]:
        return [one.path for one in drop_hidden([*hidden, *(PathChange(rule, FILE, OTHER) for rule in rules)])]

    assert told() == []
    assert told("d/.gitignore") == ["d/b", "d/.gitignore"]
    assert told(".ollmignore") == ["a", "d/b", "dd/b", ".ollmignore"]
    assert told("d/other") == ["d/other"]
    both = [PathChange("x", IGNORED, FILE), PathChange("y", None, IGNORED), PathChange("z", FILE, None)]
    assert drop_hidden(both) == both
