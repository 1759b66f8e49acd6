"""Words as bash sees them: quotes and escapes removed, braces expanded, and unknown parts marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data

AtomKind = Literal["plain", "quoted", "value", "unknown", "several", "split", "guess"]
_RANGE = compile_late(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?|([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d{1,9}))?")
_MAX_WORDS = 1024


class Atom(NamedTuple):
    """One character of a word and its origin. A `value` comes from a variable: it is certain and subject to globbing.
    `unknown` and `several` contain no character; with `several`, blanks in the actual value split the word. A `guess`
    contains a likely character."""

    character: str
    kind: AtomKind


def expand_braces(atoms: list[Atom]) -> list[list[Atom]]:
    """Return every word the braces expand to, in order. After a thousand words the rest is dropped and the last one
    marked unknown, so that a truncated list never allows anything."""
    done: list[list[Atom]] = []
    waiting = [atoms]
    while waiting:
        current = waiting.pop()
        found = _find_group(current)
        if found is None:
            done.append(current)
            continue
        start, end, choices = found
        waiting += [current[:start] + choice + current[end:] for choice in reversed(choices)]
        if len(done) + len(waiting) > _MAX_WORDS:
            marker = Atom("", "unknown")
            return [[*one, marker] for one in (*done, *reversed(waiting))][:_MAX_WORDS]
    return done


def _find_group(atoms: list[Atom]) -> tuple[int, int, list[list[Atom]]] | None:
    """Find the first brace group: its start, its end and its choices."""
    for start, atom in enumerate(atoms):
        if atom.kind == "plain" and atom.character == "{":
            found = _parse_choices(atoms, start)
            if found is not None:
                return start, found[0], found[1]
    return None


def _parse_choices(atoms: list[Atom], start: int) -> tuple[int, list[list[Atom]]] | None:
    depth, last = 0, start + 1
    choices: list[list[Atom]] = []
    for index in range(start, len(atoms)):
        if atoms[index].kind != "plain":
            continue
        character = atoms[index].character
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                inner = atoms[last:index]
                if choices:
                    return index + 1, [*choices, inner]
                ranged = _expand_range(inner)
                return (index + 1, ranged) if ranged else None
        elif character == "," and depth == 1:
            choices.append(atoms[last:index])
            last = index + 1
    return None


def _expand_range(inner: list[Atom]) -> list[list[Atom]] | None:
    match = _RANGE.fullmatch("".join(atom.character for atom in inner))
    if match is None or any(atom.kind != "plain" for atom in inner):
        return None
    read, write, groups = (int, str, (1, 2, 3)) if match.group(1) is not None else (ord, chr, (4, 5, 6))
    begin, end, gap = match.group(*groups)
    first, last, step = read(begin), read(end), abs(int(gap or 1)) or 1
    numbers = range(first, last + (1 if last >= first else -1), step if last >= first else -step)[: _MAX_WORDS + 1]
    texts = map(write, numbers)
    return [[Atom(character, "plain") for character in text] for text in texts]


Node = dict[str, Any]
_GLOB = compile_late(r"[*?]|\[.*\]", re.DOTALL)
_ANSI = r"(?s)\\(?:([abeEfnrtv\\'\"?])|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.))"
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\033\033\f\n\r\t\v\\'\"?", strict=True))


class ShellWord(Data, frozen=True):
    """A decoded word. `text` omits or guesses unknown parts; `known` ends before the first of them. A `descriptor`
    stands for `<( )` or `>( )`: a path that bash generates."""

    text: str
    known: str
    static: bool = True
    glob: bool = False
    quoted: bool = False
    descriptor: bool = False
    braces: bool = False
    variable: bool = False
    several: bool = False

    @property
    def might_be_option(self) -> bool:
        """True if the word, or one it splits into, could begin with a dash at run time."""
        begins = not self.static and not self.known and not self.descriptor
        return self.several or begins or self.known.startswith("-")


def make_literal(text: str) -> ShellWord:
    return ShellWord(text=text, known=text)


UNKNOWN_WORD = ShellWord(text="", known="", static=False)


class WordDecoder(Data, frozen=True):
    """Turns syntax nodes into words. `certain` contains known values (HOME, a loop's item), `assigned` those set in the
    same line, which may have changed since."""

    certain: Mapping[str, str]
    assigned: Mapping[str, str]

    def decode_words(self, node: Node) -> list[ShellWord]:
        """Decode a word of a command; braces and `$IFS` may split it into several."""
        expanded = expand_braces(self.decode_atoms(node))
        several = len(expanded) > 1
        found = [join_atoms(part, braces=several) for one in expanded for part in _split_atoms(one)]
        return [word for word in found if word.text or word.quoted or not word.static] if several else found

    def decode_word(self, node: Node | None) -> ShellWord:
        """Decode a word that is not expanded: a redirection's target or an assignment's value."""
        return join_atoms(self.decode_atoms(node)) if node else make_literal("")

    def decode_atoms(self, node: Node) -> list[Atom]:
        return [atom for part in node.get("Parts") or () for atom in self._decode_part(part)]

    def _decode_part(self, part: Node, *, quoted: bool = False) -> list[Atom]:
        match part.get("Type"):
            case "Lit":
                atoms = _decode_double_quoted(part["Value"]) if quoted else _decode_unquoted(part["Value"])
            case "SglQuoted":
                value = part.get("Value", "")
                atoms = [
                    Atom("", "quoted"),
                    *_make_atoms(decode_ansi(value) if part.get("Dollar") else value, "quoted"),
                ]
            case "DblQuoted":
                quoting = (atom for one in part.get("Parts") or () for atom in self._decode_part(one, quoted=True))
                atoms = [Atom("", "quoted"), *quoting]
            case "ParamExp":
                atoms = self._decode_parameter(part, quoted=quoted)
            case "CmdSubst":
                inner: list[Node] = part.get("Stmts") or []
                atoms = _guess_atoms(
                    (find_fed_text(inner[0], self) if len(inner) == 1 else "") or "", splits=not quoted
                )
            case "ProcSubst":
                atoms = _make_atoms("/dev/fd/63", "quoted")
            case "ExtGlob":
                atoms = [Atom("*", "plain")]
            case _:
                atoms = [Atom("", "unknown")]
        return atoms

    def _decode_parameter(self, part: Node, *, quoted: bool) -> list[Atom]:
        name = (part.get("Param") or {}).get("Value", "")
        simple = not any(part.get(key) for key in ("Excl", "Length", "Width", "Index", "Slice", "Repl", "Names", "Exp"))
        if simple and name == "IFS" and not quoted:
            return [Atom(" ", "split")]
        if simple and name in self.certain:
            value = self.certain[name]
            if quoted or not any(character.isspace() for character in value):
                return _make_atoms(value, "value")
        guess = self.assigned.get(name, "")
        expansion = part.get("Exp") or {}
        default = expansion.get("Word")
        if default and (not guess or expansion.get("Op") in ("+", ":+")):
            guess = self.decode_word(default).text
        splits = (not quoted or name == "@" or bool(part.get("Index"))) and not part.get("Length")
        return _guess_atoms(guess, splits=splits)


def join_atoms(atoms: list[Atom], *, braces: bool = False) -> ShellWord:
    known: list[str] = []
    for atom in atoms:
        if atom.kind in ("unknown", "several", "guess", "split"):
            break
        known.append(atom.character)
    return ShellWord(
        text="".join(atom.character for atom in atoms),
        known="".join(known),
        static=all(atom.kind in ("plain", "quoted", "value") for atom in atoms),
        glob=_GLOB.search("".join(atom.character for atom in atoms if atom.kind in ("plain", "value"))) is not None,
        variable=any(atom.kind == "value" for atom in atoms),
        quoted=any(atom.kind == "quoted" for atom in atoms),
        descriptor="".join(atom.character for atom in atoms) == "/dev/fd/63",
        braces=braces,
        several=any(atom.kind == "several" for atom in atoms),
    )


def decode_ansi(text: str) -> str:
    def decode_escape(match: re.Match[str]) -> str:
        letter, hexadecimal, short, long, octal, control = match.groups()
        if letter:
            return _ANSI_LETTERS[letter]
        if control:
            return chr(ord(control) & 0x1F)
        code = int(octal, 8) & 0xFF if octal else int(hexadecimal or short or long, 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"

    return re.sub(_ANSI, decode_escape, text).partition("\0")[0]


def _make_atoms(text: str, kind: AtomKind) -> list[Atom]:
    return [Atom(character, kind) for character in text]


def _guess_atoms(text: str, *, splits: bool) -> list[Atom]:
    """Return atoms for a likely but uncertain value, which is split at its blanks unless quoted."""
    atoms = _make_atoms(text, "guess")
    return [
        Atom("", "several" if splits else "unknown"),
        *(Atom(" ", "split") if splits and atom.character in " \t\n" else atom for atom in atoms),
    ]


def _decode_unquoted(value: str) -> list[Atom]:
    atoms: list[Atom] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "\\")
            if following != "\n":
                atoms.append(Atom(following, "quoted"))
        else:
            atoms.append(Atom(character, "plain"))
    return atoms


def _decode_double_quoted(value: str) -> list[Atom]:
    atoms: list[Atom] = []
    characters = iter(value)
    for character in characters:
        if character != "\\":
            atoms.append(Atom(character, "quoted"))
            continue
        following = next(characters, "")
        if following == "\n":
            continue
        atoms += _make_atoms(following if following in '$`"\\' and following else "\\" + following, "quoted")
    return atoms


def _split_atoms(atoms: list[Atom]) -> list[list[Atom]]:
    """Split at `$IFS`: `rm$IFS-rf` is two words, each marked as uncertain."""
    if not any(atom.kind == "split" for atom in atoms):
        return [atoms]
    parts: list[list[Atom]] = [[]]
    for atom in atoms:
        if atom.kind == "split":
            parts.append([])
        else:
            parts[-1].append(atom)
    return [[*part, Atom("", "unknown")] for part in parts if part]


def make_part_of(word: ShellWord, text: str) -> ShellWord:
    """Return a part of a word: the value in `--name=VALUE`, the path in `REV:PATH`."""
    return ShellWord(text=text, known=text if word.static else "", static=word.static, glob=word.glob)


def drop_prefix(word: ShellWord, length: int) -> ShellWord:
    """Return the word without its first characters: the path in `@FILE`."""
    return ShellWord(text=word.text[length:], known=word.known[length:], static=word.static, glob=word.glob)


def find_fed_text(statement: Node, decoder: WordDecoder, raw: Callable[[Node], str] = lambda _body: "") -> str | None:
    """Return the text that a statement writes, if the line itself contains it: a here-document, or the words of `echo`
    and `printf`."""
    for redirection in statement.get("Redirs") or ():
        if redirection.get("Op") == "<<<":
            return decoder.decode_word(redirection.get("Word")).text
        if redirection.get("Hdoc"):
            return raw(redirection["Hdoc"])
    arguments = (statement.get("Cmd") or {}).get("Args") or ()
    texts = [word.text for argument in arguments for word in decoder.decode_words(argument)]
    if texts[:1] in (["echo"], ["printf"]):
        return " ".join(text for text in texts[1:] if text not in ("-n", "-e", "-ne", "-en", "-E", "--"))
    return None
