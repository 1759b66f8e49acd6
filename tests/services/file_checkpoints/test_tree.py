"""Trees as objects: what differs between two, and what they need."""

from ollm.services.file_checkpoints.tree import (
    IGNORED,
    PathChange,
    TreeEntry,
    collect_digests,
    compare_trees,
    decode_tree,
    encode_tree,
    iter_entries,
    join_changes,
)


class Memory(dict[bytes, bytes]):
    def put(self, **entries: TreeEntry) -> bytes:
        content = encode_tree(entries)
        self[content] = content
        return content

    def read(self, digest: bytes) -> bytes:
        return self[digest]


FILE, OTHER = TreeEntry("f", 0o644, b"1"), TreeEntry("f", 0o644, b"2")


def folder(tree: bytes, mode: int = 0o755) -> TreeEntry:
    return TreeEntry("d", mode, tree)


def test_a_name_that_is_no_text_comes_back() -> None:
    odd = b"\xff.txt".decode("utf-8", "surrogateescape")

    assert decode_tree(encode_tree({odd: FILE, "a": OTHER})) == {odd: FILE, "a": OTHER}


def test_changes_are_found_at_any_depth_and_equal_parts_are_not_read() -> None:
    memory = Memory()
    same = TreeEntry("d", 0o755, b"never read")
    one = memory.put(same=same, d=folder(memory.put(a=FILE, b=FILE)), gone=folder(memory.put(x=FILE)))
    two = memory.put(same=same, d=folder(memory.put(a=OTHER, b=FILE), 0o700), new=FILE)

    found = {change.path: (change.before, change.after) for change in compare_trees(memory, one, two)}

    assert found.keys() == {"d", "d/a", "gone", "gone/x", "new"}
    assert found["gone/x"] == (FILE, None)
    assert found["d/a"] == (FILE, OTHER)


def test_what_rules_hide_is_never_looked_into() -> None:
    memory = Memory()
    shown = memory.put(d=folder(memory.put(a=FILE)))
    hidden, without = memory.put(d=IGNORED), memory.put()

    assert [change.path for change in compare_trees(memory, shown, hidden)] == ["d"]
    assert list(compare_trees(memory, without, hidden)) == []
    assert list(iter_entries(memory, hidden)) == []


def test_everything_a_tree_needs_is_collected_also_when_a_part_is_lost() -> None:
    memory = Memory()
    inner = memory.put(a=FILE)
    outer = memory.put(d=folder(inner), b=OTHER)

    assert collect_digests(memory, [outer]) == {outer, inner, b"1", b"2"}


def test_changes_of_a_path_that_follow_on_from_each_other_are_one() -> None:
    third = TreeEntry("f", 0o644, b"3")

    def join(*changes: tuple[str, TreeEntry | None, TreeEntry | None]) -> list[PathChange]:
        return join_changes(PathChange(*change) for change in changes)

    assert join(("b", FILE, OTHER), ("a", None, FILE), ("b", OTHER, third)) == [
        PathChange("a", None, FILE),
        PathChange("b", FILE, third),
    ]
    assert join(("a", FILE, OTHER), ("a", OTHER, FILE)) == []
    assert join(("a", FILE, OTHER), ("a", third, FILE), ("a", FILE, None), ("a", None, third)) == [
        PathChange("a", FILE, OTHER),
    ]
    assert join(("a", FILE, OTHER), ("a", third, FILE), ("a", FILE, None)) == [
        PathChange("a", FILE, OTHER),
        PathChange("a", third, None),
    ]
