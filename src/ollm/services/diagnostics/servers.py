"""The table of language servers, and the search for an installed one. Nothing is ever downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.struct import Data
from ollm.system.path_names import find_executable, is_inside

PROJECT_PROGRAMS = ("node_modules/.bin", ".venv/bin", "venv/bin")
VIRTUAL_ENVIRONMENTS = (".venv/bin/python", "venv/bin/python")


class Language(Data, frozen=True):
    """A language with its servers, of which the first one found is used. `suffixes` maps file names to the protocol's
    language ids; `roots` are files that mark the folder of a project."""

    name: str
    suffixes: Mapping[str, str]
    roots: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    settings: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    needs: tuple[str, ...] = ()  # The server finds no errors without these programs.
    runs_code: bool = False  # Such a server runs the project's code, so it needs a trusted workspace.


LANGUAGES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Language, ...])


class FoundServer(Data, frozen=True):
    """An installed server for a language, and the project that it is to look at."""

    language: Language
    argv: tuple[str, ...]
    root: Path
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        return Path(self.argv[0]).name.removesuffix("-langserver")


class ServerFinder:
    """Finds the server of a file. Programs inside the workspace count only if it is trusted."""

    def __init__(self, workspace: Path, programs: str, configured: Mapping[str, Any], *, trusted: bool) -> None:
        self._workspace = workspace
        self._programs = programs
        self._trusted = trusted
        self.languages = tuple(_apply_settings(configured))

    def find_for_file(self, path: Path) -> FoundServer | None:
        language = next((one for one in self.languages if path.suffix.lower() in one.suffixes), None)
        return self.find_server(language, self._find_root(path, language)) if language else None

    def find_server(self, language: Language, root: Path) -> FoundServer | None:
        folders = list(self._list_folders(root))
        if (language.runs_code and not self._trusted) or not all(
            find_executable(name, folders) for name in language.needs
        ):
            return None
        found = ((find_executable(name, folders), more) for name, *more in language.commands)
        argv = next(((program, *more) for program, more in found if program), None)
        settings = self._make_settings(language, root)
        for name, section in language.settings.items():
            settings[name] = {**settings.get(name, {}), **section} if isinstance(section, Mapping) else section
        return FoundServer(language, argv, root, settings) if argv else None

    def _find_root(self, path: Path, language: Language) -> Path:
        """Find the nearest folder of the workspace with a file that marks a project."""
        folders = [folder for folder in path.parents if folder.is_relative_to(self._workspace)]
        marked = (folder for folder in folders if any((folder / name).exists() for name in language.roots))
        return next(marked, self._workspace)

    def _list_folders(self, root: Path) -> Iterator[str]:
        if self._trusted:
            yield from (
                str(place / name) for place in dict.fromkeys((root, self._workspace)) for name in PROJECT_PROGRAMS
            )
        for entry in self._programs.split(":"):
            if os.path.isabs(entry) and (self._trusted or not is_inside(os.path.realpath(entry), str(self._workspace))):  # noqa: PTH117
                yield entry

    def _make_settings(self, language: Language, root: Path) -> dict[str, Any]:
        """Tell type checkers of Python where imports are found; without that, a missing one is no error."""
        if language.name != "python":
            return {}
        places = [place / name for place in (root, self._workspace) for name in VIRTUAL_ENVIRONMENTS]
        python = next((str(path) for path in places if self._trusted and path.exists()), None)
        if python is not None:
            return {"python": {"pythonPath": python}}
        analysis = {
            "diagnosticSeverityOverrides": {"reportMissingImports": "warning", "reportMissingModuleSource": "none"}
        }
        return {"python": {"analysis": analysis}, "basedpyright": {"analysis": analysis}}


def _apply_settings(configured: Mapping[str, Any]) -> Iterator[Language]:
    """Apply `tools.diagnostics.languages`: a language is turned off, or gets another command, suffixes or settings."""
    known = {language.name: language for language in LANGUAGES}
    for name in (*known, *(name for name in configured if name not in known)):
        wanted, base = configured.get(name), known.get(name)
        if not isinstance(wanted, Mapping):
            if base is not None and wanted not in (False, "off"):
                yield base
            continue
        words, suffixes = _read_words(wanted.get("command")), _read_words(wanted.get("suffixes"))
        settings = wanted.get("settings")
        yield Language(
            name=name,
            suffixes={suffix.lower(): name for suffix in suffixes} or (base.suffixes if base else {}),
            roots=base.roots if base else (),
            commands=(words,) if words else base.commands if base else (),
            settings=settings if isinstance(settings, Mapping) else base.settings if base else {},
            options=base.options if base else {},
            runs_code=base is not None and base.runs_code,
        )


def describe_mistakes(configured: Mapping[str, Any]) -> list[str]:
    """Describe the entries of `tools.diagnostics.languages` that have no effect."""
    known = {language.name for language in LANGUAGES}
    found: list[str] = []
    for name, wanted in configured.items():
        key = f"tools.diagnostics.languages.{name}"
        if isinstance(wanted, Mapping):
            unknown = [str(each) for each in wanted if each not in ("command", "suffixes", "settings")]
            found += [f"{key}: unknown key {each} is ignored; known: command, suffixes, settings" for each in unknown]
            if name not in known and not (wanted.get("command") and wanted.get("suffixes")):
                found.append(f"{key}: expected command and suffixes")
        elif wanted not in (False, "off"):
            found.append(f"{key}: expected off, or a mapping with command, suffixes or settings")
    return found


def _read_words(value: Any) -> tuple[str, ...]:
    return tuple(value.split() if isinstance(value, str) else map(str, value) if isinstance(value, list) else ())
