"""Markdown as the chat shows it: headings stand at the left, without a frame."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown


class LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class ChatMarkdown(Markdown):
    elements: ClassVar = {**Markdown.elements, "heading_open": LeftHeading}
