"""A tree with some paths changed, beside the tree that the changed files make."""

import random
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ollm.services.file_checkpoints.plan import order_steps
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry, compare_trees, decode_tree
from ollm.services.file_checkpoints.tree_edit import apply_changes
from tests.services.file_checkpoints.trees import SESSION, change_tree, make_checkpoints, take_turn
from tests.sizes import size


@settings(
    max_examples=size(15, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_all_changes_between_two_trees_make_the_one_from_the_other(tmp_path: Path, seed: int) -> None:
    place, chance = tmp_path / str(seed), random.Random(seed)
    (place / "tree").mkdir(parents=True, exist_ok=True)
    change_tree(place / "tree", chance, 12)
    checkpoints = make_checkpoints(place)
    with take_turn(checkpoints, 1):
        change_tree(place / "tree", chance, 12)
    record = checkpoints.list_records(SESSION)[-1]
    begin, end = bytes.fromhex(record.begin), bytes.fromhex(record.end)

    changes = order_steps(list(compare_trees(checkpoints.objects, begin, end)))

    assert apply_changes(checkpoints.objects, begin, changes) == end


def test_a_directory_stays_as_long_as_something_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "tree" / "d").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "tree" / "d" / name).touch()
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        pass
    begin = bytes.fromhex(checkpoints.list_records(SESSION)[-1].begin)
    file, folder = TreeEntry("f", 0o644, b"x" * 32), decode_tree(checkpoints.objects.read(begin))["d"]

    left = apply_changes(checkpoints.objects, begin, [PathChange("d", folder, None), PathChange("d/one", file, None)])
    made = apply_changes(checkpoints.objects, begin, [PathChange("new/deep/x", None, file)])

    assert decode_tree(checkpoints.objects.read(decode_tree(checkpoints.objects.read(left))["d"].value)).keys() == {
        "two"
    }
    assert [change.path for change in compare_trees(checkpoints.objects, begin, made)] == [
        "new",
        "new/deep",
        "new/deep/x",
    ]


def test_a_file_stays_when_what_was_below_its_name_goes_and_wins_over_what_is_said_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("x")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        pass
    objects, begin = checkpoints.objects, bytes.fromhex(checkpoints.list_records(SESSION)[-1].begin)
    file, now = TreeEntry("f", 0o644, b"x" * 32), decode_tree(objects.read(begin))["a"]

    assert apply_changes(objects, begin, [PathChange("a/b", file, None)]) == begin
    replaced = apply_changes(objects, begin, [PathChange("a/b", file, file), PathChange("a", now, file)])
    assert decode_tree(objects.read(replaced)) == {"a": file}
