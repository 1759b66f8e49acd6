"""Splits a command line at its top-level `&&`, `||` and `;` into steps that run one after another: plain git commands
in a sandbox that lets them write the repository, and everything else in one that does not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ollm.policy.shell.parse import Node, ParsedScript, iter_nodes, parse_script
from ollm.policy.shell.programs.expressions import find_printf_dangers, find_test_dangers
from ollm.policy.shell.programs.git import parse_git
from ollm.policy.shell.programs.git_verbs import read_git_verb
from ollm.policy.shell.words import ShellWord, WordDecoder
from ollm.system.path_names import is_inside
from ollm.system.sandbox.git_line import ADDING_VERBS
from ollm.system.sandbox.repositories import NoRepository, Repository

if TYPE_CHECKING:
    from ollm.system.sandbox.sandbox import Sandbox

Joiner = Literal[";", "&&", "||"]
# `any` parts are harmless in both sandboxes; a `prelude` sets options or variables and is repeated in every group
PartKind = Literal["git", "work", "any", "cd", "prelude"]
_FILTERS = frozenset({"head", "tail", "grep", "wc", "sort", "cat"})
_HARMLESS = frozenset({"echo", "printf", "true", "false", ":", "pwd", "ls", "date", "test", "[", *_FILTERS})
_STATE = frozenset(
    "export declare typeset local readonly unset alias unalias source . eval exec exit return trap umask ulimit shopt"
    " hash pushd popd set wait fg bg disown enable read mapfile readarray".split()
)
_VARIABLES = ("GIT_AUTHOR_", "GIT_COMMITTER_", "LC_", "LANG", "TZ", "HUSKY", "SKIP", "CI", "NO_COLOR", "PRE_COMMIT_")
_EDITORS = frozenset({"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "GIT_PAGER", "PAGER", "GIT_MERGE_AUTOEDIT"})
_EDITOR_VALUES = frozenset({"true", ":", "cat", "no", "/bin/true", "/usr/bin/true", ""})
_SET = re.compile(r"[-+][eux]*o?|pipefail|errexit|nounset|xtrace")
_OUTPUTS = (">", ">>", "&>", "&>>", ">|")
_NAMED, _USED = r"(?<![\w$])(?<!\$\{)[A-Za-z_]\w*", r"\$\{?[#!]?([A-Za-z_]\w*)"
_SPECIAL = ("GIT_", "LD_", "BASH", "OLLM_", "PATH", "IFS", "HOME", "ENV", "SHELLOPTS", "CDPATH", "POSIXLY")


class LinePart(NamedTuple):
    """A part of a line: its text, how it is joined to the part before, and True if it is the last of a list of `&&` and
    `||`. `folder` is the target of `cd`, or of git's `-C`; `verb` is git's."""

    kind: PartKind
    text: str
    joiner: Joiner = ";"
    is_last: bool = True
    folder: str = ""
    verb: str = ""


def split_git_line(command: str) -> list[LinePart]:
    """Return the parts of a line that has git commands which write a repository, or [] if it has none, or if its parts
    cannot run one after another."""
    if "git" not in command or "OLDPWD" in command:  # A part does not know the previous part's folder.
        return []
    script = parse_script(command)
    if script.error or not script.statements:
        return []
    try:
        parts = _Splitter(script).split()
    except _NotSplitError:
        return []
    return parts if any(part.kind == "git" for part in parts) else []


class _NotSplitError(Exception):
    pass


class _Splitter:
    def __init__(self, script: ParsedScript) -> None:
        self._script = script
        self._values: dict[str, str] = {}

    def split(self) -> list[LinePart]:
        parts = [part for statement in self._script.statements for part in self._split_list(statement)]
        changed = set[str]()  # Names set otherwise than by a literal value, such as in a loop or by `printf -v`.
        for number, part in enumerate(parts):
            named = set(re.findall(_NAMED, part.text))
            if changed & (set(re.findall(_USED, part.text)) - named):
                raise _NotSplitError
            if "PIPESTATUS" in part.text and part.kind == "work" and "git" in [one.kind for one in parts[:number]]:
                raise _NotSplitError
            changed = changed | named if part.kind == "work" else changed - named if part.kind == "prelude" else changed
        return parts

    def _split_list(self, statement: Node, joiner: Joiner = ";", *, is_last: bool = True) -> Iterator[LinePart]:
        if statement.get("Background") or statement.get("Coprocess"):
            raise _NotSplitError
        command = statement.get("Cmd") or {}
        if (
            command.get("Type") == "BinaryCmd"
            and command["Op"] in ("&&", "||")
            and not (statement.get("Redirs") or statement.get("Negated"))
        ):
            yield from self._split_list(command["X"], joiner, is_last=False)
            yield from self._split_list(command["Y"], command["Op"], is_last=is_last)
            return
        part = self._classify(statement)
        if part.kind == "prelude" and joiner == "||":
            raise _NotSplitError
        yield part._replace(joiner=joiner, is_last=is_last)

    def _classify(self, statement: Node) -> LinePart:
        text = self._render(statement)
        found = None if statement.get("Negated") else self._classify_pipeline(statement)
        if found is None:
            self._refuse_state_change(statement)
            return LinePart("work", text)
        kind, folder, verb = found
        return LinePart(kind, text, folder=folder, verb=verb)

    def _classify_pipeline(self, statement: Node) -> tuple[PartKind, str, str] | None:
        """Return the kind of a pipeline or a simple command with harmless redirections, or None for all else."""
        command = statement.get("Cmd") or {}
        if not all(map(self._is_harmless_redirection, statement.get("Redirs") or ())):
            return None
        if command.get("Type") == "BinaryCmd" and command["Op"] in ("|", "|&") and not command["Y"].get("Negated"):
            first, then = (self._classify_pipeline(command[side]) for side in ("X", "Y"))
            words = self._decode(command["Y"])
            filters = then is not None and then[0] == "any" and bool(words) and words[0].text in _FILTERS
            return first if filters and first is not None and first[0] in ("git", "any") else None
        return self._classify_simple(command)

    def _classify_simple(self, command: Node) -> tuple[PartKind, str, str] | None:  # noqa: PLR0911
        if command.get("Type") == "DeclClause" and command.get("Variant", {}).get("Value") == "export":
            return self._note_variables(command.get("Args") or ())
        if command.get("Type") != "CallExpr":
            return None
        assigns, words = command.get("Assigns") or (), self._decode({"Cmd": command})
        if not words:
            return self._note_variables(assigns)
        name = words[0].text if words[0].static else ""
        if name == "git" and self._has_harmless_texts(command) and all(map(self._may_assign, assigns)):
            return self._classify_git(words)
        if assigns:
            return None
        if name == "cd" and len(words) == 2 and words[1].static and not words[1].text.startswith(("-", "~")):
            return "cd", words[1].text, ""
        if _changes_folder([word.text for word in words[:2]]):
            raise _NotSplitError
        if name == "set" and len(words) > 1 and all(word.static and _SET.fullmatch(word.text) for word in words[1:]):
            return "prelude", "", "set"
        static = self._has_harmless_texts(command) and all(word.static or word.quoted for word in words)
        writes = name == "sort" and any(word.text.startswith(("-o", "-T", "--o", "--t", "--c")) for word in words)
        return ("any", "", "") if name in _HARMLESS and static and not writes and not _evaluates(words) else None

    def _classify_git(self, words: Sequence[ShellWord]) -> tuple[PartKind, str, str] | None:
        found = parse_git(words)
        if found.reads and not found.dangers and all(word.static or not word.might_be_option for word in words):
            return "any", "", ""
        verb = read_git_verb(words)
        return None if verb is None else ("git", verb.folder, verb.name)

    def _note_variables(self, assigns: Sequence[Node]) -> tuple[PartKind, str, str]:
        """Remember literal values: they are set again in every group."""
        for assign in assigns:
            name, value = (assign.get("Name") or {}).get("Value", ""), self._read_value(assign)
            if value is None or name.startswith(_SPECIAL) or not name:
                raise _NotSplitError
            self._values[name] = value
        return "prelude", "", ""

    def _may_assign(self, assign: Node) -> bool:
        name, value = (assign.get("Name") or {}).get("Value", ""), self._read_value(assign)
        return value is not None and (name.startswith(_VARIABLES) or (name in _EDITORS and value in _EDITOR_VALUES))

    def _read_value(self, assign: Node) -> str | None:
        if any(assign.get(key) for key in ("Append", "Index", "Array", "Naked")):
            return None
        word = self._decoder.decode_word(assign.get("Value"))
        return word.text if word.static else None

    @property
    def _decoder(self) -> WordDecoder:
        return WordDecoder(certain=self._values, assigned={})

    def _decode(self, statement: Node) -> list[ShellWord]:
        decoder = self._decoder
        arguments = (statement.get("Cmd") or {}).get("Args") or ()
        return [word for argument in arguments for word in decoder.decode_words(argument)]

    def _has_harmless_texts(self, command: Node) -> bool:
        """Return True if substitutions in a command only print texts, dates and what git says."""
        for node in iter_nodes([command.get("Args"), command.get("Assigns")]):
            if node.get("Type") in ("ProcSubst", "ExtGlob"):
                return False
            if node.get("Type") == "CmdSubst":
                found = [self._classify_pipeline(inner) for inner in node.get("Stmts") or ()]
                if len(found) != 1 or found[0] is None or found[0][0] != "any":
                    return False
        return True

    def _is_harmless_redirection(self, redirection: Node) -> bool:
        """Return True for a text as input, and for output to /dev/null or another descriptor."""
        operator = redirection.get("Op", "")
        if operator in ("<<", "<<-"):
            body = [node.get("Type") for node in iter_nodes(redirection.get("Hdoc"))]
            return "CmdSubst" not in body and "ProcSubst" not in body
        word = self._decoder.decode_word(redirection.get("Word"))
        if operator == "<<<":
            return word.static
        if operator in (">&", "<&"):
            return word.static and (word.text.isdecimal() or word.text == "-")
        return word.static and (operator == "<" or (word.text == "/dev/null" and operator in _OUTPUTS))

    def _refuse_state_change(self, statement: Node) -> None:
        """Raise if a part changes the shell in which the following ones run."""
        if (statement.get("Cmd") or {}).get("Type") == "Subshell":
            return
        for node in iter_nodes(statement):
            kind = node.get("Type")
            words = [word.text for word in self._decode({"Cmd": node})[:2]] if kind == "CallExpr" else []
            assigns = kind == "CallExpr" and node.get("Assigns") and not node.get("Args")
            sets = assigns or kind in ("FuncDecl", "DeclClause", "LetClause")
            if sets or _changes_folder(words) or not _STATE.isdisjoint(words[:1]):
                raise _NotSplitError

    def _render(self, statement: Node) -> str:
        """Return the text of a part. A here-document may begin behind the following parts: it is moved up."""
        documents = [one for one in _list_redirections(statement) if one.get("Hdoc") or one.get("Op") in ("<<", "<<-")]
        source = self._script.source
        if not documents:
            return self._script.get_text(statement)
        ends = [node["End"] for node in _list_words(statement)]
        texts = [source[statement["Pos"] : max(ends)]]
        for one in documents:
            body, marker = one.get("Hdoc"), self._decoder.decode_word(one.get("Word")).text.encode()
            text = source[body["Pos"] : body["End"]] if body else b""
            closed = text.rsplit(b"\n", 1)[-1].strip(b"\t") == marker
            texts += [text] if closed else [text.rstrip(b"\t\n") + b"\n" + marker if text else marker]
        return b"\n".join([*texts, b""]).decode("utf-8", "replace")


def _evaluates(words: Sequence[ShellWord]) -> bool:
    """Return True if a command sets a variable, or evaluates a subscript in a name, which can run anything."""
    name = words[0].text
    if name == "printf":
        return words[1:2] != [] and (words[1].text.startswith("-v") or bool(find_printf_dangers(words)))
    return name in ("test", "[") and bool(find_test_dangers(words))


def _changes_folder(words: Sequence[str]) -> bool:
    return words[:1] == ["cd"] or (words[:1] in (["builtin"], ["command"]) and words[1:] == ["cd"])


def _list_redirections(statement: Node) -> Iterator[Node]:
    """List the redirections of a simple command or a pipeline, in their order."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "BinaryCmd":
        yield from _list_redirections(command["X"])
        yield from _list_redirections(command["Y"])
    elif command.get("Type") not in ("CallExpr", None) and any(node.get("Hdoc") for node in iter_nodes(command)):
        raise _NotSplitError
    yield from statement.get("Redirs") or ()


def _list_words(statement: Node) -> Iterator[Node]:
    """List the words of a simple command or a pipeline, without here-documents."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "BinaryCmd":
        yield from _list_words(command["X"])
        yield from _list_words(command["Y"])
    elif command.get("Type") == "CallExpr":
        yield from (*(command.get("Args") or ()), *(command.get("Assigns") or ()))
    elif command:
        yield command
    yield from (one["Word"] for one in statement.get("Redirs") or ())


class LineStep(NamedTuple):
    """A script to run in a folder; in a `repository` if its git `verbs` may write one."""

    script: str
    folder: str
    repository: Repository | None = None
    verbs: frozenset[str] = frozenset()


class LineSteps:
    """Decides as bash does which parts of a line run. Iterate over the steps; set `status` to the exit code of each
    before the next. `said` is what `cd` printed, `refusal` why git cannot write the repository, or ""."""

    def __init__(self, parts: Sequence[LinePart], folder: str, sandbox: Sandbox | None) -> None:
        self._parts = parts
        self._folder = folder
        self._sandbox = sandbox
        self._prelude: list[str] = []
        self.status = 0
        self.said = ""
        self.refusal = ""

    def __iter__(self) -> Iterator[LineStep]:
        index = 0
        while index < len(self._parts):
            part = self._parts[index]
            index += 1
            if self._is_skipped(part):
                continue
            if part.kind == "prelude":
                self._prelude.append(part.text)
                self.status = 0
            elif part.kind == "cd" and self._enter(part.folder):
                pass
            else:
                parts, repository = self._take_group(index - 1)
                index += len(parts) - 1
                part = parts[-1]
                verbs = frozenset(one.verb for one in parts)
                yield LineStep(self._render(parts), self._folder, repository, verbs)
            if self._stops_at_errors and self.status and part.is_last:
                return

    def _is_skipped(self, part: LinePart) -> bool:
        return (part.joiner == "&&" and self.status != 0) or (part.joiner == "||" and self.status == 0)

    @property
    def _stops_at_errors(self) -> bool:
        return any("e" in word for text in self._prelude if text.startswith("set ") for word in _list_flags(text))

    def _enter(self, folder: str) -> bool:
        """Change the folder of the following steps. Returns False for one outside, which only a sandbox shows."""
        assert self._sandbox is not None
        target = os.path.normpath(os.path.join(self._folder, folder))
        if not is_inside(os.path.realpath(target), self._sandbox.workspace):
            return False
        self.status = 0
        if os.path.isdir(target):
            self._folder = target
        else:
            self.status = 1
            self.said = f"bash: line 1: cd: {folder}: No such file or directory\n"
        return True

    def _take_group(self, start: int) -> tuple[Sequence[LinePart], Repository | None]:
        """Take the parts that run in one sandbox. One that leaves the workspace takes all that follow."""
        first = self._parts[start]
        if first.kind == "cd":
            return self._parts[start:], None
        taken = [first]
        repository = self._find_repository(first)
        decided = first.kind != "any"
        for part in self._parts[start + 1 :]:
            stops = part.joiner == ";" and self._stops_at_errors
            if stops or part.kind in ("cd", "prelude") or taken[-1].verb in ADDING_VERBS:
                break
            if part.kind != "any":
                found = self._find_repository(part)
                if decided and found != repository:
                    break
                repository, decided = found, True
            taken.append(part)
        return taken, repository

    def _find_repository(self, part: LinePart) -> Repository | None:
        if part.kind != "git" or self._sandbox is None:
            return None
        try:
            return self._sandbox.find_repository(os.path.realpath(os.path.join(self._folder, part.folder)))
        except NoRepository as reason:
            self.refusal = str(reason) or self.refusal
        except OSError as error:
            self.refusal = f"the repository cannot be read: {error}"
        return None

    def _render(self, parts: Sequence[LinePart]) -> str:
        pieces = [*self._prelude]
        if self.status and "?" in parts[0].text and not self._stops_at_errors:
            pieces.append(f"(exit {self.status})")  # The first part reads this as `$?`.
        for part in parts:
            braced = len(parts) > 1 and "\n" in part.text  # Braces make bash forget PIPESTATUS.
            group = f"{{ {part.text}\n}}" if braced else part.text
            if part is parts[0] or part.joiner == ";":
                pieces.append(group)
            else:
                pieces[-1] += f" {part.joiner} {group}"
        return "\n".join(pieces)


def _list_flags(text: str) -> list[str]:
    words = text.removesuffix(";").split()[1:]
    named = ["-e" for name in words if name == "errexit"]
    return [word for word in (*words, *named) if word.startswith("-")]
