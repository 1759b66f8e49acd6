"""T5: the shell tool through dispatch, with real commands."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ollm.config.settings import ShellSettings, ToolSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.events import Event, ToolOutput
from ollm.domain.lazy import Lazy
from ollm.domain.messages import ToolCall
from ollm.domain.tools import ToolResult
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import RuleSet
from ollm.runtime.calls.dispatch import CallServices, Dispatch
from ollm.services.background_jobs import BackgroundJobs
from ollm.services.environment_sanitization import EnvironmentSanitizationService
from ollm.system.paths import Boundary
from ollm.system.processes import ProcessHost
from ollm.tools.framework.base import ToolContext, ToolRegistry, make_spec
from ollm.tools.shell import Shell
from tests.covers import covers
from tests.tools.drive import Person


class Bench:
    """A workspace in which shell calls are run."""

    def __init__(self, workspace: Path, jobs: BackgroundJobs) -> None:
        self.workspace = workspace
        self.jobs = jobs
        self.emitted: list[str] = []
        self.environment = dict(os.environ)
        self.settings = ToolSettings()

    async def run(self, **arguments: Any) -> ToolResult:
        """One call through dispatch; raises what kept it from running."""
        boundary = Boundary.around(self.workspace)
        registry = ToolRegistry()
        registry.register(Shell, self.jobs)
        services = CallServices(
            registry=registry,
            policy=PolicyEngine(RuleSet(), boundary),
            context=ToolContext(
                boundary=boundary, lazy_environment=Lazy(lambda: self.environment), settings=self.settings
            ),
            emit=self._hear,
            asker=Person(),
        )
        (record,) = await Dispatch(services).run([ToolCall(id="c1", name="shell", arguments=arguments)], 1)
        if record.error is not None and record.error.type not in ("Timeout", "IdleTimeout"):
            raise ToolFailure(record.error.type, record.error.message)
        assert record.result is not None
        fields = ("llm_content", "return_display", "exit_code")
        return ToolResult(error=record.error, **{name: getattr(record.result, name) for name in fields})

    def _hear(self, event: Event) -> None:
        if isinstance(event, ToolOutput):
            self.emitted.append(event.text)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    host = ProcessHost()
    jobs = BackgroundJobs(host, most=3)
    yield Bench(tmp_path, jobs)
    await jobs.close()
    await host.close()


@pytest.fixture
def mark() -> Iterator[str]:
    text = f"2{uuid.uuid4().int % 10**9}.{os.getpid()}"
    yield text
    assert sleepers(text) == []


def sleepers(mark: str, *besides: str) -> list[int]:
    """The processes that sleep for so long, and those of other programs that speak of it."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or [""]
        wanted = line[0] in ("sleep", *besides) and mark in " ".join(line)
        if wanted and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


async def until_sleeping(mark: str) -> None:
    async with asyncio.timeout(20):
        while not sleepers(mark):
            await asyncio.sleep(0.01)


def failure_kind(error: pytest.ExceptionInfo[ToolFailure]) -> str:
    return error.value.kind


@covers("T5.1")
async def test_output_and_exit_code_come_back(bench: Bench) -> None:
    result = await bench.run(command="echo one; echo two >&2")

    assert (result.llm_content, result.exit_code, result.error) == ("one\ntwo\n", 0, None)


@covers("T5.2", "T9.4", "T10.6")
async def test_output_is_handed_on_as_it_comes(bench: Bench) -> None:
    running = asyncio.create_task(bench.run(command="echo first; read < fifo; echo second"))
    os.mkfifo(bench.workspace / "fifo")
    async with asyncio.timeout(20):
        while "first\n" not in "".join(bench.emitted):
            await asyncio.sleep(0.005)
    assert not running.done()
    await asyncio.to_thread((bench.workspace / "fifo").write_text, "go\n")

    assert (await running).llm_content == "first\nsecond\n"
    assert "".join(bench.emitted) == "first\nsecond\n"


@covers("T5.3", "T12.5")
async def test_a_command_over_its_time_is_ended_with_all_that_came_from_it(bench: Bench, mark: str) -> None:
    line = f"echo begun; (setsid sh -c '(setsid sleep {mark} &); sleep {mark}' &); sleep {mark}"

    result = await bench.run(command=line, timeout=2)

    assert sleepers(mark) == []
    assert result.error is not None
    assert result.error.type == "Timeout"
    assert "2 s" in result.error.message
    assert "begun" in result.llm_content


async def test_the_time_limit_of_the_settings_counts_where_none_is_given(bench: Bench, mark: str) -> None:
    bench.settings = ToolSettings(shell=ShellSettings(timeout=0.3))

    result = await bench.run(command=f"sleep {mark}")

    assert result.error is not None
    assert result.error.type == "Timeout"


@covers("T5.4")
async def test_a_command_that_falls_silent_is_ended(bench: Bench, mark: str) -> None:
    started = time.monotonic()

    result = await bench.run(command=f"for i in 1 2 3; do echo $i; sleep 0.2; done; sleep {mark}", idleTimeout=1.5)

    assert result.error is not None
    assert result.error.type == "IdleTimeout"
    assert result.llm_content.startswith("1\n2\n3\n")
    assert 1.0 < time.monotonic() - started < 10


@covers("T5.6")
async def test_a_failed_command_gives_its_exit_code_and_errors(bench: Bench) -> None:
    result = await bench.run(command="echo broken >&2; exit 3")

    assert result.exit_code == 3
    assert result.llm_content == "broken\n[exit code 3]"
    assert result.error is None


async def test_a_signal_and_an_unknown_program_are_told_as_shells_do(bench: Bench) -> None:
    killed = await bench.run(command="kill -KILL $$")
    unknown = await bench.run(command="no-such-program-here")

    assert killed.exit_code == 137
    assert "SIGKILL" in killed.llm_content
    assert unknown.exit_code == 127


async def test_silence_is_said(bench: Bench) -> None:
    assert (await bench.run(command="true")).llm_content == "[no output]"


@covers("T5.7")
async def test_the_command_runs_in_the_directory_named(bench: Bench) -> None:
    (bench.workspace / "sub").mkdir()

    assert (await bench.run(command="pwd; echo $PWD", cwd="sub")).llm_content == f"{bench.workspace}/sub\n" * 2
    assert (await bench.run(command="pwd")).llm_content == f"{bench.workspace}\n"


@covers("T5.8", "S7.8", "D769", "D770", "D771")
async def test_secrets_do_not_reach_a_command_and_core_variables_do(bench: Bench) -> None:
    whole = {**os.environ, "OPENAI_API_KEY": "sesame", "DB": "postgres://u:sesame@h/x", "LC_ALL": "C", "PLAIN": "kept"}
    bench.environment = EnvironmentSanitizationService().sanitize(whole)

    text = (await bench.run(command="env; cat /proc/$PPID/environ; cat /proc/self/environ")).llm_content

    assert "sesame" not in text
    assert "PLAIN=kept" in text
    assert f"PATH={os.environ['PATH']}" in text
    assert "LC_ALL=C" in text


async def test_standard_input_is_empty(bench: Bench) -> None:
    assert (await bench.run(command="cat; echo done", timeout=10)).llm_content == "done\n"


async def test_a_child_left_behind_does_not_hold_up_the_result_and_goes_with_the_conversation(
    bench: Bench, mark: str
) -> None:
    started = time.monotonic()
    result = await bench.run(command=f"sleep {mark} & echo hi", timeout=30)
    assert time.monotonic() - started < 10
    assert result.llm_content == "hi\n"

    await until_sleeping(mark)
    await bench.jobs.close()

    assert sleepers(mark) == []


@covers("T12.4")
async def test_cancelling_ends_the_whole_tree_at_once(bench: Bench, mark: str) -> None:
    line = f"(setsid sh -c 'trap \"\" TERM; sleep {mark}; sleep {mark}' &); sleep {mark}"
    running = asyncio.create_task(bench.run(command=line))
    await until_sleeping(mark)
    started = time.monotonic()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert time.monotonic() - started < 20
    async with asyncio.timeout(10):
        while sleepers(mark, "sh"):
            await asyncio.sleep(0.01)


async def test_a_flood_of_output_stays_in_bounds_and_keeps_both_ends(bench: Bench) -> None:
    result = await bench.run(command="echo start; head -c 30000000 /dev/zero | tr '\\0' 'x'; echo end")

    assert len(result.llm_content) < 1_100_000
    assert result.llm_content.startswith("start\nxxx")
    assert result.llm_content.endswith("xxxend\n")
    assert "characters" in result.llm_content


async def test_yes_cannot_fill_memory(bench: Bench) -> None:
    process = psutil.Process()
    await bench.run(command="yes | head -c 1000000")
    before = process.memory_info().rss

    result = await bench.run(command="yes", timeout=1)

    assert result.error is not None
    assert process.memory_info().rss - before < 64 * 1024 * 1024


async def test_a_terminal_is_given_on_request(bench: Bench) -> None:
    plain = await bench.run(command="test -t 1 && echo terminal || echo pipe")
    terminal = await bench.run(command="test -t 1 && echo terminal; tty <&1 >/dev/null && stty size <&1", pty=True)

    assert plain.llm_content == "pipe\n"
    assert terminal.llm_content.replace("\r", "") == "terminal\n40 120\n"


@covers("T5.5")
async def test_a_background_command_returns_an_id_at_once(bench: Bench, mark: str) -> None:
    started = time.monotonic()
    result = await bench.run(command=f"echo up; sleep {mark}", background=True)

    assert time.monotonic() - started < 5
    assert "job-1" in result.llm_content
    await until_sleeping(mark)
    read = await bench.run(id="job-1")
    again = await bench.run(id="job-1", action="read")
    stopped = await bench.run(id="job-1", action="stop")
    assert read.llm_content.startswith("up\n")
    assert "running" in read.llm_content
    assert "no new output" in again.llm_content
    assert "stopped" in stopped.llm_content
    assert sleepers(mark) == []


async def test_waiting_for_a_background_command_gives_the_rest_and_the_exit_code(bench: Bench) -> None:
    await bench.run(command="sleep 0.3; echo done; exit 4", background=True)

    result = await bench.run(id="job-1", action="wait", timeout=20)

    assert result.llm_content.startswith("done\n")
    assert result.exit_code == 4
    assert "".join(bench.emitted) == "done\n"
    assert (await bench.run(id="job-1")).exit_code == 4


async def test_waiting_too_long_is_no_failure_and_ends_nothing(bench: Bench, mark: str) -> None:
    await bench.run(command=f"sleep {mark}", background=True)

    result = await bench.run(id="job-1", action="wait", timeout=0.2)

    assert result.error is None
    assert "running" in result.llm_content
    assert sleepers(mark)
    await bench.jobs.close()


async def test_a_background_command_ends_at_the_time_it_was_given(bench: Bench, mark: str) -> None:
    await bench.run(command=f"sleep {mark}", background=True, timeout=0.2)

    assert (await bench.run(id="job-1", action="wait", timeout=20)).exit_code is not None


async def test_an_unknown_id_and_a_second_stop_are_not_found(bench: Bench) -> None:
    await bench.run(command="sleep 30", background=True)
    await bench.run(id="job-1", action="stop")

    for arguments in ({"id": "job-9"}, {"id": "job-1", "action": "stop"}, {"id": "job-1", "action": "wait"}):
        with pytest.raises(ToolFailure) as error:
            await bench.run(**arguments)
        assert failure_kind(error) == "NotFound"


async def test_only_so_many_run_in_the_background(bench: Bench) -> None:
    for _ in range(3):
        await bench.run(command="sleep 30", background=True)

    with pytest.raises(ToolFailure) as error:
        await bench.run(command="sleep 30", background=True)
    assert "job-1, job-2, job-3" in str(error.value)

    await bench.run(id="job-2", action="stop")
    assert "job-4" in (await bench.run(command="true", background=True)).llm_content


async def test_closing_ends_what_runs_in_the_background(bench: Bench, mark: str) -> None:
    for _ in range(2):
        await bench.run(command=f"setsid sleep {mark}", background=True)
    await until_sleeping(mark)

    await bench.jobs.close()

    assert sleepers(mark) == []


async def test_commands_side_by_side_keep_their_output_apart(bench: Bench) -> None:
    results = await asyncio.gather(*(bench.run(command=f"sleep 0.05; echo {number}") for number in range(8)))

    assert [result.llm_content for result in results] == [f"{number}\n" for number in range(8)]


async def test_what_a_person_is_asked_shows_the_whole_command(bench: Bench) -> None:
    call = make_spec(Shell, bench.jobs).parse({"command": "rm -rf \u202etxt", "background": True})

    assert "U+202E" in call.tool.summary()
    assert call.tool.locations()[0].access == "run"
