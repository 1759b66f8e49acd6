"""Markdown as the chat shows it: headings are at the left, without a frame; changes have line numbers."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown

from ollm.cli.screen.diffs import render_diff
from ollm.cli.screen.tables import FittedTable


class LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class DiffBlock(CodeBlock):
    """Code, and where it is a change with its places, line numbers and marked words."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = str(self.text)
        if self.lexer_name == "diff" and "\n@@ -" in f"\n{text}":
            yield render_diff(text.rstrip(), options.max_width, named=True)
        else:
            yield from super().__rich_console__(console, options)


class ChatMarkdown(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": DiffBlock,
        "code_block": DiffBlock,
        "table_open": FittedTable,
    }
