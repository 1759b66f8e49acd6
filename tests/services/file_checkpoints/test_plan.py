"""Which paths are touched, in which order, and which are not."""

from itertools import product

from ollm.services.file_checkpoints.plan import (
    PUT_BACK_BY_OTHERS,
    RestorePlan,
    describe_change,
    drop_done_steps,
    drop_foreign_folders,
    drop_hidden,
    find_obstacle,
    is_directory_only,
    is_same_state,
    list_parents,
    must_go,
    order_steps,
    plan_steps,
)
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


LINK, CLOSED, SAME = TreeEntry("l", 0, b"a"), TreeEntry("d", 0o700, b"t"), TreeEntry("d", 0o755, b"other")
STATES = {"-": None, "f": FILE, "o": OTHER, "l": LINK, "d": FOLDER, "c": CLOSED, "s": SAME}
PAIRS = list(product(STATES, STATES))


def test_which_of_two_states_goes_before_the_other_comes_and_which_are_the_same() -> None:
    changes = {one + other: PathChange("p", STATES[one], STATES[other]) for one, other in PAIRS}
    gone = {f"{one}-" for one in "foldcs"} | {f"{one}{other}" for one in "fol" for other in "dcs"}
    gone |= {f"{one}{other}" for one in "dcs" for other in "fol"}

    assert {name for name, change in changes.items() if must_go(change)} == gone
    assert {one + other for one, other in PAIRS if is_same_state(STATES[one], STATES[other])} == {
        *(one + one for one in STATES), "ds", "sd"
    }  # fmt: skip
    assert {name for name, change in changes.items() if is_directory_only(change)} == {
        one + other for one in "-dcs" for other in "-dcs"
    }
    letters = {name: describe_change(change) for name, change in changes.items()}
    assert letters == {name: "A" if name[0] == "-" else "D" if name[1] == "-" else "M" for name in changes}


def test_a_plan_tells_apart_who_does_its_steps_and_names_files_once() -> None:
    steps = (
        PathChange("d", None, FOLDER), PathChange("a", FILE, OTHER), PathChange("b", FOLDER, FILE),
        PathChange("b", FOLDER, FILE),
    )  # fmt: skip
    plan = RestorePlan(message_id=1, current=b"", target=b"", steps=steps, skipped=(), in_editor=("a",))

    assert [step.path for step in plan.disk_steps] == ["d", "b", "b"]
    assert [step.path for step in plan.editor_steps] == ["a"]
    assert [step.path for step in plan.files] == ["a", "b"]

    left = drop_done_steps(plan, {"b"})
    assert [step.path for step in left.steps] == ["a", "b", "b"]
    assert left.skipped == (), "a directory is not named"
    left = drop_done_steps(plan, {"d"})
    assert [step.path for step in left.steps] == ["d", "a"]
    assert [(one.path, one.why) for one in left.skipped] == [("b", PUT_BACK_BY_OTHERS)]
    assert drop_done_steps(plan, {"d", "b"}) is plan


def test_a_directory_of_others_stays_unless_a_file_comes_back_into_it() -> None:
    steps = [
        PathChange("x", None, FOLDER), PathChange("y", None, FOLDER), PathChange("y/z", None, FOLDER),
        PathChange("y/z/f", None, FILE), PathChange("w", FOLDER, None), PathChange("w/f", FILE, None),
        PathChange("own", None, FOLDER),
    ]  # fmt: skip

    kept = drop_foreign_folders(steps, dict.fromkeys(("x", "y", "y/z", "w", "w/f"), "not ours"))

    assert [step.path for step in kept] == ["y", "y/z", "y/z/f", "w/f", "own"]
    assert [list_parents(path) for path in ("a", "a/b", "a/b/c")] == [[], ["a"], ["a", "a/b"]]


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


def test_why_a_path_stays() -> None:
    def why(now: TreeEntry | None, then: TreeEntry | None, path: str = "p") -> str:
        return find_obstacle(PathChange(path, now, then), {"q": "not ours"}, lambda digest: f"no {digest.decode()}")

    assert why(IGNORED, None) == "is new, and ignored now"
    assert why(IGNORED, FILE) == "is ignored now"
    assert why(FILE, IGNORED) == "hidden"
    assert why(LARGE, None) == "not saved: it is too large (5 bytes)"
    assert why(FILE, LARGE) == "not saved: it is too large (5 bytes), as it was then"
    assert why(None, FILE) == "no 1"
    assert why(FILE, None) == why(None, LINK) == why(None, FOLDER) == why(FOLDER, None) == ""
    assert why(FILE, OTHER, "q") == why(None, LINK, "q") == "not ours"
    assert why(None, FOLDER, "q") == ""
