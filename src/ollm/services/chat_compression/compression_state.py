"""The context on the workbench: old groups that may go, the recent window that may not, what stands for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.context import Checkpoint
from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression import folding
from ollm.services.chat_compression.groups import Group, grouped, is_user, numbers, recent_start
from ollm.services.chat_compression.options import CompressionOptions
from ollm.services.chat_compression.users import LINE_ID, fold_users, shortened, user_line, without_aside
from ollm.services.token_counting import TokenCounter

SMALLEST_SAVING = 12  # tokens
MOST_LINES = 8


class Working:
    """Mutable while one compression runs, dropped afterwards."""

    def __init__(self, messages: Sequence[PromptMessage], options: CompressionOptions, counter: TokenCounter) -> None:
        self._counter = counter
        self._options = options
        start = 1 if messages and messages[0].role == "system" else 0
        self._system = tuple(messages[:start])
        groups = grouped(messages[start:])
        border = recent_start(groups, counter.message, options.preserve_recent_tokens)
        self._before = groups[:border]
        self.old: list[Group] = list(self._before)
        self.recent: list[Group] = groups[border:]
        self._original: dict[int, Group] = {}  # by identity: calls hold plain JSON and have no hash
        self.checkpoints = list(options.checkpoints)
        self.locked = options.locked
        self.notes: list[str] = []
        self.total = self._count()
        self.target = self.total // 2 if options.target_tokens is None else options.target_tokens

    def _count(self) -> int:
        spoken = sum(map(self.cost, [*self.old, *self.recent]))
        return self._counter.messages(self._system) + sum(old.tokens for old in self.checkpoints) + spoken

    def cost(self, group: Group) -> int:
        return self._counter.messages(group)

    def messages(self) -> tuple[PromptMessage, ...]:
        standing = [message for group in (*self.old, *self.recent) for message in group]
        return (*self._system, *(checkpoint.message for checkpoint in self.checkpoints), *standing)

    def gone(self) -> tuple[int, ...]:
        """Numbers of the messages that no longer stand in the context themselves."""
        standing = [m for group in (*self.old, *self.recent) for m in group if not folding.is_line(m)]
        before = numbers([m for group in self._before for m in group if not folding.is_line(m)])
        return tuple(sorted(set(before) - set(numbers(standing))))

    def settle_users(self, moment: str) -> None:
        """Old user messages lose what was true for a moment only, and stand shortened when they fill the window."""
        self.old = [(without_aside(group[0]),) if is_user(group) else group for group in self.old]
        cap = self._options.user_tokens
        if cap is not None:
            self._fold_users(cap, moment)
        self.total = self._count()

    def _fold_users(self, cap: int, moment: str) -> None:
        places = [(place, group[0]) for place, group in enumerate(self.old) if is_user(group)]
        folded = fold_users(places, cap, (self._counter.message, self._counter.text))
        changed = [message for place, message in places if folded.messages.get(place) is not message]
        if not changed:
            return
        self.notes.append(f"{len(changed)} old messages of yours stand shortened in the context; the record has them.")
        if folded.gone:
            self._put_line([message for place, message in places if place in folded.gone], moment)
        self.old = [
            (folded.messages[place],) if is_user(group) else group
            for place, group in enumerate(self.old)
            if not is_user(group) or place in folded.messages
        ]

    def _put_line(self, gone: Sequence[PromptMessage], moment: str) -> None:
        earlier = next((old for old in self.checkpoints if old.id == LINE_ID), None)
        rest = [old for old in self.checkpoints if old.id != LINE_ID]
        self.checkpoints = [user_line(earlier, gone, moment, self._counter.text), *rest]

    def fold_results(self) -> None:
        """Old tool output becomes a few lines of it."""
        for place, group in enumerate(self.old):
            folded = tuple(map(self._folded, group))
            saved = self.cost(group) - self.cost(folded)
            if saved >= SMALLEST_SAVING:
                self._original[id(folded)] = group
                self.old[place] = folded
                self.total -= saved

    def _folded(self, message: PromptMessage) -> PromptMessage:
        if message.role == "tool":
            return folding.folded_result(message, self._counter.text)
        return folding.folded_calls(message, folding.FOLDED_RESULT_TOKENS, self._counter.text)

    def oldest(self, allowance: int | None) -> list[Group]:
        """The oldest groups that must go to reach the target with a summary of that size; all without an allowance."""
        chosen: list[Group] = []
        left = self.total
        for group in self.old:
            if allowance is not None and left + min(allowance, (self.total - left) // 2) <= self.target:
                break
            if not is_user(group):
                chosen.append(group)
                left -= self.cost(group)
        return chosen

    def mergeable(self) -> tuple[Checkpoint, ...]:
        return tuple(old for old in self.checkpoints if old.id != LINE_ID and old.message_ids)

    def originals(self, groups: Sequence[Group]) -> list[Group]:
        """As they were before their output was folded."""
        return [self._original.get(id(group), group) for group in groups]

    def told(self, groups: Sequence[Group]) -> list[Group]:
        """These groups with the user messages among them, shortened, in order: what a summary is made from."""
        last = max(numbers([m for group in groups for m in group]), default=0)
        first = min(numbers([m for group in groups for m in group]), default=0)
        asked = [
            (shortened(group[0], 80, self._counter.text),)
            for group in self.old
            if is_user(group) and group[0].sources and first - 1 <= group[0].sources[0] <= last
        ]
        return sorted([*asked, *groups], key=lambda group: min(group[0].sources, default=0))

    def user_words(self, groups: Sequence[Group]) -> list[str]:
        """What the user said up to the last of these, and after what earlier checkpoints stand for."""
        last = max(numbers([m for group in groups for m in group]), default=0)
        covered = max((n for old in self.mergeable() for n in old.message_ids), default=0)
        said = [message for group in self._before for message in group if message.role == "user"]
        return [m.content for m in map(without_aside, said) if not m.sources or covered < m.sources[0] <= last]

    def replace(self, chosen: Sequence[Group], earlier: Sequence[Checkpoint], checkpoint: Checkpoint) -> None:
        going = {id(group) for group in chosen}
        self.old = [group for group in self.old if id(group) not in going]
        self.checkpoints = [old for old in self.checkpoints if old not in earlier]
        self.checkpoints.append(checkpoint)
        self.total = self._count()

    def truncate(self) -> None:
        """One line for each run of old messages, oldest first, until the target is reached."""
        lines: list[Group] = []
        for group in self.old:
            if is_user(group) or self.total <= self.target:
                lines.append(group)
                continue
            before: Group = lines.pop() if lines and folding.is_line(lines[-1][0]) else ()
            line: Group = (folding.line_for([*before, *group]),)
            saved = self.cost(before) + self.cost(group) - self.cost(line)
            lines.extend([line] if saved > 0 else filter(None, (before, group)))
            self.total -= max(0, saved)
        self.old = _few_lines(lines)
        self.total = self._count()


def _few_lines(groups: Sequence[Group]) -> list[Group]:
    """At most so many lines; the oldest become one that only keeps the numbers."""
    lines = [group for group in groups if folding.is_line(group[0])]
    if len(lines) <= MOST_LINES:
        return list(groups)
    merging = {id(group) for group in lines[: len(lines) - MOST_LINES // 2]}
    merged = (folding.merged_line([group[0] for group in lines if id(group) in merging]),)
    first = next(place for place, group in enumerate(groups) if id(group) in merging)
    rest = [group for group in groups[first:] if id(group) not in merging]
    return [*groups[:first], merged, *rest]
