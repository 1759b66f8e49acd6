"""What was in fact done in a turn."""

from __future__ import annotations

from ollm.services.request_reading.deeds import Deeds, has_command_changes, is_handled


def test_a_command_that_leaves_the_text_as_it_is_counts_for_its_file() -> None:
    deeds = Deeds(commands=(("chmod +x run.sh", 0), ("touch b.txt", 1)))

    assert is_handled("run.sh", deeds)
    assert not is_handled("b.txt", deeds), "it failed"
    assert not is_handled("a.txt", deeds)


def test_files_that_were_moved_are_a_change_and_files_that_were_read_are_none() -> None:
    assert has_command_changes(Deeds(commands=(("mv a.txt b.txt", 0),)))
    assert has_command_changes(Deeds(commands=(("git add a.txt", 0),)))
    assert not has_command_changes(Deeds(commands=(("mv a.txt b.txt", 1), ("cat a.txt", 0))))
