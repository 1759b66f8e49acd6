"""Plan a restore: the action for each path, decided before anything is touched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from ollm.domain.struct import Data
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry

CHANGED_BY_OTHERS = "changed by someone else since"
PUT_BACK_BY_OTHERS = "put back by someone else just now"
CHANGED_SINCE_CUT_OFF = "changed when or after the turn was cut off"
RULE_FILES = (".gitignore", ".ollmignore")
NEVER_TOUCHED = (".git", ".ollm")


class SkippedPath(Data, frozen=True):
    """A path that stays as it is, and why."""

    path: str
    why: str


class RestorePlan(Data, frozen=True):
    """`steps` go from what is there now to what was there then, in the order in which they are done. `ignored` and
    `uncovered` count the names of the workspace that are not looked at; `in_editor` are steps that an editor does."""

    message_id: int
    current: bytes
    target: bytes
    steps: tuple[PathChange, ...]
    skipped: tuple[SkippedPath, ...]
    ignored: int = 0
    uncovered: int = 0
    in_editor: tuple[str, ...] = ()

    @property
    def disk_steps(self) -> tuple[PathChange, ...]:
        return tuple(step for step in self.steps if step.path not in self.in_editor)

    @property
    def editor_steps(self) -> tuple[PathChange, ...]:
        return tuple(step for step in self.steps if step.path in self.in_editor)

    @property
    def files(self) -> list[PathChange]:
        """The paths that a person wants to hear of, each once: directories come and go with their files."""
        return [step for step in dict.fromkeys(self.steps) if not is_directory_only(step)]


def plan_steps(
    changes: Iterable[PathChange], others: Mapping[str, str], find_flaw: Callable[[bytes], str]
) -> tuple[tuple[PathChange, ...], tuple[SkippedPath, ...]]:
    """Steps in order and what is skipped. `others` says why paths stay that somebody else changed, `find_flaw` why a
    saved content cannot be had."""
    steps: list[PathChange] = []
    skipped: list[SkippedPath] = []
    for change in changes:
        if not (why := find_obstacle(change, others, find_flaw)):
            steps.append(change)
        elif why != "hidden":
            skipped.append(SkippedPath(path=change.path, why=why))
    return order_steps(drop_foreign_folders(steps, others)), tuple(skipped)


def drop_done_steps(plan: RestorePlan, open_paths: Collection[str]) -> RestorePlan:
    """Without what somebody else did since it was planned, which is named. `open_paths` still differ from then."""
    done = [step for step in plan.disk_steps if step.path not in open_paths]
    named = dict.fromkeys(step.path for step in done if not is_directory_only(step))
    skipped = (*plan.skipped, *(SkippedPath(path=path, why=PUT_BACK_BY_OTHERS) for path in named))
    return (
        replace(plan, steps=tuple(step for step in plan.steps if step not in done), skipped=skipped) if done else plan
    )


def drop_foreign_folders(steps: list[PathChange], others: Mapping[str, str]) -> list[PathChange]:
    """Without directories that somebody else made, removed or opened, but those that a file comes back into."""
    needed = {parent for path, _, after in steps if after is not None for parent in list_parents(path)}
    return [step for step in steps if not is_directory_only(step) or step.path not in others or step.path in needed]


def list_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def drop_hidden(changes: Iterable[PathChange]) -> list[PathChange]:
    """Without names that are new and that a rule hides which was there all the time: what is built or cached is no
    news. What a rule hides that came or changed since stays among the changes, to be named."""
    found = list(changes)
    folders = tuple(path.rpartition("/")[0] for path, _, _ in found if path.rpartition("/")[2] in RULE_FILES)
    return [change for change in found if not is_new_hidden(change) or is_named(change.path, folders)]


def is_new_hidden(change: PathChange) -> bool:
    return change.after is None and change.before is not None and change.before.kind == "i"


def is_named(path: str, folders: Iterable[str]) -> bool:
    return path.rpartition("/")[2] not in NEVER_TOUCHED and is_below(path, folders)


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(not folder or path.startswith(f"{folder}/") for folder in folders)


def find_obstacle(change: PathChange, others: Mapping[str, str], find_flaw: Callable[[bytes], str]) -> str:
    """Why a path must stay as it is; nothing when it need not."""
    now, then = change.before, change.after
    if now is not None and now.kind == "i":
        return "is new, and ignored now" if then is None else "is ignored now"
    if then is not None and then.kind == "i":
        return "hidden"  # it was ignored then: nothing is known of it
    if change.path in others and not is_directory_only(change):
        return others[change.path]
    for entry, when in ((now, ""), (then, ", as it was then")):
        if entry is not None and entry.kind == "x":
            return f"not saved: it {entry.value.decode().partition(chr(0))[0]}{when}"
    return find_flaw(then.value) if then is not None and then.kind == "f" else ""


def is_directory_only(change: PathChange) -> bool:
    return all(entry is None or entry.kind == "d" for entry in (change.before, change.after))


def order_steps(steps: Iterable[PathChange]) -> tuple[PathChange, ...]:
    """Order the steps: removals from the bottom up, then creations from the top down."""
    going = [step for step in steps if must_go(step)]
    coming = [step for step in steps if not must_go(step)]
    replaced = [step for step in going if step.after is not None]
    return (
        *sorted(going, key=lambda step: step.path, reverse=True),
        *sorted((*coming, *replaced), key=lambda step: step.path),
    )


def must_go(step: PathChange) -> bool:
    """Return True if the present entry is removed first: nothing replaces it, or something of another kind that cannot
    replace it at once."""
    now, then = step.before, step.after
    return now is not None and (then is None or (now.kind == "d") != (then.kind == "d"))


def describe_change(step: PathChange) -> str:
    """A letter for what happens to a path: A comes back, D is removed, M changes."""
    if step.before is None:
        return "A"
    return "D" if step.after is None else "M"


def is_same_state(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    """Return True if two entries are the same for a restore: of a directory only kind and mode count."""
    if one is None or other is None:
        return one is other
    if one.kind == "d" and other.kind == "d":
        return one.mode == other.mode
    return one == other
