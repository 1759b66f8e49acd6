"""A project in a few lines."""

from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.files import FileEntry
from ollm.services.file_discovery.project_map import render_project_map


def entries(*paths: str) -> list[FileEntry]:
    return [FileEntry(root="/p", relative_path=path) for path in paths]


def test_a_small_project_is_mapped_whole() -> None:
    said = render_project_map(entries("README.md", "src/app/main.py", "src/app/util.py", "docs/a/b/c.md"), 1000)

    assert said == "docs/a/b/\n  c.md\nsrc/app/\n  main.py util.py\nREADME.md"


def test_what_has_no_room_is_counted() -> None:
    many = entries(*(f"src/m{number}/f{inner}.py" for number in range(30) for inner in range(30)), "Makefile")

    assert render_project_map(many, 60) == "src/ (900 files)\nMakefile"
    assert render_project_map(many, 12) == "901 files"
    assert "m7/ (30 files)" in render_project_map(many, 1000)


@given(
    st.lists(st.lists(st.text("abcé", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join), max_size=30),
    st.integers(20, 400),
)
def test_a_map_keeps_to_its_room_and_does_not_depend_on_order(paths: list[str], room: int) -> None:
    said = render_project_map(entries(*paths), room)

    assert len(said) <= room
    assert said == render_project_map(entries(*reversed(paths)), room)


def test_a_full_directory_shows_twelve_names_and_counts_the_rest() -> None:
    assert render_project_map(entries(*(f"f{number:02}" for number in range(12))), 1000).endswith("f10 f11")
    assert render_project_map(entries(*(f"f{number:02}" for number in range(14))), 1000).endswith("f11 … 2 more")


def test_of_many_directories_the_fullest_forty_are_shown() -> None:
    many = entries(*(f"d{number:02}/x" for number in range(42)), "d41/y", "d40/y")

    lines = render_project_map(many, 10_000).splitlines()

    assert lines[-1] == "… 2 more directories"
    assert "d41/" in lines
    assert "d39/" not in lines


def test_directories_are_no_files_and_a_name_cannot_break_the_lines() -> None:
    folder = FileEntry(root="/p", relative_path="only", type="directory")

    assert render_project_map([folder, *entries("a\nb", "ok")], 100) == "a\ufffdb ok"
    assert render_project_map([], 100) == ""
    assert render_project_map(entries("src/a"), 3) == "1 f"
    assert render_project_map(entries("src/a_long_name", "x"), 16) == "src/ (1 file)\nx"


def test_forty_directories_are_shown_and_the_rest_counted() -> None:
    shown = render_project_map(entries(*(f"d{number:02}/f" for number in range(40))), 10_000)
    assert shown.split("\n") == [line for number in range(40) for line in (f"d{number:02}/", "  f")]

    more = render_project_map(entries(*(f"d{number:02}/f" for number in range(42))), 10_000)
    assert more == f"{shown}\n… 2 more directories"


def test_what_each_character_more_shows() -> None:
    project = entries("a/x", "a/y", "b/z", "top", "b/deep/er/f")
    shown = {
        7: "5 files",
        28: "5 files",
        29: "a/\n  x y\nb/ (2 files)\ntop",
        35: "a/\n  x y\nb/ (2 files)\ntop",
        36: "a/\n  x y\nb/\n  deep/ (1 file)\n  z\ntop",
        38: "a/\n  x y\nb/\n  deep/ (1 file)\n  z\ntop",
        39: "a/\n  x y\nb/\n  deep/er/\n    f\n  z\ntop",
        99: "a/\n  x y\nb/\n  deep/er/\n    f\n  z\ntop",
    }

    assert {room: render_project_map(project, room) for room in shown} == shown
    assert [render_project_map(project, room) for room in range(7)] == ["5 files"[:room] for room in range(7)]
