"""The question about an unknown workspace, asked once: may its own settings, hooks and instructions be used?"""

from __future__ import annotations

from pathlib import Path

from ollm.policy.trust import TrustBook, TrustState
from ollm.system.terminal_text import make_printable

MAX_SHOWN_FILES = 12


def format_question(state: TrustState) -> str:
    """What would be used, or what changed since it was trusted."""
    if state.known:
        marks = {"new": state.added, "changed": state.changed, "gone": state.removed}
        lines = [f"  {make_printable(name)} ({mark})" for mark, names in marks.items() for name in names]
        head = f"{make_printable(state.workspace)} has changed since you trusted it:"
    else:
        lines = [f"  {make_printable(name)}" for name in state.files]
        head = f"{make_printable(state.workspace)} contains agent instructions:"
    more = [f"  and {len(lines) - MAX_SHOWN_FILES} more"] if len(lines) > MAX_SHOWN_FILES else []
    return "\n".join([head, *lines[:MAX_SHOWN_FILES], *more])


def ask_trust(book: TrustBook, workspace: Path) -> None:
    """Ask, unless there is nothing to ask about or it was answered for these very files."""
    state = book.get_state(workspace)
    if state.trusted or state.declined or not (state.files or state.known):
        return
    print(format_question(state))
    try:
        said = input("Trust them? Only if you know who wrote them. [y/N] ").strip().lower()
    except EOFError:
        return
    if said in ("y", "yes"):
        book.trust(workspace)
    else:
        book.decline(workspace)
        print("Not used. Run `ollm trust` to change that.")


def describe_untrusted(book: TrustBook, workspace: Path) -> str:
    """What is said, in one line, where nobody can be asked; empty when there is nothing to say."""
    state = book.get_state(workspace)
    if state.trusted or state.declined or not (state.files or state.known):
        return ""
    names = ", ".join(make_printable(name) for name in state.files[:3]) + (", …" if len(state.files) > 3 else "")
    place = make_printable(state.workspace)
    return f"{place} is not trusted, so these files are ignored: {names}. Run `ollm trust` to use them."
