"""What a turn does more for a model that writes blocks: files with the request, blocks as calls, facts about changes.

Facts are said, never advice: the lines that changed, that a file no longer parses, what has not happened yet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolCallRecord
from ollm.providers.base import CallPiece
from ollm.runtime.calls.block_resolver import BlockResolver, Resolved, find_path
from ollm.runtime.calls.change_facts import (
    count_changes,
    count_output,
    describe_changes,
    describe_deed,
    find_idle_sed,
    shorten_command,
)
from ollm.runtime.calls.mending import Mending
from ollm.runtime.calls.output_facts import describe_output
from ollm.runtime.calls.project_files import ProjectFiles
from ollm.runtime.calls.step_display import TARGET, show_step
from ollm.runtime.model.block_steering import NO_WORDS

PRIMED_SHARE = 0.3  # of the window, for what goes with a request
CHARS_PER_TOKEN = 3
MAX_WATCHED_FILES = 400
MAX_FACTS = 6  # times that a turn says what is missing
MAX_SAME_STATES = 3  # times that the steps of a turn leave the files the same way
MAX_FAILURES = 9  # times that one command fails in a turn, whatever is changed for it
MAX_SAID = 3  # times that it says the same
NOTHING_CHANGED = "No file was changed."
NOTHING_DONE = "No file was changed and no command was run."
DENIED = "Denied"  # a person or the policy said no: nothing that is left is asked for again
REFUSED_BEFORE = "This was refused: it was not asked for again."
NO_OUTPUT = "[no output]"  # what the shell tool says of a command that printed nothing
_CAT = re.compile(r"^\s*cat\s+([\w./-]+)\s*$")
_BLOCKS = re.compile(r"^(?:\S+\.\w+:?\n)?```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
WRONG_VALUES = re.compile(r" fails: .+ (?:gives|raises) .+\. Now mend \S+\.$")  # in a test of this turn
_COUNTED = re.compile(r"\b(?:how many|count|number of)\b", re.IGNORECASE)


class TurnGuide:
    """One for each turn."""

    def __init__(self, files: ProjectFiles, window: int, *, names_steps: bool = False, may_change: bool = True) -> None:
        self._files = files
        self._may_change = may_change  # False where nothing may be changed or run: nothing is left to be done there
        self._names_steps = names_steps  # after every step, for a model too small to choose the next one
        self._window = window
        self._request = ""
        self._names: list[str] = []
        self._shown = ""  # with the request
        self._meant: tuple[str, ...] = ()  # files that the request is about without naming them
        self._there: set[str] = set()  # the files there were before the first step
        self._before: dict[str, str] = {}
        self._changed: dict[str, None] = {}
        self._commands: list[tuple[str, int]] = []
        self._first: dict[str, str] = {}  # files as they were before their first change
        self._silent: list[str] = []
        self._failure = ""  # what the last command printed, where it failed
        self._states: Counter[int] = Counter()  # how often the files were left as they are
        self._since_change: list[tuple[str, int]] = []
        self._told: Counter[str] = Counter()  # how often each step that is left was named
        self._rounds = 0
        self._tried_in_vain = False  # a step was refused or failed
        self._denied: set[str] = set()  # how calls were refused
        self._refused: set[tuple[str, str]] = set()  # which calls somebody said no to
        self._answer = ""
        self._resolver = BlockResolver(files)
        self._mending = Mending(files)

    async def prime_request(self, request: str) -> str:
        """The names and texts that go with the user's words."""
        from ollm.services.request_reading.mistyped_names import mend_file_names
        from ollm.services.request_reading.primed_request import prime_request

        self.adopt_request(request)
        self._names = await self._files.list_names()
        self._request = mend_file_names(self._request, self._names)
        self._there = set(self._names)
        max_chars = int(self._window * PRIMED_SHARE * CHARS_PER_TOKEN)
        primed = prime_request(self._request, self._names, self._files.read_text, max_chars)
        self._meant = primed.meant
        for path in primed.whole:
            self._files.remember_whole(path)
        self._shown = primed.text.lstrip("\n")
        return primed.text

    def adopt_request(self, request: str) -> None:
        """What is to be done. Where the form was found out in the middle of a turn, nothing was sent with it."""
        from ollm.services.request_reading.plain_words import strip_courtesy

        self._request = strip_courtesy(request)

    def describe_deeds(self) -> str:
        """What was in fact done, for the person: files with counts of lines, commands with exit codes; that nothing
        was, where something was to be done."""
        told = list(filter(None, map(self._describe_deed, self._changed)))
        changed = f"Changed: {', '.join(told)}." if told else ""
        ran = [f"{shorten_command(command)} (exit code {code})" for command, code in self._commands]
        if not ran and not told:
            return NOTHING_DONE if self._tried_in_vain or self._is_work() else ""
        in_vain = self._denied or (self._commands and self._commands[-1][1])  # refused, or the last command failed
        changed = changed or (NOTHING_CHANGED if in_vain and self._is_work() else "")
        return " ".join(filter(None, (changed, f"Ran: {'; '.join(ran)}." if ran else "")))

    def _describe_deed(self, name: str) -> str:
        after = (self._files.read_text(name) or "") if self._files.exists(name) else None
        return describe_deed(name, self._first.get(name), after, known=name in self._there)

    def _is_work(self) -> bool:
        """Whether something is to be different afterwards, and may be."""
        from ollm.services.request_reading.asked_changes import asks_for_change
        from ollm.services.request_reading.explanations import asks_how

        return self._may_change and asks_for_change(self._request) and not asks_how(self._request)

    def begin_answer(self) -> None:
        """The blocks of another answer are read next."""
        self._resolver.begin_answer()

    def resolve_call(self, piece: CallPiece) -> Resolved:
        """A block that names a file becomes the call that makes its change."""
        ran = [line for line, _ in self._since_change]
        call = self._resolver.resolve(self._mending.keep_part(piece), self._request, self._names, ran)
        again = not call.refusal and (call.name, str(call.arguments)) in self._refused
        return Resolved(name=call.name, arguments=call.arguments, refusal=REFUSED_BEFORE) if again else call

    def read_bare_command(self, answer: str) -> CallPiece | None:
        """A command that is all of an answer, where something was to be done: it only lacks its fence."""
        from ollm.providers.text_calls.blocks import PROGRAMS

        line = answer.strip()
        plain = line.split(" ")[0] in PROGRAMS and "\n" not in line and not line.endswith((".", ":", "?"))
        if not plain or " " not in line or self._commands or self._changed or not self._is_work():
            return None
        return CallPiece("shell", {"command": line})

    async def note_before(self, calls: Sequence[ToolCall]) -> None:
        """How the files are that these calls may change."""
        self._names = await self._files.list_names()
        self._there |= set() if self._changed else set(self._names)
        watched = self._names if len(self._names) <= MAX_WATCHED_FILES else self._find_mentioned(calls)
        self._before = self._files.read_texts(watched)

    def _find_mentioned(self, calls: Sequence[ToolCall]) -> list[str]:
        told = "\n".join(str(call.arguments) for call in calls) + self._request
        return [name for name in self._names if name in told][:MAX_WATCHED_FILES]

    def _find_concerned(self) -> list[str]:
        """The files that the request names; all, when a word is to change and it is not said where."""
        from ollm.services.request_reading.replaced_names import find_replacement
        from ollm.services.request_reading.wanted_files import find_wanted_files

        everywhere = find_replacement(self._request) and not find_wanted_files(self._request)
        return self._names[:MAX_WATCHED_FILES] if everywhere else [*self._find_mentioned(()), *self._meant]

    async def describe_after(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> str:
        """What the calls did to the files, in lines."""
        before, names = self._before, set(self._names)
        self._names = await self._files.list_names()
        many = len(self._names) > MAX_WATCHED_FILES
        after = self._files.read_texts(before if many else self._names)
        written = {str(call.arguments.get("path")) for call in calls if call.name == "write_file"}
        shown = {name: text for name, text in after.items() if name in before or name not in written}
        facts = describe_changes(before, shown, names, set(self._names))
        self._note_changes(after, names)
        self._note_calls(calls, records)
        self._note_refusals(calls, records)
        self._answer = ""
        counted = _COUNTED.search(self._request) and (count_output(records) or count_changes(before, after))
        facts = "\n".join(filter(None, (facts, counted or describe_output(self._request, calls, records))))
        changed, failed = before != after, any(record.error for record in records)
        self._tried_in_vain |= failed
        if mend := self._go_on_mending(calls, changed=changed, failed=failed):
            return "\n\n".join(filter(None, (facts, mend)))
        if not changed and ((idle := find_idle_sed(calls, records)) or failed):
            return "\n".join(filter(None, (facts, idle, self.find_missing())))
        if self._names_steps:
            step = self._name_next_step()
        else:
            step = self._name_run() or self._end_order() if changed and not failed else self._name_wrong_values()
        return "\n\n".join(filter(None, (facts, step)))

    def _note_changes(self, after: Mapping[str, str], names: Collection[str]) -> None:
        """Which files are other than before the calls; `names` are those there were then."""
        before, earlier = self._before, set(self._changed)
        self._changed |= dict.fromkeys(
            name
            for name in (*after, *before)
            if before.get(name) != after.get(name) and (name in before or name not in names)
        )
        self._changed |= dict.fromkeys(sorted(set(names) - set(self._names)))
        self._first |= {name: before[name] for name in self._changed if name in before and name not in earlier}
        if before != after:
            self._since_change = []
            self._states[hash(tuple(sorted(after.items())))] += 1
        for name, text in after.items():
            if before.get(name) != text:
                self._files.remember_change(name, before.get(name))
        self._resolver.made = set(self._names) - self._there

    def _note_refusals(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> None:
        """Which calls somebody said no to."""
        no = [(call, record.error) for call, record in zip(calls, records, strict=True) if record.status == "denied"]
        self._denied |= {error.type for _, error in no if error}
        self._refused |= {(call.name, str(call.arguments)) for call, _ in no}
        if DENIED in self._denied:
            self._mending.close()

    def _go_on_mending(self, calls: Sequence[ToolCall], *, changed: bool, failed: bool) -> str:
        """The next step at a file that is mended until what was said to fail succeeds."""
        if self._names_steps or not self._is_work():
            return ""
        if not failed and calls[-1].name == "shell" and self._commands:
            command, code = self._commands[-1]
            return self._mending.note_run(self._request, command, self._failure if code else "", self._names)
        return self._mending.note_change() if changed else self._mending.ask() if failed else ""

    def find_circle(self) -> str:
        """How the steps go round in vain: files are left the same way again and again, or one command fails whatever is
        changed for it."""
        failed = Counter(command for command, code in self._commands if code)
        if self._mending.is_open:
            return ""
        if any(count >= MAX_SAME_STATES for count in self._states.values()):
            return "files were changed there and back"
        return "the same command fails again and again" if any(n > MAX_FAILURES for n in failed.values()) else ""

    def _name_next_step(self) -> str:
        """What is left, or that it is time for words: a model that has done all goes on and undoes it."""
        if missing := self.find_missing():
            return missing
        last = self._since_change[-1] if self._since_change else None
        looked = last is not None and (last[1] != 0 or last[0] in self._silent) and not self._changed
        return "" if looked else self.ask_for_words()

    def _note_calls(self, calls: Sequence[ToolCall], records: Sequence[ToolCallRecord]) -> None:
        for call, record in zip(calls, records, strict=True):
            if call.name == "write_file" and record.error is None:
                self._files.remember_whole(str(call.arguments.get("path")))
            command = call.arguments.get("command")
            code = record.result.exit_code if record.result else None
            if call.name != "shell" or not isinstance(command, str) or code is None:
                continue
            self._commands.append((command, code))
            self._since_change.append((command, code))
            told = record.result.llm_content.strip() if record.result else ""
            self._silent += [command] if told in ("", NO_OUTPUT) else []
            self._failure = told if code else ""
            shown = _CAT.match(command)
            if shown and code == 0 and record.result and not record.result.full_output:
                self._files.remember_whole(shown[1].removeprefix("./"))

    def find_missing_after(self, answer: str) -> str:
        """What an answer in words cannot have done; nothing more where it is the same once more."""
        again, self._answer = answer == self._answer and bool(answer.strip()), answer
        if again:
            return ""
        return self.find_missing() or ("" if self._has_words(answer) else self.ask_for_words())

    def _has_words(self, answer: str) -> bool:
        """Whether it says something besides blocks: they are an answer only to how something is done."""
        from ollm.services.request_reading.explanations import asks_how

        return bool(answer.strip() if asks_how(self._request) else re.search(r"\w", _BLOCKS.sub("", answer)))

    def find_missing(self) -> str:
        """What was asked and has visibly not happened; each thing is said once."""
        found = self._list_missing()
        fact = next((fact for fact in found if self._told[fact] < MAX_SAID), "")
        self._rounds += bool(fact)
        self._told[fact] += 1
        if self._told[fact] == MAX_SAID and (named := TARGET.search(fact)):
            return f"Now change {named[1]} with a command."
        return show_step(fact, self._files, self._request, self._find_path)

    def _find_path(self, path: str) -> str:
        return find_path(path, self._files, self._names, self._request)

    def _list_missing(self) -> list[str]:
        from ollm.services.request_reading.deeds import Deeds
        from ollm.services.request_reading.explanations import asks_how, is_question, lets_run
        from ollm.services.request_reading.reservations import is_reserved
        from ollm.services.request_reading.unfinished_work import find_unfinished

        ended = self._rounds >= MAX_FACTS or DENIED in self._denied or self._mending.has_given_up
        if ended or not self._may_change or asks_how(self._request) or is_reserved(self._request):
            return []
        deeds = Deeds(
            changed=tuple(self._changed),
            commands=tuple(self._commands),
            silent=tuple(self._silent),
            since_change=tuple(self._since_change),
            texts=self._files.read_texts(self._changed) | self._files.read_texts(self._find_concerned()),
            before=self._first,
            meant=self._meant,
            failure=self._failure,
        )
        found = [*find_unfinished(self._request, deeds, self._names), *self._find_broken(deeds.texts)]
        if not is_question(self._request):
            return found
        return [fact for fact in found if fact.startswith("Now run ") and lets_run(self._request)]

    def _name_run(self) -> str:
        """The command that comes next, where all before it is done: left alone, a model changes more than was asked."""
        first = next(iter(self._list_missing()), "")
        if not first.startswith("Now run ") or first in self._told:
            return ""
        self._told[first] += 1
        return first

    def _end_order(self) -> str:
        """Words, where one change was all that was asked and it was made: a small model goes on and does more."""
        from ollm.services.request_reading.single_orders import is_done_by, is_single_order

        ran = self._commands[-1] if self._commands else ("", 1)
        single = is_single_order(self._request) or (ran[1] == 0 and is_done_by(self._request, self._shown, ran[0]))
        return self.ask_for_words() if single and self._is_work() and not self._list_missing() else ""

    def _name_wrong_values(self) -> str:
        """What a test of this turn expects and what came, as soon as it has failed; it is run again afterwards."""
        first = next(iter(self._list_missing()), "") if self._failure else ""
        if not WRONG_VALUES.search(first):
            return ""
        self._told.pop(f"Now run {first.partition(' fails: ')[0]}.", None)
        return self.find_missing()

    def ask_for_words(self) -> str:
        """All was done that can be seen, and nothing was said; asked once."""
        self._told[NO_WORDS] += 1
        return NO_WORDS if self._told[NO_WORDS] == 1 else ""

    def _find_broken(self, texts: Mapping[str, str]) -> list[str]:
        """Files of this turn that do not parse, or use what nothing defines."""
        from ollm.services.request_reading.lost_imports import find_lost_imports
        from ollm.services.syntax_check import describe_broken_syntax

        told = (describe_broken_syntax(name, self._first.get(name), texts.get(name, "")) for name in self._changed)
        broken = [f"{said.rstrip('.')}. Now mend {said.split(' ')[0]}." for said in told if said]
        return broken or find_lost_imports(self._first, texts, self._names, self._files.read_text)
