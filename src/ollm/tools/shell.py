"""shell (T5): run a command, or manage one in the background."""

from __future__ import annotations

import asyncio
import math
import os
import re
import signal
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ollm.domain.clock import monotonic
from ollm.domain.errors import StartError, ToolFailure
from ollm.domain.lazy import compile_late
from ollm.domain.text import format_names
from ollm.domain.tools import ConfirmationDetails, ErrorInfo, Location, Risk, ToolResult, Verdict
from ollm.services.background_jobs import BackgroundJobs, Ending, Job
from ollm.system.path_names import OWN_PLACES, is_inside, read_steering
from ollm.system.processes import ProcessCommand
from ollm.system.sandbox.box import WHOLE_LEVELS, Box, Kind, find_access, list_places
from ollm.system.sandbox.git_line import GitLine
from ollm.system.terminal_text import render_command
from ollm.tools.framework.base import SmallForm, Text, Tool, ToolContext
from ollm.tools.framework.output import append_notes
from ollm.tools.git_lines import LinePart, LineStep, LineSteps, split_git_line

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash")
CANCEL_GRACE_SECONDS = 0.02
MAX_COMMAND_BYTES = 120_000
MAX_STEERING_NAMES = 8


class Shell(Tool[BackgroundJobs], frozen=True):
    """Run a bash command and get its output and exit code."""

    name: ClassVar = "shell"
    category: ClassVar = "run"
    risk: ClassVar = Risk.HIGH
    keep: ClassVar = "ends"
    aliases: ClassVar = {
        "cmd": "command",
        "script": "command",
        "workdir": "cwd",
        "directory": "cwd",
        "dir": "cwd",
        "jobId": "id",
        "job_id": "id",
    }
    priority: ClassVar = {"code": 4, "debug": 2}
    small: ClassVar = SmallForm(
        description="Run a bash command.",
        schema={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    )

    exclusive: ClassVar = ("command", "id")

    command: Text | None = None
    cwd: Text | None = None
    timeout: Annotated[Seconds | None, Meta(description="Seconds.")] = None
    idle_timeout: Annotated[Seconds | None, Meta(description="Seconds without output.")] = None
    background: Annotated[bool, Meta(description="Returns an id.")] = False
    pty: Annotated[bool, Meta(description="Give it a terminal.")] = False
    id: Annotated[Text | None, Meta(description="Id of a background command.")] = None
    action: Annotated[Literal["read", "wait", "stop"] | None, Meta(description="What to do with id.")] = None
    outside: Annotated[bool, Meta(description="Run outside the sandbox; the user is asked.")] = False
    why: Annotated[Text | None, Meta(description="Why it must run outside.")] = None

    def __post_init__(self) -> None:
        command, limits = self.command, (self.timeout or 1, self.idle_timeout or 1)
        empty = command is not None and ("\0" in command or not command.strip())
        size = len((command or "").encode("utf-8", "replace"))
        faults = {
            "give either `command` or the `id` of a background command": (command is None) == (self.id is None),
            "`action` goes with the `id` of a background command": self.action is not None and self.id is None,
            "`command` is empty or contains a NUL character": empty,
            f"`command` is longer than {MAX_COMMAND_BYTES:,} bytes; write a script and run that": size
            > MAX_COMMAND_BYTES,
            "`timeout` and `idleTimeout` are numbers of seconds": any(map(math.isnan, limits)),
        }
        if found := next((fault for fault, holds in faults.items() if holds), ""):
            raise ValueError(found)

    def summary(self) -> str:
        if self.id is not None:
            return f"{(self.action or 'read').capitalize()} background command {self.id}"
        return f"Run {render_command(self.command or '')}" + (" in the background" if self.background else "")

    def locations(self) -> list[Location]:
        return [] if self.command is None else [Location(target=self.cwd or ".", access="run")]

    def confirmation(self, verdict: Verdict) -> ConfirmationDetails | None:
        details = super().confirmation(verdict)
        return details and msgspec.structs.replace(details, command=render_command(self.command or ""))

    async def run(self, context: ToolContext, needs: BackgroundJobs) -> ToolResult:
        if self.id is not None:
            return await self._manage_job(needs, context)
        # No sandboxed command may change the files that one outside uses.
        leaves = context.sandbox is not None and (self.outside or context.outside)
        if leaves and (running := await needs.clear_sandboxes()):
            raise ToolFailure(
                "Denied",
                f"Not run: {', '.join(running)} in the sandbox could change the files that a command outside uses. "
                f'Stop it first, with shell {{"id": "{running[0]}", "action": "stop"}}.',
            )
        if self.background:
            step = LineStep(self.command or "", self.cwd or ".")
            return self._report_started(await self._start(step, None, context, needs))
        return await self._run_steps(context, needs)

    def _split(self, context: ToolContext) -> Sequence[LinePart]:
        """Return the parts of a line with plain git commands that change the repository, or else the whole line."""
        command, sandbox = self.command or "", context.sandbox
        alone = self.pty or self.outside or context.outside or context.unasked
        splits = not alone and sandbox is not None and sandbox.level != "none"
        return (split_git_line(command) if splits else ()) or [LinePart("work", command)]

    async def _run_steps(self, context: ToolContext, needs: BackgroundJobs) -> ToolResult:
        place, sandbox = str(context.boundary.check(self.cwd or ".", "run")), context.sandbox
        steps = LineSteps(self._split(context), place, sandbox)
        output, notes, job = "", list[str](), None
        settings = context.settings.shell
        limit, idle = self.timeout or settings.timeout, self.idle_timeout or settings.idle_timeout or None
        deadline = 0.0
        for step in steps:
            output, steps.said = output + steps.said, ""
            line = GitLine(step.repository, step.verbs, sandbox.remotes.note) if step.repository and sandbox else None
            job = await self._start(step, line, context, needs)
            deadline = deadline or job.started + limit  # The time that the first start takes does not count.
            try:
                left = max(0.01, deadline - monotonic())
                ending, said = await self._wait_for_job(job, (left, idle), needs, context)
            finally:
                if line is not None:
                    await job.process.end(0)
                    notes += await asyncio.to_thread(line.finish)
            notes += _name_steering(job)
            output += said
            if ending != "exited":
                return _report_timeout(output, job, ending, limit if ending == "timeout" else idle, notes)
            steps.status = job.exit_code or 0
        notes += [f"Git could not change the repository: {steps.refusal}."] if steps.refusal else []
        return _report_finished(output + steps.said, job, notes, code=steps.status)

    async def _start(self, step: LineStep, line: GitLine | None, context: ToolContext, needs: BackgroundJobs) -> Job:
        async def start() -> Job:
            command = self._build_command(step, line, context)
            with context.boundary.open_directory(step.folder, "run") as directory:
                launch = needs.start_background if self.background else needs.start
                return await launch(command, self.command or "", directory)

        sandbox, steering = context.sandbox, None
        if line is None and not context.unasked and sandbox is not None:
            steering = read_steering(sandbox.workspace)
        try:
            job = await (start() if sandbox is None else sandbox.start(start))
        except StartError as error:
            raise self._make_start_failure(error) from error
        if sandbox is not None and job.command.box is not None:
            sandbox.attach(job.process)
            job.steering = steering
        return job

    def _make_box(self, line: GitLine | None, context: ToolContext) -> Box | None:
        """Make the box: the reading one for an unconfirmed command, or None for a command outside the sandbox."""
        if context.sandbox is None or self.outside or context.outside:
            return None
        if refusal := context.sandbox.refusal:
            raise ToolFailure("Denied", f"Not run: {refusal}.")
        kind: Kind = "reading" if context.unasked else "working"
        return context.sandbox.make_box(kind, approved=context.approved, line=line)

    def _build_command(self, step: LineStep, line: GitLine | None, context: ToolContext) -> ProcessCommand:
        place, box = context.boundary.check(step.folder, "run"), self._make_box(line, context)
        if not place.is_dir():
            kind, text = (
                ("ValidationError", "is not a directory") if place.exists() else ("FileNotFound", "does not exist")
            )
            raise ToolFailure(kind, f"The working directory {self.cwd or place} {text}.")
        environment = {**context.environment, "PWD": str(place)}
        if self.pty:
            environment |= {"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat"}
        if context.sandbox is not None:
            programs = environment.get("PATH", os.defpath)
            environment |= context.sandbox.make_environment(box, unasked=context.unasked, programs=programs)
        script, environment = (step.script, environment) if line is None else line.wrap(step.script, environment)
        bash = next((path for path in SHELLS if os.access(path, os.X_OK)), "/bin/sh")
        return ProcessCommand(
            argv=(bash, "-c", script),
            cwd=place,
            environment=environment,
            terminal=self.pty,
            box=box,
            level="none" if context.sandbox is None or box is None else context.sandbox.level,
        )

    def _report_started(self, job: Job) -> ToolResult:
        if self.timeout is not None:
            job.end_after(self.timeout)
        process = "" if job.command.level in WHOLE_LEVELS else f" (process {job.process.pid})"
        text = f'Started as {job.id}{process}. Read its output with shell {{"id": "{job.id}"}}.'
        return ToolResult(llm_content=text, return_display=f"{job.id}: {self.command}")

    async def _wait_for_job(
        self, job: Job, limits: tuple[float, float | None], jobs: BackgroundJobs, context: ToolContext
    ) -> tuple[Ending, str]:
        """Wait for a foreground command and return its output. One that takes too long is ended."""
        try:
            ending = await job.wait(*limits, context.emit)
        except BaseException:
            await job.cancel(CANCEL_GRACE_SECONDS)
            raise
        if ending != "exited":
            await job.end()
        output = job.take_output()
        if ending == "exited":
            jobs.release_job(job)
        return ending, output

    async def _manage_job(self, jobs: BackgroundJobs, context: ToolContext) -> ToolResult:
        assert self.id is not None
        if self.action == "stop":
            job = await jobs.stop(self.id)
            return _report_finished(job.take_output(), job, note=f"{self.id} was stopped")
        job = jobs.get(self.id)
        if self.action == "wait":
            await job.wait(self.timeout or context.settings.shell.timeout, self.idle_timeout, context.emit)
        if job.exit_code is not None:
            await job.collect_output()
            return _report_finished(job.take_output(), job, note=f"{self.id} has ended")
        output = job.take_output()
        status = f"{self.id} is running for {job.seconds:.1f} s{'' if output else '; no new output'}"
        text = append_notes(output, [status])
        return ToolResult(llm_content=text, return_display=text)

    def _make_start_failure(self, error: StartError) -> ToolFailure:
        if error.where == "cwd":
            return ToolFailure("FileNotFound", f"The working directory {self.cwd or '.'} cannot be entered: {error}.")
        way = "; ask for it with outside: true, or set sandbox.mode" if error.where == "sandbox" else ""
        return ToolFailure("PermissionDenied", f"The command could not be started: {error}{way}.")


def _report_finished(
    output: str, job: Job | None, notes: Sequence[str] = (), *, code: int | None = None, note: str = ""
) -> ToolResult:
    """Report the end of a command, or of the last step of a line. Without a job, only `cd` was tried."""
    code = job.exit_code if code is None and job is not None else code
    words = [word for word in (note, "" if output else "no output", _describe_exit_code(code)) if word]
    hint = "" if job is None else explain_box_failure(job.command.box, job.process.denied, output, code)
    text = append_notes(output, ["; ".join(words), hint, *notes, *([] if job is None else _name_steering(job))])
    return ToolResult(llm_content=text, return_display=text, exit_code=code)


def _name_steering(job: Job) -> list[str]:
    """Name the files that steer editors, agents or CI and that changed while a command ran, once."""
    before, job.steering = job.steering, None
    if before is None or job.command.box is None:
        return []
    after = read_steering(job.command.box.workspace)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if not changed:
        return []
    return [f"Changed while it ran, and steers editors, agents or CI: {format_names(changed, MAX_STEERING_NAMES)}."]


def _report_timeout(
    output: str, job: Job, ending: Ending, limit: float | None, notes: Sequence[str] = ()
) -> ToolResult:
    kind = "Timeout" if ending == "timeout" else "IdleTimeout"
    what = "did not finish in" if ending == "timeout" else "printed nothing for"
    message = f"The command {what} {limit:g} s and was killed after {job.seconds:.1f} s, with all its child processes."
    text = append_notes(output, [message, *notes])
    return ToolResult(llm_content=text, return_display=text, error=ErrorInfo(type=kind, message=message))


def _describe_exit_code(code: int | None) -> str:
    if not code:
        return ""
    if code > 128 and code - 128 in set(signal.Signals):
        return f"exit code {code}, {signal.Signals(code - 128).name}"
    return f"exit code {code}"


WAY_OUT = "If it needs more, call shell with outside: true and say why; the user is asked."
NO_KEYS = compile_late(
    r"Permission denied \(publickey|Host key verification failed|could not read Username|Authentication failed|"
    r"ENEEDAUTH|401 Unauthorized|gpg failed to sign"
)
NO_NETWORK = compile_late(
    r"Could not resolve host|Network is unreachable|Temporary failure in name resolution|Name or service not known|"
    r"EAI_AGAIN|ENETUNREACH|getaddrinfo|socket: (?:Permission denied|Operation not permitted)|Failed to connect|"
    r"NewConnectionError|PermissionError: \[Errno 13\] Permission denied$|No route to host",
    re.MULTILINE,
)
READ_ONLY = compile_late(
    r"Read-only file system|EROFS|Device or resource busy|EBUSY|cross-device link|EXDEV|unable to create directory for"
)
WORDS = compile_late(r"[^\s'\"`:;,()<>|\u2018\u2019]+")
DENIED = compile_late(r"Permission denied|EACCES", re.IGNORECASE)
PATHS = compile_late(r"(?:~|\.\.|(?<![\w.~-]))/[^\s'\"`:;,()<>|]+")
GIT_IS_READ_ONLY = (
    "The repository is read-only for this command. Git that changes it runs as plain `git VERB …` commands, alone or "
    "joined by && or ;, not in scripts or loops. Write it so."
)
MAX_OUTPUT_CHARS = 20_000
MAX_NAMES = 3


def explain_box_failure(box: Box | None, denied: Sequence[str], output: str, code: int | None) -> str:  # noqa: PLR0911
    """Explain the sandbox's part in the failure, or return "" if it had none."""
    if box is None:
        return ""
    if denied:
        return f"The sandbox blocked access to {_list_paths(box, denied)}. {WAY_OUT}"
    said = output[-MAX_OUTPUT_CHARS:]
    held = _explain_protected(box, said)
    if not code:
        return held and f"{held} The command went on without that change. {WAY_OUT}"
    if NO_KEYS.search(said):
        return f"Keys and credentials are hidden in the sandbox. {WAY_OUT}"
    if box.network == "none" and NO_NETWORK.search(said):
        return f"This ran in the sandbox without a network. {WAY_OUT}"
    if hint := held or _explain_hidden(box, said) or _explain_read_only(box, said):
        return f"{hint} {WAY_OUT}"
    return ""


def _explain_hidden(box: Box, output: str) -> str:
    """Name the paths in the output that the box leaves out of the home: those that exist, else those in a folder that
    does."""
    places = list_places(box)
    named = [os.path.realpath(path) for path in _list_named_paths(box, output) if path.startswith(f"{box.home}/")]
    found = [(path, *find_access(path, places)) for path in named if path.startswith(f"{box.home}/")]
    hidden = [path for path, place, access in found if access == "empty" and place not in (path, *box.hidden)]
    if there := list(filter(os.path.lexists, hidden)):
        cure = "the user can show it to all commands with sandbox.readable, or let them write it with sandbox.writable"
        return f"{_list_paths(box, there)} exists but is not visible in the sandbox; {cure}."
    above = {path: os.path.dirname(path) for path in hidden}  # noqa: PTH120
    if missing := [path for path, folder in above.items() if folder != box.home and os.path.isdir(folder)]:  # noqa: PTH112
        cure = "the user can create it and add it to sandbox.writable"
        return f"{_list_paths(box, missing)} does not exist, and cannot be created in the sandbox; {cure}."
    return ""


def _list_named_paths(box: Box, output: str) -> list[str]:
    """List the paths in the output: absolute, from the home, or up from the workspace."""
    found = (path.replace("~", box.home, 1) if path.startswith("~") else path for path in PATHS.findall(output))
    return list(dict.fromkeys(os.path.normpath(os.path.join(box.workspace, path.rstrip("."))) for path in found))  # noqa: PTH118


def _names_unwritable_path(box: Box, output: str) -> bool:
    """Return True if the output names a path that is writable for the user but not for the box. Without mounts the
    kernel reports a lack of permission."""
    if not box.scratch or box.wrapper:
        return False
    writable = (*box.list_writable(), box.scratch)
    outside = [path for path in _list_named_paths(box, output) if not any(is_inside(path, one) for one in writable)]
    return any(os.access(path if os.path.lexists(path) else os.path.dirname(path), os.W_OK) for path in outside)  # noqa: PTH120


def _explain_read_only(box: Box, output: str) -> str:
    if not READ_ONLY.search(output) and not (DENIED.search(output) and _names_unwritable_path(box, output)):
        return ""
    if box.kind == "reading":
        return "In the sandbox everything is read-only."
    temporary = "$TMPDIR" if box.scratch and not box.wrapper else "/tmp"  # noqa: S108 - only named
    return f"In the sandbox only the workspace, {temporary} and sandbox.writable can be written."


def _explain_protected(box: Box, output: str) -> str:
    """Explain which protected path, or one in a folder that was to be moved or removed, a failure was about."""
    words = {word for line in output.splitlines() if READ_ONLY.search(line) for word in WORDS.findall(line)}
    said = {word.removeprefix(f"{box.workspace}/").strip("/") for word in words}
    full = [os.path.join(box.workspace, word) for word in words]  # noqa: PTH118
    inside = [path for path in box.protected if any(is_inside(one, path) for one in full)]
    held = inside or [
        path for path in box.protected if any(f"/{name}/" in f"{path}/" for name in said if name.strip("."))
    ]
    if own := [path for path in held if path in OWN_PLACES]:
        cure = "install it outside the project (pipx or uv tool), or the user can add this to sandbox.writable"
        return f"ollm itself runs from {_list_paths(box, own[:1])}, which is read-only in the sandbox: {cure}."
    if any(".git" in path.split("/") for path in held):
        return GIT_IS_READ_ONLY
    return f"{_list_paths(box, held)} cannot be changed in the sandbox." if held else ""


def _list_paths(box: Box, paths: Sequence[str]) -> str:
    names = [os.path.relpath(path, box.workspace) if is_inside(path, box.workspace) else path for path in paths]
    return format_names(names, MAX_NAMES).replace(f"{box.home}/", "~/")
