"""What among a command's arguments no grant covers: places outside the workspace, words that are only known when it
runs, and options that make a program run or read something else than the words before them say."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec

from ollm.policy.shell.paths import NO_OBJECTIONS, Objections, PathJudge, is_stream
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


def find_ungranted(name: str, steering: str, words: Sequence[ShellWord], judge: PathJudge) -> tuple[str, ...]:
    """The reasons why a grant for the words at the beginning does not stand for the whole command. `steering` are the
    letters of options with which the program uses something else."""
    found = [*_find_unknown_words(words), *_find_steering_options(name, steering, words)]
    for place, word in enumerate(words[1:], 1):
        if _is_text(words, place):
            continue
        for candidate in list_path_candidates(word):
            found += [reason for reason in judge.check_read(candidate).locks if not is_stream(candidate.text)]
    return tuple(dict.fromkeys(found))


def list_path_candidates(word: ShellWord) -> Iterator[ShellWord]:
    """The paths that a word may hold: as it is, behind `=`, `:`, `@` or `,`, or joined to an option's letter."""
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


def _find_steering_options(name: str, letters: str, words: Sequence[ShellWord]) -> Iterator[str]:
    for place, word in enumerate(words[1:], 1):
        if words[place - 1].text in TEXT_OPTIONS:
            continue
        cluster = re.match(r"-[A-Za-z]*", word.text) if not word.text.startswith("--") else None
        steers = cluster is not None and any(letter in cluster.group() for letter in letters)
        setting = name in ("make", "just", "mvn", "gradle") and re.match(r"[A-Za-z_]\w*[:?+]?=", word.text)
        if steers or setting or re.fullmatch(_STEERING_OPTION, word.text, re.IGNORECASE | re.DOTALL):
            yield f"{word.text.partition('=')[0]} can make {name} run or use something else"


def check_secrets(words: Sequence[ShellWord], judge: PathJudge) -> Objections:
    """Files that may not be read unasked, named to a command that does more than reading."""
    found = NO_OBJECTIONS
    for place, word in enumerate(words[1:], 1):
        if words[place - 1].text not in TEXT_OPTIONS and not (word.quoted and " " in word.text):
            found += sum((judge.check_secret(one) for one in list_path_candidates(word)), NO_OBJECTIONS)
    return found


def check_mentions(words: Sequence[ShellWord], judge: PathJudge, known: Collection[str]) -> Objections:
    """Protected files named to a program in words of which nothing is known; `known` are those of which it is."""
    found = NO_OBJECTIONS
    for place, word in enumerate(words[1:], 1):
        if words[place - 1].text in TEXT_OPTIONS or (word.quoted and " " in word.text) or word.text in known:
            continue
        value = word.text.partition("=")[2] if word.text.startswith("-") or "=" in word.text else word.text
        for candidate in dict.fromkeys((value, *(one.text for one in list_path_candidates(word)))):
            if candidate:
                found += judge.check_protected(msgspec.structs.replace(word, text=candidate))
    return found
