"""Which paths are touched, in which order, and which are not."""

from ollm.services.file_checkpoints.plan import RestorePlan, describe_change, order_steps, plan_steps
from ollm.services.file_checkpoints.tree import IGNORED, PathChange, TreeEntry

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


def test_a_letter_says_what_happens() -> None:
    changes = [PathChange("a", None, FILE), PathChange("b", FILE, None), PathChange("c", FILE, OTHER)]

    assert [describe_change(change) for change in changes] == ["A", "D", "M"]


def test_a_plan_without_a_tree_covers_all_there_is() -> None:
    plan = RestorePlan(message_id=1, current=b"", target=b"", steps=(), skipped=())

    assert (plan.ignored, plan.uncovered, plan.files, plan.disk_steps, plan.editor_steps) == (0, 0, [], (), ())
