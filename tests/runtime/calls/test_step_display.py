"""The step that is left comes with the file it names."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("length", "shown"), [(2_400, True), (2_401, False)])
def test_a_file_is_shown_up_to_2_400_characters_with_its_name(tmp_path: Path, length: int, shown: bool) -> None:
    place = Place(tmp_path / "w")
    text = "x" * (length - len("wide.txt:\n```\n\n```"))
    place.write("wide.txt", text)
    try:
        told = show_step("Now change wide.txt.", place.files, "Mend it.", str)
        whole = f"wide.txt:\n```\n{text}\n```\n\nNow change wide.txt."
        assert told == (whole if shown else "Now change wide.txt.")
        assert place.files.knows_whole("wide.txt", text) is shown
    finally:
        place.discovery.close()


def test_of_a_long_file_a_part_is_shown_and_it_is_not_known_whole(tmp_path: Path) -> None:
    place = Place(tmp_path / "w")
    text = "".join(f"def part_{number}():\n    return {number}\n\n\n" for number in range(300))
    place.write("long.py", text)
    place.write("empty.py", "")
    try:
        told = show_step("Now change long.py.", place.files, "Let part_7 return 8.", str)
        assert told.endswith("Now change long.py.")
        assert not place.files.knows_whole("long.py", text)
        assert show_step("Now change empty.py.", place.files, "Mend it.", str) == "Now change empty.py."
        assert show_step("Now change no in long.py.", place.files, "Mend it.", str) == "Now change no in long.py."
    finally:
        place.discovery.close()
