"""Which paths `.ollmignore` hides, as tools name them."""

from pathlib import Path

from ollm.app.hidden_paths import HiddenPaths


def test_rules_of_every_directory_on_the_way_count(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".ollmignore").write_text("*.key\nprivate/\n")
    (tmp_path / "a" / ".ollmignore").write_text("!open.key\nnotes\n")
    hidden = HiddenPaths(str(tmp_path)).is_hidden

    paths = (
        "x.key",
        "a/x.key",
        "a/open.key",
        "private/x",
        "a/b/notes",
        "notes",
        f"{tmp_path}/x.key",
        "../x.key",
        "a\0",
    )
    assert [path for path in paths if hidden(path)] == [
        "x.key",
        "a/x.key",
        "private/x",
        "a/b/notes",
        f"{tmp_path}/x.key",
    ]


def test_without_a_workspace_nothing_is_hidden() -> None:
    assert not HiddenPaths(None).is_hidden("x.key")
    assert not HiddenPaths("/no/such/place").is_hidden("x.key")
