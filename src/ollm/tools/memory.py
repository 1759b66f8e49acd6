"""The model's notes, for one workspace or for all (T11.1-11.4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.text import suggest_names
from ollm.domain.tools import ToolResult
from ollm.store.notes import PERSONAL_PREFIX, NoteStore
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

if TYPE_CHECKING:
    from ollm.tools.catalogue import ToolServices

MAX_KEY_BYTES = 1024
MAX_VALUE_BYTES = 1_000_000


class Memory(Tool["ToolServices"], frozen=True):
    """Keep values for later conversations: set, get, delete by key, or list keys."""

    name: ClassVar = "memory"
    category: ClassVar = "notes"
    priority: ClassVar = {"assistant": 8}
    small: ClassVar = SmallForm(
        description="Keep values for later conversations.",
        parameters=("key", "value"),
        clear_name=False,
    )

    action: Literal["set", "get", "delete", "list"]
    key: str = ""
    value: Annotated[Any, Meta(description="What to keep: any JSON value.")] = UNSET
    scope: Annotated[Literal["workspace", "global"], Meta(description="global: for all workspaces.")] = "workspace"

    def summary(self) -> str:
        where = " for all workspaces" if self.scope == "global" else ""
        return f"List memory{where}" if self.action == "list" else f"Memory: {self.action} {self.key}{where}"

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        store = needs.global_notes if self.scope == "global" else needs.notes
        if self.action == "list":
            return _make_result("\n".join(store.list_keys()) or "Memory is empty.")
        self._check_key()
        match self.action:
            case "set":
                return self._set_value(store)
            case "get":
                return self._get_value(store)
        if not store.delete(self.key):
            raise self._make_missing_failure(store)
        return _make_result(f'Deleted "{self.key}".')

    def _set_value(self, store: NoteStore) -> ToolResult:
        if self.key.startswith(PERSONAL_PREFIX) and self.scope == "workspace":
            raise ToolFailure("ValidationError", f"key: {PERSONAL_PREFIX}… are the user's own notes; choose another.")
        if self.value is UNSET:
            raise ToolFailure("ValidationError", "value: missing; expected what to keep, any JSON value.")
        try:
            text = json.dumps(self.value, ensure_ascii=False, allow_nan=False)
            size = len(text.encode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ToolFailure(
                "ValidationError", f"value: expected a JSON value; this one has no JSON form ({error})."
            ) from error
        if size > MAX_VALUE_BYTES:
            raise ToolFailure("ValidationError", f"value: expected at most {MAX_VALUE_BYTES:,} bytes, got {size:,}.")
        store.set(self.key, text)
        return _make_result(f'Remembered "{self.key}".')

    def _get_value(self, store: NoteStore) -> ToolResult:
        text = store.get(self.key)
        if text is None:
            raise self._make_missing_failure(store)
        try:
            value = json.loads(text)
        except ValueError:  # A person may have set text that is not JSON.
            value = text
        return ToolResult(llm_content=value if isinstance(value, str) else text, return_display=f"{self.key}: {text}")

    def _check_key(self) -> None:
        try:
            size = len(self.key.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise ToolFailure("ValidationError", "key: expected valid text.") from error
        if not self.key.strip() or size > MAX_KEY_BYTES:
            got = f"{size:,} bytes" if size > MAX_KEY_BYTES else "none"
            raise ToolFailure("ValidationError", f"key: expected text of 1 to {MAX_KEY_BYTES} bytes, got {got}.")

    def _make_missing_failure(self, store: NoteStore) -> ToolFailure:
        near = suggest_names(self.key, store.list_keys(), 3)
        hint = f" Similar: {', '.join(near)}." if near else ""
        return ToolFailure("NotFound", f'No memory "{self.key}".{hint}')


def _make_result(text: str) -> ToolResult:
    return ToolResult(llm_content=text, return_display=text)
