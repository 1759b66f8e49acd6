"""The hooks of one conversation, built only where some are configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ollm.domain.lazy import Lazy
from ollm.extensions.hook_settings import read_hooks
from ollm.extensions.hooks import HookContext, Hooks

if TYPE_CHECKING:
    from ollm.app.storage import Storage
    from ollm.extensions.hook_process import HookRunner
    from ollm.services.context_manager import ContextManager
    from ollm.system.processes import ProcessHost
    from ollm.system.sandbox.sandbox import Sandbox


def create_hooks(storage: Storage, get_host: Callable[[], ProcessHost], get_sandbox: Callable[[], Sandbox]) -> Hooks:
    """The configured hooks; mistakes in them become notices. Host and sandbox are made when the first one runs."""
    process, path = storage.process, storage.scope.path
    found, problems = read_hooks(process.settings.hooks, process.own_hooks)
    storage.notices.extend(problems)

    def create_runner() -> HookRunner:
        from ollm.extensions.hook_process import HookRunner

        return HookRunner(get_host(), path, process.tool_environment, get_sandbox())

    context = HookContext(
        lambda: storage.session.id,
        str(path),
        storage.stream.emit,
        lambda entry: add_hook_context(storage.entries, entry),
        lambda: find_session_file(storage),
    )
    return Hooks(found, Lazy(create_runner), context)


def find_session_file(storage: Storage) -> str:
    """Where the session is recorded; nothing before it is."""
    session_id = storage.session.id
    return str(storage.process.session_directories[0] / f"{session_id}.json") if session_id else ""


def add_hook_context(entries: ContextManager, entry: Mapping[str, Any]) -> None:
    """What a hook wants the model to be told (S5.6); a wrong entry is skipped with a warning."""
    entries.add_context(
        str(entry.get("key", "")),
        str(entry.get("content", "")),
        priority=entry.get("priority", 50),
        source="hook",
        ttl_seconds=entry.get("ttl"),
        volatile=entry.get("volatile") is True,
    )
