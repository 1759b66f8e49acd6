"""What the blocks of an answer become: calls that change files and run commands, or why they are not taken."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.providers.base import CallPiece
from ollm.providers.text_calls.block_edits import (
    ALREADY_RUN,
    BROKEN_OFF,
    NOTHING_CHANGES,
    OUTPUT_REPEATED,
    read_change,
)
from ollm.providers.text_calls.definitions import list_defined_names
from ollm.runtime.calls.block_checks import CODE, BlockChecks, becomes_json, merge_doubled
from ollm.runtime.calls.change_facts import apply_edits
from ollm.runtime.calls.command_mends import (
    count_alone,
    feed_python,
    is_python,
    mend_command,
    mend_slashes,
    name_script,
    names_as_target,
    print_answer,
    read_written_file,
    run_scripts,
    show_file,
    write_as_json,
)
from ollm.runtime.calls.kept_parts import keep_decorators, keep_other_parts, move_above, restore_lost_parts
from ollm.runtime.calls.line_lists import mend_listing_command, mend_lists
from ollm.runtime.calls.project_files import ProjectFiles
from ollm.runtime.calls.test_runs import run_tests
from ollm.runtime.model.block_answer import FILE_BLOCK

KEPT_TEST = "{} shows what is wrong and stays as it is: nothing was changed."
TO_BE_DELETED = "{} is in a folder that is to be deleted: nothing was changed."
STILL_IMPORTED = (
    "{folder} is to go, and this block for {0} imports it: nothing was changed. Write {0} without {folder}."
)
OTHER_PLACE = "{name} is to be in {place}, not in {}: nothing was changed. Write {place} first."
KEPT_FILE = "{} is to stay as it is: nothing was changed."
_EVERYWHERE = re.compile(r"\b(?:every|all|each|everywhere|throughout)\b", re.IGNORECASE)
_OUTPUT = re.compile(r"[\w./-]+: |Traceback \(|\s*File \"|\[exit code|\[no output")  # how no command begins
ENDLESS_SECONDS = 10  # for what serves or watches until it is stopped: what it prints first is enough
ENDLESS = re.compile(
    r"(?:^|[;&|]\s*)(?:python3?\s+-m\s+http\.server|flask\s+(?:\S+\s+)*run|uvicorn|gunicorn|npm\s+(?:start|run\s+(?:dev|serve|start))|"
    r"tail\s+(?:-\w+\s+)*-\w*[fF]|watch|top|htop|yes|ping\s+(?!.*-c)|nc\s+-\w*l)\b(?!.*\|\s*head)(?!.*&\s*$)"
)
_AGAIN = re.compile(r"\b(?:twice|again|times|repeatedly|more than once)\b", re.IGNORECASE)


class Resolved(Data, frozen=True):
    """A call as it is run and recorded; with `refusal` it is not run, and that is its result."""

    name: str
    arguments: JsonObject | str
    refusal: str = ""


class BlockResolver:
    """One for each turn."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files
        self._checks = BlockChecks()
        self._request = ""
        self._names: Sequence[str] = ()
        self._ran: Collection[str] = ()
        self.made: Collection[str] = ()  # files that came in this turn
        self._pending: dict[str, str] = {}  # files as the blocks of one answer that were read so far leave them

    def begin_answer(self) -> None:
        """The blocks of another answer are read next."""
        self._pending = {}

    def resolve(self, piece: CallPiece, request: str, names: Sequence[str], ran: Collection[str]) -> Resolved:
        """The call that a piece of an answer means: a block that names a file becomes the call that makes its change.
        `names` are the project's files, `ran` the commands since one of them changed."""
        self._request, self._names, self._ran = request, names, ran
        arguments = piece.arguments
        if not isinstance(arguments, dict):
            return Resolved(name=piece.name, arguments=arguments)
        if arguments.pop("brokenOff", False):
            return Resolved(name=piece.name, arguments=arguments, refusal=BROKEN_OFF)
        if isinstance(command := arguments.get("command"), str):
            return self._resolve_command(piece.name, command, arguments)
        if piece.name != FILE_BLOCK:
            return Resolved(name=piece.name, arguments=arguments)
        return self._resolve_file(str(arguments["path"]), str(arguments["content"]), whole=bool(arguments["whole"]))

    def _resolve_command(self, tool: str, command: str, arguments: JsonObject) -> Resolved:
        """As it was meant; a file that it only writes is a block of that file."""
        from ollm.services.request_reading.asked_places import describe_moved_file

        if is_python(command) and (script := self._find_script()):
            return self._resolve_file(script, command, whole=True)
        path, body = read_written_file(command)
        if path and self._files.exists(path):
            return self._resolve_file(path, body, whole=True)
        arguments["command"] = made = self._mend_command(command)
        if ENDLESS.search(made):
            arguments["timeout"] = ENDLESS_SECONDS
        again = made in self._ran and _AGAIN.search(self._request) is None
        refusal = OUTPUT_REPEATED if _OUTPUT.match(command) else ALREADY_RUN if again else ""
        refusal = refusal or self._find_kept_target(made)
        refusal = refusal or describe_moved_file(self._request, made, self._files.read_text)
        return Resolved(name=tool, arguments=arguments, refusal=refusal)

    def _find_script(self) -> str:
        """The program that is to be written and is not there."""
        from ollm.services.request_reading.wanted_files import find_wanted_files

        new = [name for name in find_wanted_files(self._request) if not self._files.exists(name)]
        return new[0] if len(new) == 1 and new[0].endswith(".py") else ""

    def _mend_command(self, command: str) -> str:
        if is_python(command):
            return feed_python(mend_lists(command, self._request))
        mended = mend_listing_command(mend_command(command), self._request)
        mended = print_answer(mended, self._request, self._files.exists)
        mended = mend_slashes(count_alone(mended, self._request), self._files.read_text)
        mended = run_scripts(mended, self._files.read_text, self._files.runs)
        mended = name_script(mended, self._request, self._names)
        return run_tests(show_file(mended, self._files.exists), self._files.read_text, self.made)

    def _resolve_file(self, path: str, content: str, *, whole: bool) -> Resolved:
        from ollm.services.request_reading.unfinished_work import find_kept_tests

        path = find_path(path, self._files, self._names, self._request)
        kept_test = path in find_kept_tests(self._request)
        if kept_test and (home := self._find_home(content)):
            path, kept_test = home, False
        if refusal := KEPT_TEST if kept_test else self._keep(path) or self._find_other_place(path, content):
            return Resolved(
                name="write_file", arguments={"path": path, "content": content}, refusal=refusal.format(path)
            )
        return self._make_change(path, self._mend_content(path, content), whole=whole)

    def _mend_content(self, path: str, content: str) -> str:
        """The block as it was meant: as JSON, with its imports, without line breaks in lists of lines."""
        from ollm.runtime.calls.used_names import import_tested_names, import_used_names
        from ollm.services.request_reading.asked_places import find_asked_places

        content = write_as_json(content) if path.endswith(".json") else content
        content = import_tested_names(path, content, find_asked_places(self._request), self._files.read_text)
        content = import_used_names(path, content, self._files.read_text)
        new = path.endswith(".py") and (path in self.made or not self._files.exists(path))
        return mend_lists(content, self._request) if new else content

    def _make_change(self, path: str, content: str, *, whole: bool) -> Resolved:
        """The call that changes a file as this block wants it, or why nothing is changed."""
        from ollm.services.request_reading.named_parts import find_removed_names

        saved = self._files.read_text(path)
        shown = saved is not None and self._files.knows_whole(path, saved)
        saved = saved and saved.replace("\r\n", "\n")  # the tools keep the ends of lines as they are in the file
        current = self._pending.get(path, saved)
        if current is None and self._files.exists(path):
            return Resolved(name="write_file", arguments={"path": path, "content": content})
        removed = find_removed_names(self._request)
        change = read_change(path, content, current, shown_whole=shown, removed=removed, request=self._request)
        if change.mistake and current and path in self.made and not path.endswith(CODE):
            change, current = read_change(path, content, None, shown_whole=True), ""  # of this turn: nothing is lost
        refusal = change.mistake or ("" if whole else BROKEN_OFF)
        edits = [self._make_edit(old, new, current or "") for old, new in change.edits]
        after = apply_edits(current or "", edits) if edits else content if change.content is None else change.content
        kept = self._keep_parts(path, current or "", after)
        if kept != after and not refusal:
            edits, after = [], kept
            refusal = NOTHING_CHANGES.format(path) if kept == current else ""
        made = path in self.made
        if not (made and becomes_json(path, current or "", after)):
            refusal = refusal or self._checks.find_damage(path, current, after, self._request, made=made)
        if not refusal:
            self._pending[path] = after
        if edits and not refusal:
            return Resolved(name="edit_file", arguments={"path": path, "edits": edits})
        arguments: JsonObject = {"path": path, "content": content if edits else after}
        if current is not None and not refusal:
            arguments["overwrite"] = True
        return Resolved(name="write_file", arguments=arguments, refusal=refusal)

    def _keep_parts(self, path: str, before: str, after: str) -> str:
        """The file as the block leaves it, but for what it changes or forgets by the way."""
        from ollm.runtime.calls.class_members import move_into_class
        from ollm.runtime.calls.named_entries import keep_to_named_entry
        from ollm.runtime.calls.used_names import import_used_modules, import_used_names

        after = import_used_names(
            path, move_into_class(path, before, after, self._request), self._files.read_text, before
        )
        after = import_used_modules(path, before, after) if before else after
        after = keep_decorators(path, before, after, self._request)
        kept = keep_other_parts(before, restore_lost_parts(path, before, after, self._request), self._request)
        kept = keep_to_named_entry(path, before, move_above(before, kept, self._request), self._request)
        return merge_doubled(path, before, kept, self._request)

    def _find_home(self, content: str) -> str:
        """The file that is to change and has all the functions of a block which stands under another name."""
        from ollm.services.request_reading.wanted_files import find_wanted_files

        made = list_defined_names(content)
        texts = {name: self._files.read_text(name) or "" for name in find_wanted_files(self._request)}
        homes = [name for name, text in texts.items() if made and made <= list_defined_names(text)]
        return homes[0] if len(homes) == 1 else ""

    def _find_other_place(self, path: str, content: str) -> str:
        """Why a block is not taken that makes what is to be in another file, or a file in a folder that is to go."""
        from ollm.services.request_reading.asked_places import (
            describe_lacking,
            find_asked_places,
            find_deleted_folders,
        )

        for folder in find_deleted_folders(self._request):
            if path.startswith(f"{folder}/"):
                return TO_BE_DELETED
            if re.search(rf"^\s*(?:from|import)\s+{re.escape(folder)}\b", content, re.MULTILINE):
                return STILL_IMPORTED.format("{0}", folder=folder)
        if lacking := describe_lacking(self._request, path, content, self._files.read_text):
            return lacking.replace("{", "{{").replace("}", "}}")
        made = list_defined_names(content)
        for name, place in find_asked_places(self._request).items():
            elsewhere = path.rpartition("/")[2] != place.rpartition("/")[2]
            if name in made and elsewhere and name not in list_defined_names(self._files.read_text(place) or ""):
                return OTHER_PLACE.format("{}", name=name, place=place)
        return ""

    def _keep(self, path: str) -> str:
        """Why a file that is there is not changed: the user said so."""
        from ollm.services.request_reading.plain_words import is_kept

        return KEPT_FILE if self._files.exists(path) and is_kept(path, self._request) else ""

    def _find_kept_target(self, command: str) -> str:
        """Why a command is not run: it would change a file that is to stay as it is."""
        from ollm.services.request_reading.unfinished_work import find_kept_tests

        tests = find_kept_tests(self._request)
        for name in self._names:
            if name in command and names_as_target(command, name) and (told := self._keep(name) or name in tests):
                return (KEPT_TEST if told is True else told).format(name)
        return ""

    def _make_edit(self, old: str, new: str, current: str) -> JsonObject:
        """An edit of every place, where the request says so and there are several."""
        everywhere = current.count(old) > 1 and _EVERYWHERE.search(self._request) is not None
        return {"target": old, "replacement": new, **({"replaceAll": True} if everywhere else {})}


def find_path(path: str, files: ProjectFiles, names: Sequence[str], request: str) -> str:
    """The path itself, or the only file of that name in another folder."""
    if files.exists(path) or path in names:
        return path
    found = [name for name in names if name.endswith(f"/{path}")]
    return found[0] if len(found) == 1 and found[0] in request else path
