"""Text cut and padded to cells."""

from hypothesis import given
from hypothesis import strategies as st

from ollm.cli.screen.cells import pad_cells, truncate_cells
from ollm.system.terminal_text import clean_lines


@given(text=st.text(), cells=st.integers(0, 40))
def test_padded_text_takes_exactly_the_cells_it_is_given(text: str, cells: int) -> None:
    from prompt_toolkit.utils import get_cwidth

    line = clean_lines(text.replace("\n", " "))
    assert get_cwidth(truncate_cells(line, cells)) <= cells
    assert get_cwidth(pad_cells(line, cells)) == cells
