"""A tool: the class is what the model is told of, its fields are the parameters, an instance is one call."""

from typing import Annotated, ClassVar

from msgspec import Meta

from ollm import Location, Tool, ToolContext, ToolResult


class CountWords(Tool[None], frozen=True):
    """Count the words of a text file."""

    name: ClassVar[str] = "count_words"
    reads_only: ClassVar[bool] = True

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]

    def summary(self) -> str:
        return f"Count the words of {self.path}"

    def locations(self) -> list[Location]:
        return [Location(target=self.path)]

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        with context.boundary.open_file(self.path) as file:
            count = len(file.read().split())
        return ToolResult(llm_content=f"{self.path} has {count} words.", return_display=f"{count} words")
