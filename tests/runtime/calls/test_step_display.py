"""The step that is left comes with the file it names."""

from pathlib import Path

from ollm.runtime.calls.step_display import MAX_SHOWN_CHARS, show_step
from tests.runtime.calls.test_project_files import Place


def test_the_file_or_the_part_of_it_is_shown_with_the_step(tmp_path: Path) -> None:
    place = Place(tmp_path / "w")
    place.write("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    place.write("wide.txt", f"{'x' * (MAX_SHOWN_CHARS // 30)}\n" * 35)

    def tell(step: str) -> str:
        return show_step(step, place.files, "Mend g.", str)

    try:
        assert tell("Now change a.py.").startswith("a.py:\n```\ndef f():")
        assert place.files.knows_whole("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
        assert tell("Now change g in a.py.").startswith("g in a.py is now:\n```\ndef g():")
        assert tell("Now change wide.txt.") == "Now change wide.txt."
        assert tell("Now run python a.py.") == "Now run python a.py."
    finally:
        place.discovery.close()
