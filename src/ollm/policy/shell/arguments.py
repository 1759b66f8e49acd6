"""What among a command's arguments no grant covers: places outside the workspace, words that are only known when it
runs, and options that make a program run or read something else than the words before them say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ollm.policy.shell.paths import PathJudge, is_stream
from ollm.policy.shell.words import ShellWord

TEXT_OPTIONS = frozenset({"-m", "--message", "-am", "-b", "--body", "-t", "--title", "-e", "--grep", "--author"})
_STEERING_OPTION = (
    r"--?([\w.-]*-)?(shell|exec|toolexec|config|configfile|config-file|conf|rc|rcfile|plugin|plugins|command|cmd|program|hook"
    r"|hooks|script|loader|require|import|eval|preload|wrapper|runner|executable|interpreter|linker|rustc|compiler|overlay"
    r"|modfile|template|file|prefix|rootdir|root|dir|directory|cwd|workdir|basetemp|confcutdir|override-ini|init-script"
    r"|node-options|userconfig|globalconfig|output|out|output-file|log-file|junitxml|junit-xml|report|profile|settings"
    r"|env|env-file|init|makefile|justfile|manifest-path|target-dir|rulesdir|parser|formatter|resolver|transform|setup"
    r"|globalsetup|setupfiles|testrunner|environment|strategy|upload-pack|receive-pack|ldflags|gccgoflags|extld|extldflags"
    r"|python-executable|custom-typeshed-dir|cache-dir|python)(=.*)?"
)
_STEERING_LETTERS = {
    "pytest": "pco",
    "make": "fCIEW",
    "git": "FtsC",
    "cargo": "ZC",
    "go": "C",
    "eslint": "cof",
    "tox": "cx",
    "mvn": "fsDl",
    "gradle": "IpDbcP",
    "tsc": "p",
    "just": "fd",
    "jest": "c",
    "vitest": "c",
    "npm": "C",
    "pnpm": "C",
    "bun": "r",
    "prettier": "",
    "black": "",
    "flake8": "r",
    "mypy": "pm",
}


def find_ungranted(name: str, words: Sequence[ShellWord], judge: PathJudge) -> tuple[str, ...]:
    """The reasons why a grant for the words at the beginning does not stand for the whole command."""
    found = [*_find_unknown_words(words), *_find_steering_options(name, words)]
    for place, word in enumerate(words[1:], 1):
        if _is_text(words, place):
            continue
        for candidate in list_path_candidates(word):
            found += [reason for reason in judge.check_read(candidate).locks if not is_stream(candidate.text)]
    return tuple(dict.fromkeys(found))


def list_path_candidates(word: ShellWord) -> Iterator[ShellWord]:
    """The paths that a word may hold: as it stands, behind `=`, `:`, `@` or `,`, or joined to an option's letter."""
    text = word.text
    rests = [text, *re.split(r"[=@,]|:(?!//)", text)[1:]]
    if re.match(r"-[A-Za-z][^-]", text):
        rests.append(text[2:])
    for rest in dict.fromkeys(rests):
        if rest.startswith(("/", "~", "..", ".")) or "/" in rest:
            yield msgspec.structs.replace(word, text=rest, known=rest if word.static else "")


def _is_text(words: Sequence[ShellWord], place: int) -> bool:
    word = words[place]
    return words[place - 1].text in TEXT_OPTIONS or (word.quoted and " " in word.text) or "://" in word.text


def _find_unknown_words(words: Sequence[ShellWord]) -> list[str]:
    unknown = [
        word
        for place, word in enumerate(words[1:], 1)
        if not word.static and not (words[place - 1].text in TEXT_OPTIONS and not word.several)
    ]
    return ["a word of it is only known when it runs"] if unknown else []


def _find_steering_options(name: str, words: Sequence[ShellWord]) -> Iterator[str]:
    letters = _STEERING_LETTERS.get(name, "")
    for place, word in enumerate(words[1:], 1):
        if words[place - 1].text in TEXT_OPTIONS:
            continue
        cluster = re.match(r"-[A-Za-z]*", word.text) if not word.text.startswith("--") else None
        steers = cluster is not None and any(letter in cluster.group() for letter in letters)
        setting = name in ("make", "just", "mvn", "gradle") and re.match(r"[A-Za-z_]\w*[:?+]?=", word.text)
        if steers or setting or re.fullmatch(_STEERING_OPTION, word.text, re.IGNORECASE | re.DOTALL):
            yield f"{word.text.partition('=')[0]} can make {name} run or use something else"
