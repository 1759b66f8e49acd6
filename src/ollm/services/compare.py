"""Your own benchmark: its tasks in `.ollm/tasks.yaml`, the repositories in which models work on them, and the results,
kept as lines of a file and summed up by model."""

from __future__ import annotations

import io
import math
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ollm.config.validation import SettingsReader, read_config_file
from ollm.config.yaml_tree import SourcePosition
from ollm.domain.errors import OllmError, UsageError
from ollm.domain.struct import Data
from ollm.domain.text import format_count, format_seconds
from ollm.store.workspace_place import name_workspace
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.git_commands import GitCommands

TASK_FILE = ".ollm/tasks.yaml"
TEST_NAMES = ("**/test_*", "**/test.py", "**/tests.py", "**/*_test.*", "**/*.test.*", "**/*.spec.*")
TEST_FILES = ("**/tests/**", "**/test/**", "**/__tests__/**", *TEST_NAMES)
KEPT_FILES = (
    *TEST_FILES,
    *("**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml"),
    *("**/tox.ini", "**/setup.cfg", "**/pyproject.toml", "**/noxfile.py"),
    *("**/package.json", "**/Makefile", "**/jest.config.*", "**/vitest.config.*", "**/.git*"),
)
FIGURES = ("seconds", "reading", "writing", "tools", "tokensRead", "tokensWritten", "steps", "failedCalls", "joules")
PYTHON_CHECK = "python -m pytest -q {tests}"
NEWEST = "HEAD"
MAX_COMMITS = 50
MAX_TOLD_LINES = 30
MODULE_SUFFIXES = (".py", ".pyc", ".so")
LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
PATCH = ("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")
LIMIT_PATTERN = r"^[1-9]\d{0,5}[smh]$"


class CompareTask(Data, frozen=True):
    """A task. It starts from the commit `start`, with `files` as they are in the commit `filesFrom`. What the model
    does to files that match `keep` does not count. Without `network` neither the model nor the check has one."""

    start: str = ""
    request: str = ""
    check: str = ""
    files_from: str = ""
    files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    keep: tuple[str, ...] = KEPT_FILES
    limit: Annotated[str, Meta(pattern=LIMIT_PATTERN)] = "10m"
    network: bool = False


def parse_limit(text: str) -> int:
    if not re.fullmatch(LIMIT_PATTERN, text):
        raise UsageError(f"{text!r} is not a time.", action="Write it as 90s, 10m or 2h.")
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def load_tasks(workspace: Path) -> dict[str, CompareTask]:
    """Load the tasks by name. Raises UsageError with the line and key of every mistake."""
    reading, found = SettingsReader(), {}
    entry = read_config_file(SourcePosition(file=str(workspace / TASK_FILE), name=TASK_FILE), reading)
    for name, child in entry.value.items() if entry else ():
        count, found[name] = len(reading.mistakes), reading.read_struct(CompareTask, child, name)
        missing = [key for key in ("start", "request", "check") if not found[name].get(key)]
        if missing and len(reading.mistakes) == count:
            reading.report_mistake(child.place, name, f"has no {' and no '.join(missing)}")
    if reading.mistakes:
        action = "Correct the file; docs/compare.md describes its keys."
        raise UsageError("\n".join(map(str, reading.mistakes)), action=action)
    return msgspec.convert(found, dict[str, CompareTask])


def format_tasks(tasks: Mapping[str, CompareTask]) -> str:
    """Format tasks as they stand in the file."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import LiteralScalarString

    yaml, text = YAML(), io.StringIO()
    yaml.width, yaml.default_flow_style = 110, None
    fields = ((name, msgspec.to_builtins(task).items()) for name, task in tasks.items())
    folded = {
        name: {
            key: LiteralScalarString(one) if isinstance(one, str) and "\n" in one else one for key, one in values if one
        }
        for name, values in fields
    }
    yaml.dump(folded, text)
    return text.getvalue()


def add_tasks(workspace: Path, tasks: Mapping[str, CompareTask]) -> None:
    """Add tasks at the end of the file, which is made if there is none."""
    if twice := load_tasks(workspace).keys() & tasks.keys():
        raise UsageError(f"There is a task {min(twice)} already.", action=f"Choose another name, or edit {TASK_FILE}.")
    file = workspace / TASK_FILE
    file.parent.mkdir(exist_ok=True)
    before = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    replace_file(file, f"{before}\n\n{format_tasks(tasks)}".lstrip().encode(), mode=0o644)


class TaskRepository(GitCommands):
    """Makes repositories from the one at `top`, of which the workspace is the folder `prefix`. They have the start of
    a task and its history, and nothing that came later. Blocks: call it in a thread."""

    def __init__(self, top: Path, prefix: str, environment: Mapping[str, str]) -> None:
        super().__init__(top, environment)
        self.top, self.prefix = top, prefix

    def resolve(self, commit: str) -> str:
        """Return the whole id of a commit. Raises UsageError if there is none."""
        if found := self._find_object(self.top, f"{commit}^{{commit}}"):
            return found
        if commit == NEWEST:
            raise UsageError(f"{self.top} has no commit yet.", action="Commit your work first.")
        raise UsageError(f"{self.top} has no commit {commit}.", action="See `git log --oneline`.")

    def require_files(self, name: str, task: CompareTask) -> None:
        """Raise UsageError unless each of `files` is in the commit `filesFrom`, or at least at the start."""
        if task.files and not task.files_from:
            raise UsageError(f"{name}: has `files`, and no `filesFrom`.", action=f"Name their commit in {TASK_FILE}.")
        commits = [self.resolve(commit) for commit in (task.files_from, task.start) if commit]
        for file in task.files:
            if not any(self._find_object(self.top / self.prefix, f"{commit}:./{file}") for commit in commits):
                action = f"Correct `files` in {TASK_FILE}."
                raise UsageError(f"{name}: the commit {task.files_from} has no file {file}.", action=action)

    def list_uncommitted(self) -> list[str]:
        """List the files of the workspace that differ from the last commit, new ones included."""
        words = ("status", "--porcelain", "-z", "--no-renames", "--", f"./{self.prefix}", ":(exclude).ollm")
        return [line[3:] for line in self._list_names(self.top, *words)]

    def create(self, task: CompareTask, place: Path) -> None:
        """Make the repository of a task in a folder."""
        start = self.resolve(task.start)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, mode=0o700)
        self._git(place, "init", "--quiet", "--template=", "--initial-branch=main")
        words = ("--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", "--no-auto-maintenance")
        source, variables = f"{start}:refs/heads/main", {"GIT_ALLOW_PROTOCOL": "file"}
        self._git(place, "fetch", *words, str(self.top), source, variables=variables)
        self._git(place, "reset", "--quiet", "--hard")
        shutil.rmtree(place / ".git/logs", ignore_errors=True)
        (place / self.prefix).mkdir(parents=True, exist_ok=True)
        diff = (*PATCH, start, self.resolve(task.files_from or start), "--", *task.files)
        if task.files and (patch := self._run(self.top / self.prefix, *diff, variables=LITERAL)):
            self._run(place, "apply", "--index", "--whitespace=nowarn", stdin=patch)
            self._git(place, "commit", "--quiet", "-m", "Add tests", identity=True)

    def read_commits(self, commits: str, task: CompareTask) -> dict[str, CompareTask]:
        """Make a task by the pattern of another of each commit that changes tests and source, the newest first."""
        self.resolve(NEWEST)
        folder, found = f"./{self.prefix}", dict[str, CompareTask]()
        words = ("rev-list", "--min-parents=1", "--max-parents=1", *[f"-n{MAX_COMMITS}"] * (commits == NEWEST))
        for commit in self._git(self.top, *words, "--end-of-options", commits, "--", folder).split():
            files = self._list_changed(commit, task.keep)
            tests, named = (self._list_changed(commit, one, "--diff-filter=d") for one in (TEST_FILES, TEST_NAMES))
            named = [name for name in named or tests if task.check or name.endswith(".py")]
            if not named or not set(self._list_changed(commit, ("**",))) - {*files, *tests}:
                continue
            request = self._git(self.top, "show", "-s", "--no-show-signature", "--format=%B", commit).strip()
            title = re.sub(r"[\W_]+", "-", request.partition("\n")[0].lower())[:40].strip("-")
            found[f"{title}-{commit[:7]}"] = replace(
                task,
                start=self.resolve(f"{commit}^"),
                request=request,
                check=(task.check or PYTHON_CHECK).replace("{tests}", shlex.join(named)),
                files_from=commit,
                files=(*dict.fromkeys((*files, *tests)),),
            )
        return found

    def _list_changed(self, commit: str, patterns: Iterable[str], *more: str) -> list[str]:
        """List the files of the workspace that a commit adds, changes or removes."""
        words = ("diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", "--relative", *more, commit)
        globs = (f":(glob){pattern}" for pattern in patterns)
        return self._list_names(self.top / self.prefix, *words, "--", *globs)

    def take_changes(self, task: CompareTask, worked: Path, fresh: Path) -> tuple[str, ...]:
        """Bring the changes of one repository into another of the same task, without those to kept files, whose names
        are returned. No setting of the repository that a model worked in counts."""
        before, after = (self._write_tree(folder, fresh) for folder in (fresh, worked))
        prefix = f":(top,exclude,glob){self.prefix}/" if self.prefix else ":(top,exclude,glob)"
        own, *kept = (f"{prefix}{name}" for name in (".ollm/**", *task.keep))
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after, "--", ":(top)", own)
        everything, wanted = (self._list_names(fresh, *words, *more) for more in ((), kept))
        old, new = ({*self._list_names(fresh, "ls-tree", "-r", "-z", "--name-only", one)} for one in (before, after))
        staying = old.difference(wanted)
        folders = {str(folder) for name in staying for folder in PurePosixPath(name).parents}
        wanted = [
            one for one in wanted if one not in folders and staying.isdisjoint(map(str, PurePosixPath(one).parents))
        ]
        for name in wanted:
            with suppress(IsADirectoryError, PermissionError):  # Such a name is a repository in the repository.
                (fresh / name).unlink(missing_ok=True)
        if there := "\0".join(name for name in wanted if name in new):
            options = ("--pathspec-from-file=-", "--pathspec-file-nul")
            self._run(fresh, "checkout", after, *options, stdin=os.fsencode(there), variables=LITERAL)
        return tuple(name for name in everything if name not in wanted)

    def _write_tree(self, worked: Path, fresh: Path) -> str:
        """Write the files of a folder, by the rules of a fresh repository, into its object store."""
        index = shutil.copy2(fresh / ".git/index", fresh / ".git/taken")
        variables = {"GIT_DIR": f"{fresh}/.git", "GIT_WORK_TREE": str(worked), "GIT_INDEX_FILE": str(index)}
        self._git(worked, "add", "--all", "--ignore-errors", variables=variables, check=False)
        if tree := self._git(worked, "write-tree", variables=variables, check=False).strip():
            return tree
        raise OllmError(f"git cannot read the files in {worked}.")


def find_new_modules(check: str, worked: Path, fresh: Path) -> dict[str, set[str]]:
    """Find the modules that a model made where Python looks first: in the folder of the check, and in PYTHONPATH. They
    are given by name, with patterns of their files."""
    found = dict[str, set[str]]()
    named = re.search(r"PYTHONPATH=([\w./:-]+)", check)
    for folder in {".", *(named[1] if named else "").split(":")}:
        place = Path(os.path.normpath(folder))
        if place.is_absolute() or ".." in place.parts or not (worked / place).is_dir():
            continue
        for file in (worked / place).iterdir():
            name = file.name
            if os.path.lexists(fresh / place / name):
                continue
            own = "__init__.*" if file.is_dir() and not file.is_symlink() else ""
            stem, dot, _ = name.partition(".")
            if stem.isidentifier() and (own or not dot or name.endswith(MODULE_SUFFIXES)):
                found.setdefault(stem, set()).add(str(place / name / own))
    return found


class ComparePlan(TypedDict):
    """A comparison as the file holds it. `about` says when it was begun, on what, and with which version."""

    tasks: dict[str, CompareTask]
    models: Sequence[str]
    times: int
    settings: dict[str, str]
    limit: str
    network: bool
    about: dict[str, str]


class CompareRun(TypedDict):
    """The outcome of one task with one model. `server` has what is known of the server and the model; `dropped` are
    changed files that did not count."""

    model: str
    number: int
    task: str
    sessionId: str
    passed: bool
    reason: str
    figures: dict[str, float]
    server: dict[str, str]
    dropped: Sequence[str]


Comparison = tuple[ComparePlan, list[CompareRun]]
Place = tuple[str, int, str]


def find_results(home: Path, workspace: Path) -> Path:
    return home / "compare" / f"{name_workspace(workspace)}.jsonl"


def load_comparisons(file: Path) -> list[Comparison]:
    """Load all comparisons with their runs, the newest last. A line that was cut off is left out."""
    found: list[Comparison] = []
    for line in file.read_bytes().splitlines() if file.exists() else ():
        with suppress(msgspec.MsgspecError, IndexError, KeyError):
            if "models" in msgspec.json.decode(line):
                found.append((msgspec.json.decode(line, type=ComparePlan), []))
            else:
                found[-1][1].append(msgspec.json.decode(line, type=CompareRun))
    return found


def _find_newest(file: Path) -> list[Comparison]:
    return [one for one in load_comparisons(file) if one[1]][-1:]


def load_newest(file: Path) -> Comparison:
    for comparison in _find_newest(file):
        return comparison
    raise UsageError("No comparison yet.", action="Run `ollm compare run --models A,B`.")


def load_all_newest(home: Path) -> Iterator[Comparison]:
    """Load the newest comparison of each workspace, the newest of all first."""
    for file in sorted((home / "compare").glob("*.jsonl"), key=lambda one: -one.stat().st_mtime):
        yield from _find_newest(file)


def describe_results(home: Path, model: str) -> Iterator[str]:
    """Describe how a model did in the newest comparison of each workspace."""
    for comparison in load_all_newest(home):
        about = comparison[0]["about"]
        for one in summarize(comparison)["models"]:
            if one["tried"] and one["server"].get("model") == model:
                place = f"{about.get('project', 'a project')}, {about['started'][:10]}"
                yield f"passed {one['passed']} of {one['tried']}, {format_seconds(_get_seconds(one))} a run ({place})"


def find_new_models(file: Path, models: Iterable[str]) -> dict[str, list[str]]:
    """Find those models that the newest comparison of a workspace does not have, and those that it has."""
    for plan, runs in load_comparisons(file)[-1:]:
        known = {*plan["models"], *(run["server"].get("model", "") for run in runs)}
        return {"new": sorted({*models} - known), "compared": [*plan["models"]]}
    return {"new": [], "compared": []}


def add_result(file: Path, entry: ComparePlan | CompareRun) -> None:
    make_private_directory(file.parent)
    with file.open("ab") as stream:
        stream.write(b"\n" + msgspec.json.encode(entry))


def list_runs(plan: ComparePlan) -> list[Place]:
    """List model, number and task of each run, the runs of one model together: a server swaps models slowly."""
    numbers = range(1, plan["times"] + 1)
    return [(model, number, task) for model in plan["models"] for number in numbers for task in plan["tasks"]]


def begin_comparison(file: Path, plan: ComparePlan) -> list[Place]:
    """Return the runs that are done, if the last comparison is this one and was not finished; else begin anew."""
    for before, runs in load_comparisons(file)[-1:]:
        if {**before, "about": {}} == {**plan, "about": {}} and len(runs) < len(list_runs(plan)):
            return [(run["model"], run["number"], run["task"]) for run in runs]
    add_result(file, plan)
    return []


def summarize(comparison: Comparison) -> dict[str, Any]:
    """Sum up a comparison, as JSON has it. `spread` is how far the passed runs of a model may differ by chance alone;
    figures are means."""
    plan, runs = comparison
    models = [_summarize_model(model, [run for run in runs if run["model"] == model]) for model in plan["models"]]
    differences = [
        {
            "models": (one["model"], other["model"]),
            "more": one["passed"] - other["passed"],
            "beyondChance": _differ(one, other),
        }
        for one, other in combinations(models, 2)
        if one["tried"] == other["tried"] > 0
    ]
    return {"plan": plan, "models": models, "differences": differences, "runs": runs}


def _differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(abs(one["passed"] - other["passed"]) > 2 * math.hypot(one["spread"], other["spread"]))


def choose_best(comparison: Comparison) -> dict[str, dict[str, str]]:
    """Choose a model for each role by a finished comparison, with the reason. A role without one is main's work."""
    found, left = summarize(comparison), count_missing(comparison)
    most = max(found["models"], key=lambda one: (one["passed"], -one["figures"].get("seconds", 0)))
    if left or not most["passed"]:
        problem = f"The comparison misses {format_count(left, 'run')}." if left else "No model passed a task."
        raise UsageError(problem, action="Run the same `ollm compare run` again." if left else "Try other models.")
    able = [one for one in found["models"] if 2 * one["passed"] >= most["passed"]]
    main = min((one for one in able if not _differ(one, most)), key=_get_seconds)
    small, tasks = min(able, key=_get_seconds), min(able, key=_count_seconds_per_pass)
    told = f"; {most['model']} passed {most['passed']}, which chance explains, and is slower"
    reasons = {
        "main": (main, f"passed {main['passed']} of {main['tried']}{'' if main is most else told}"),
        "tasks": (tasks, f"needs the least time for a passed run: {format_seconds(_count_seconds_per_pass(tasks))}"),
        "small": (small, f"is the fastest that passed half as many: {format_seconds(_get_seconds(small))} a run"),
    }
    chosen = {role: (one, reason) for role, (one, reason) in reasons.items() if role == "main" or one is not main}
    return {role: {"model": one["model"], "reason": reason} for role, (one, reason) in chosen.items()}


def _get_seconds(one: dict[str, Any]) -> float:
    return float(one["figures"]["seconds"])


def _count_seconds_per_pass(one: dict[str, Any]) -> float:
    return _get_seconds(one) * float(one["tried"] / one["passed"])


def count_missing(comparison: Comparison) -> int:
    return len(list_runs(comparison[0])) - len(comparison[1])


def describe_difference(found: dict[str, Any]) -> str:
    one, other = found["models"] if found["more"] >= 0 else found["models"][::-1]
    if found["beyondChance"]:
        return f"{one} passed {abs(found['more'])} more than {other}."
    return f"No difference between {one} and {other}: it is within the spread."


def _summarize_model(model: str, runs: Sequence[CompareRun]) -> dict[str, Any]:
    passed, tried = sum(run["passed"] for run in runs), len(runs)
    rounds = [sum(run["passed"] for run in runs if run["number"] == n) for n in {run["number"] for run in runs}]
    known = {name: [run["figures"][name] for run in runs if name in run["figures"]] for name in FIGURES}
    return {
        "model": model,
        "passed": passed,
        "tried": tried,
        "rounds": (min(rounds, default=0), max(rounds, default=0)),
        "spread": round(math.sqrt(tried * (passed + 2) * (tried - passed + 2)) / (tried + 4), 2),
        "figures": {name: round(fmean(values), 1) for name, values in known.items() if values},
        "server": runs[-1]["server"] if runs else {},
    }


def estimate_seconds(models: Iterable[str], comparisons: Iterable[Comparison]) -> float | None:
    """Estimate how long runs of these models take, by earlier runs of the same model, or of all. None without any."""
    found = [(run["model"], run["figures"]["seconds"]) for _, runs in comparisons for run in runs]
    means = {name: fmean(seconds for model, seconds in found if model == name) for name, _ in found}
    return sum(means.get(model, fmean(means.values())) for model in models) if means else None
