"""The answer of `ollm -p` on a terminal: Markdown, rendered block by block as it arrives."""

from __future__ import annotations

from ollm.cli.screen.markdown import MarkdownBlocks
from ollm.cli.screen.paint import create_terminal_painter
from ollm.cli.screen.themes import ScreenTheme
from ollm.cli.text_printer import TextPrinter


class MarkdownPrinter(TextPrinter):
    """Printer for a terminal. Each paragraph, list, table or code block is rendered when complete."""

    def __init__(self, theme: ScreenTheme) -> None:
        super().__init__(counts_seconds=True)
        self._blocks = MarkdownBlocks()
        self._painter = create_terminal_painter(theme)
        self._first = True

    def close(self, session_id: str) -> None:
        self._print_open_block()
        super().close(session_id)

    def _print_text(self, text: str) -> None:
        for block in self._blocks.feed(text):
            self._print_block(block)

    def _print_aside(self, line: str) -> None:
        self._print_open_block()
        super()._print_aside(line)

    def _end_message(self) -> None:
        self._print_open_block()

    def _print_open_block(self) -> None:
        if block := self._blocks.finish():
            self._print_block(block)

    def _print_block(self, block: str) -> None:
        painted = self._painter.paint_markdown(block)
        if painted.strip():
            self._write(painted if self._first else f"\n{painted}")
            self._first = False
