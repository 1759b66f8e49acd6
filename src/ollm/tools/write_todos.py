"""Keep the todo list (T11.5-11.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.tools import Todo, ToolResult
from ollm.store.notes import NoteStore
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

if TYPE_CHECKING:
    from ollm.tools.catalogue import ToolServices

MAX_TODO_CHARS = 2_000


class WriteTodos(Tool["ToolServices"], frozen=True):
    """Keep a todo list."""

    name: ClassVar = "write_todos"
    category: ClassVar = "notes"
    aliases: ClassVar = {"todo": "text", "content": "text", "task": "text", "todoId": "id"}
    priority: ClassVar = {"code": 9, "debug": 9, "plan": 5}
    small: ClassVar = SmallForm(
        description="Keep a todo list.",
        parameters=("text", "id"),
        clear_name=False,
    )

    action: Literal["add", "complete", "remove", "list"]
    id: Annotated[str, Meta(description="To complete or remove.")] = ""
    text: Annotated[str, Meta(description="To add.")] = ""

    @classmethod
    def reshape(cls, arguments: JsonObject) -> JsonObject:
        """Accept `1` and `"#1"` for todo 1."""
        todo_id = arguments.get("id")
        return {**arguments, "id": todo_id.removeprefix("#")} if isinstance(todo_id, str) else arguments

    def summary(self) -> str:
        return {"add": f"Add the todo: {self.text}", "list": "List the todos"}.get(
            self.action, f"{self.action.capitalize()} todo {self.id}"
        )

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        done = self._apply_action(needs.notes)
        todos = needs.notes.list_todos()
        if done:
            needs.todos_changed(todos)
        listed = render_todos(todos)
        return ToolResult(llm_content=f"{done}\n{listed}" if done else listed, return_display=listed)

    def _apply_action(self, store: NoteStore) -> str:
        if self.action == "list":
            return ""
        if self.action == "add":
            return f"Added todo {store.add_todo(self._normalize_text()).id}."
        if not self.id:
            raise ToolFailure("ValidationError", f"id: missing; expected the todo to {self.action}.")
        known = store.complete_todo(self.id) if self.action == "complete" else store.remove_todo(self.id)
        if not known:
            ids = ", ".join(todo.id for todo in store.list_todos()) or "none"
            raise ToolFailure("NotFound", f'There is no todo "{self.id[:100]}". The ids are: {ids}.')
        return f"{'Completed' if self.action == 'complete' else 'Removed'} todo {self.id}."

    def _normalize_text(self) -> str:
        text = " ".join(self.text.encode("utf-8", "replace").decode("utf-8").split())
        if not text or len(text) > MAX_TODO_CHARS:
            got = "none" if not text else f"{len(text):,} characters"
            raise ToolFailure(
                "ValidationError", f"text: expected a todo of up to {MAX_TODO_CHARS:,} characters, got {got}."
            )
        return text


def render_todos(todos: tuple[Todo, ...]) -> str:
    """Render one line per todo: done or not, id, text."""
    if not todos:
        return "The todo list is empty."
    return "\n".join(f"[{'x' if todo.status == 'done' else ' '}] {todo.id}. {todo.text}" for todo in todos)
