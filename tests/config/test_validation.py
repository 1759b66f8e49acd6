"""Mistakes in settings and configuration files are reported with their place."""

from typing import Annotated, Literal

from msgspec import Meta

from ollm.config.validation import MAX_NUMBER, SettingsReader
from ollm.config.yaml_tree import SourcePosition, parse_yaml
from ollm.domain.struct import Data


class Inner(Data, frozen=True):
    api_key: str | None = None
    count: Annotated[int, Meta(ge=1)] = 1


class Outer(Data, frozen=True):
    inner: Inner = Inner()
    colour: Literal["red", "green"] = "red"
    names: tuple[str, ...] = ()
    share: float = 0.5


def read(text: str, fatal: tuple[str, ...] = ()) -> tuple[dict[str, object], list[str], SettingsReader]:
    reader = SettingsReader(fatal)
    entry = parse_yaml(text, SourcePosition(file="c"))
    assert entry is not None
    return reader.read_struct(Outer, entry), [f"{m.key}: {m.message}" for m in reader.mistakes], reader


def test_what_is_right_is_kept_and_every_mistake_is_told() -> None:
    values, told, reader = read("inner: {count: 0}\ncolour: gren\nnames: [a, 5, b]\nshare: 0.25\n")

    assert values == {"inner": {}, "names": ["a", "b"], "share": 0.25}
    assert told == [
        "inner.count: expected a whole number >= 1, not 0",
        "colour: expected red, green, not 'gren', did you mean green?",
        "names[1]: expected text, not 5",
    ]
    assert (reader.places["share"].line, reader.places["names[1]"].column) == (4, 15)


def test_an_unknown_key_is_told_with_the_likely_one_here_or_elsewhere() -> None:
    _, told, _ = read("color: red\ninner: {api_key: x}\nmaxSessions: 3\nzzz: 1\n")

    assert told == [
        "color: unknown key, did you mean colour?",
        "inner.api_key: unknown key, did you mean inner.apiKey?",
        "maxSessions: unknown key, did you mean sessions.maxSessions?",
        "zzz: unknown key",
    ]


def test_numbers_without_end_are_refused() -> None:
    values, told, _ = read(f"share: .inf\ninner: {{count: {MAX_NUMBER + 1}}}\n")

    assert values == {"inner": {}}
    assert told == ["share: expected a finite number", "inner.count: the number is too large"]


def test_a_mistake_in_a_fatal_section_is_fatal_and_beside_it_not() -> None:
    _, _, reader = read("inner: 5\ncolour: 7\n", fatal=("inner",))

    assert [mistake.fatal for mistake in reader.mistakes] == [True, False]
