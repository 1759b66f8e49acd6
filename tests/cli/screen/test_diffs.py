"""Changes of files as people read them."""

from ollm.cli.screen.diffs import parse_diff


def test_a_diff_stands_side_by_side_with_its_numbers() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@\n same\n-old\n--- gone\n+new\n+more\n end\n"

    rows = [(pair.kind, pair.before, pair.after, pair.old, pair.new) for pair in parse_diff(diff)]

    assert rows == [
        ("head", "--- a/x", None, 0, 0),
        ("head", "+++ b/x", None, 0, 0),
        ("gap", "@@ -3,3 +3,4 @@", None, 0, 0),
        ("same", "same", "same", 3, 3),
        ("change", "old", "new", 4, 4),
        ("change", "-- gone", "more", 5, 5),
        ("same", "end", "end", 6, 6),
    ]
