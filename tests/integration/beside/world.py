"""Command lines of other people's projects, run in the sandbox beside the same outside.

world.txt names the packages and the seed. A package's lines are those of its CI workflows, Makefile, tox and nox files,
package.json scripts and CONTRIBUTING page, drawn by the seed; none is picked by hand. Counted are lines that exit 0
outside. `python -m tests.integration.beside.world LEVEL [COUNT] [PART/PARTS]` prints the misses.
"""

from __future__ import annotations

import configparser
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tests.integration.beside.sides import Side, make_folder
from tests.integration.packages import CACHE, UnavailableError, run_installer

FILE = Path(__file__).with_name("world.txt")
PLACE = CACHE / "world"
TOOLS = (
    "setuptools wheel hatchling flit-core poetry-core pdm-backend setuptools-scm hatch-vcs build pytest pytest-cov"
    " pytest-xdist pytest-timeout hypothesis ruff black flake8 isort mypy coverage pretend trio twine nox tox pre-commit"
    " sphinx furo sphinx-rtd-theme myst-parser towncrier check-manifest zope.testrunner freezegun diff-cover"
)
SECONDS = 60
MAX_TEXT = 4_000


def read_packages() -> tuple[int, list[tuple[str, str, str]]]:
    rows = [row.split() for row in FILE.read_text(encoding="utf-8").splitlines() if row and not row.startswith("#")]
    return int(rows[0][1]), [(kind, name, version) for kind, name, version in rows[1:]]


def fetch_environment(project: Path) -> Path:
    """Install what such lines call, and what the project names for its tests and pages, into an environment of its own.
    Return its folder of programs. What cannot be installed is left out: the line then fails outside as well."""
    place = PLACE / "environments" / project.name
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        uv, python = str(Path(sys.executable).with_name("uv")), str(place / "bin/python")
        place.parent.mkdir(parents=True, exist_ok=True)
        run_installer([uv, "venv", "-q", "--seed", "--python", "/usr/bin/python3", str(place)], PLACE)
        for wanted in ([*TOOLS.split()], *_list_requirements(project)):
            with suppress(UnavailableError):
                run_installer([uv, "pip", "install", "-q", "--python", python, *wanted], project)
        (place / "ready").touch()
        run_installer(["chmod", "-R", "a-w", str(place)], PLACE)  # a line must not change the programs of the next one
    return place / "bin"


def _list_requirements(project: Path) -> Iterator[list[str]]:
    kind, name, version = project.name.split("-", 1)[0], *project.name.split("-", 1)[1].rsplit("-", 1)
    if kind != "pypi":
        return
    try:
        about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = {}
    extras = ",".join(about.get("project", {}).get("optional-dependencies", {}))
    yield [f"{name}[{extras}]=={version}" if extras else f"{name}=={version}"]
    yield from (["--group", group] for group in about.get("dependency-groups", {}))
    yield from (
        ["-r", str(file)]
        for file in sorted([*project.glob("*requirements*.txt"), *project.glob("*/*requirements*.txt")])
    )


def fetch_package(kind: str, name: str, version: str) -> Path | None:
    """Fetch and unpack a package of a registry once. Return its folder, or None if it is not to be had."""
    place = PLACE / f"{kind}-{name}-{version}".replace("/", "_")
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=PLACE) as folder:
            if kind == "pypi":
                _fetch_source(name, version, Path(folder))
            else:
                words = ["npm", "pack", "--silent", f"{name}@{version}"]
                subprocess.run(words, cwd=folder, capture_output=True, timeout=600, check=False)
            archives = [*Path(folder).glob("*.tar.gz"), *Path(folder).glob("*.tgz")]
            if not archives:
                return None
            with tarfile.open(archives[0]) as archive:
                archive.extractall(Path(folder) / "unpacked", filter="data")
            (top,) = (Path(folder) / "unpacked").iterdir()
            top.rename(place)
    return place


def _fetch_source(name: str, version: str, folder: Path) -> None:
    """Fetch the archive that the index names. pip would also build the package, which takes longer than all lines."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
    page = f"{index}/{re.sub('[_.]', '-', name)}/"
    with suppress(OSError), urllib.request.urlopen(page, timeout=60) as answer:
        named = re.findall(rf'href="([^"#]*-{re.escape(version)}\.tar\.gz)', answer.read().decode())
        for address in named[:1]:
            with urllib.request.urlopen(urllib.parse.urljoin(page, address), timeout=600) as archive:
                (folder / "source.tar.gz").write_bytes(archive.read())


def list_lines(project: Path) -> list[str]:
    """List the command lines that the project's own files name, without those that need values from elsewhere."""
    found = [*_read_workflows(project), *_read_makefile(project), *_read_tox(project), *_read_nox(project)]
    found += [*_read_scripts(project), *_read_contributing(project)]
    lines = (re.sub(r"\{posargs[^}]*\}", "", line).strip() for line in found)
    return sorted({line for line in lines if line and not re.search(r"\$\{\{|\{[\w:/]+\}|<[\w -]+>", line)})


def _split_script(text: str) -> Iterator[str]:
    """Split a script into its lines, or take it whole if they do not stand alone."""
    lines = [one.strip() for one in text.replace("\\\n", " ").splitlines()]
    lines = [one for one in lines if one and not one.startswith("#")]
    alone = all(
        subprocess.run(["bash", "-n", "-c", one], capture_output=True, check=False).returncode == 0 for one in lines
    )
    yield from lines if alone else [text.strip()]


def _read_workflows(project: Path) -> Iterator[str]:
    for file in sorted([*project.glob(".github/workflows/*.y*ml"), *project.glob(".*.yml")]):
        try:
            document = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
        except (YAMLError, UnicodeDecodeError):
            continue
        for text in _find_values(document, "run"):
            yield from _split_script(text)


def _find_values(tree: object, key: str) -> Iterator[str]:
    if isinstance(tree, dict):
        yield from (value for name, value in tree.items() if name == key and isinstance(value, str))
        tree = list(tree.values())
    for child in tree if isinstance(tree, list) else ():
        yield from _find_values(child, key)


def _read_makefile(project: Path) -> Iterator[str]:
    for file in (*project.glob("Makefile"), *project.glob("makefile"), *project.glob("docs/Makefile")):
        targets = re.findall(r"(?m)^([A-Za-z][\w-]*):(?!=)", file.read_text(encoding="utf-8", errors="replace"))
        folder = "" if file.parent == project else f" -C {file.parent.name}"
        yield from (f"make{folder} {target}" for target in targets)


def _read_tox(project: Path) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    for name in ("tox.ini", "setup.cfg"):
        try:
            parser.read(project / name, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
    for section in parser.sections():
        text = parser[section].get("commands") or "" if "testenv" in section else ""
        yield from (line.strip().lstrip("-! ") for line in text.replace("\\\n", " ").splitlines())


def _read_nox(project: Path) -> Iterator[str]:
    for file in project.glob("noxfile.py"):
        for call in re.findall(r"session\.run\(([^)]*)\)", file.read_text(encoding="utf-8")):
            words = re.findall(r"""["']([^"']+)["']""", call)
            yield " ".join(words)


def _read_scripts(project: Path) -> Iterator[str]:
    for file in project.glob("package.json"):
        yield from (f"npm run {name}" for name in json.loads(file.read_text(encoding="utf-8")).get("scripts", {}))


def _read_contributing(project: Path) -> Iterator[str]:
    for file in sorted(
        [*project.glob("CONTRIBUTING*"), *project.glob(".github/CONTRIBUTING*"), *project.glob("docs/contributing*")]
    ):
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
        blocks += re.findall(r"(?m)(?:^\.\. code.*|::)\n\n((?:[ \t]+.*\n)+)", text)
        for line in (line.strip() for block in blocks for line in block.splitlines()):
            shown = line.removeprefix("$ ").removeprefix("> ")
            if shown and re.match(r"[a-z./]", shown) and (line != shown or re.match(r"(\w|-|\.|/)+ ", f"{shown} ")):
                yield shown


def draw_lines(count: int | None = None) -> list[tuple[Path, str]]:
    """Draw lines of all packages by the seed; the first ones of a longer draw are those of a shorter one."""
    seed, packages = read_packages()
    PLACE.mkdir(parents=True, exist_ok=True)
    lines = []
    with ThreadPoolExecutor(8) as pool:
        projects = [*pool.map(lambda package: fetch_package(*package), packages)]
    for project in projects:
        lines += [(project, line) for line in list_lines(project)] if project is not None else []
    random.Random(seed).shuffle(lines)
    return lines[:count]


class Trial:
    """Copies of a project, in which a line runs outside and, if that succeeds, in the sandbox."""

    def __init__(self, root: Path, project: Path, level: str, tools: Path) -> None:
        self._root, self._project, self._level = root, project, level
        self._path = f"{tools}:/usr/local/bin:/usr/bin:/bin"

    def run(self, line: str) -> tuple[str, str]:
        """Return how the two ended, or "" if the line does not count, and the reason of a difference."""
        code, one, _ = self._run_side("a", "outside", line)
        if code != 0:
            return "", ""
        other, two, said = self._run_side("b", self._level, line)
        if other != code:
            return "exit", said[-MAX_TEXT:]
        if one == two:
            return "alike", ""
        return "files", f"only outside {sorted(one - two)[:6]}, only in the box {sorted(two - one)[:6]}"

    def _run_side(self, name: str, level: str, line: str) -> tuple[int, set[str], str]:
        """Return the exit code, the changed files and what was said."""
        side = Side(self._root / name, "empty", level, path=self._path)
        shutil.copytree(self._project, side.workspace, symlinks=True, dirs_exist_ok=True)
        side.run_outside("git init -q && git add -A && git commit -qm start && git tag 1.0.0")
        places = [place for place in ("src", "lib", ".") if (side.workspace / place).is_dir()]
        side.environment["PYTHONPATH"] = ":".join(str(side.workspace / place) for place in places)
        before = side.describe()
        code, said = side.run(line, SECONDS)
        return code, _list_changes(before, side.describe()), said


def _list_changes(before: dict[str, str], after: dict[str, str]) -> set[str]:
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return {re.sub(r"\d{4,}|[0-9a-f]{8,}", "N", name) for name in changed}


def run_lines(lines: Iterable[tuple[Path, str]], level: str, wanted: int) -> Iterator[dict[str, str]]:
    """Run lines until enough of them count. Yield each that counts."""
    counted = 0
    for project, line in lines:
        tools = fetch_environment(project)
        with make_folder("ollm-world-", Path.home() / ".cache") as root:
            ended, reason = Trial(root, project, level, tools).run(line)
        if ended:
            counted += 1
            yield {"package": project.name, "line": line, "ended": ended, "reason": reason}
        if counted >= wanted:
            return


def main(level: str, wanted: str = "10000", part: str = "0/1") -> int:
    results = []
    number, _, parts = part.partition("/")
    lines = draw_lines()[int(number) :: int(parts)]
    if not lines:
        print("no package could be fetched")
        return 1
    for result in run_lines(lines, level, int(wanted)):
        results.append(result)
        if result["ended"] != "alike":
            print(result["package"], result["line"], result["reason"], sep="\n    ", flush=True)
    alike = sum(result["ended"] == "alike" for result in results)
    print(f"{level}: {len(results)} lines exit 0 outside, {alike} end alike in the box", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
