"""`!command`: run as the person, its output kept for an attachment."""

import asyncio
import io
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from ollm.cli.screen.own_command import MAX_OUTPUT_BYTES, run_own_command


def watch_output(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
    return out


async def test_it_runs_in_the_workspace_and_what_it_prints_is_shown_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = watch_output(monkeypatch)
    code, kept = await run_own_command("pwd; echo wrong >&2; exit 3", tmp_path, nullcontext())

    assert code == 3
    assert (kept.name, kept.text) == ("$ pwd; echo wrong >&2; exit 3", f"{tmp_path}\nwrong\n")
    assert printed.getvalue().decode() == kept.text


async def test_success_is_code_0_and_bytes_that_are_no_text_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = watch_output(monkeypatch)
    code, kept = await run_own_command(r"printf '\377ok'", tmp_path, nullcontext())

    assert (code, kept.text) == (0, "\ufffdok")
    assert printed.getvalue() == b"\xffok"


async def test_only_the_end_of_much_output_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = watch_output(monkeypatch)
    _, kept = await run_own_command("head -c 300000 /dev/zero | tr '\\0' x; printf end", tmp_path, nullcontext())

    assert len(kept.text) == MAX_OUTPUT_BYTES == 200_000
    assert kept.text.endswith("xend")
    assert len(printed.getvalue()) == 300_003


async def test_one_that_goes_on_without_its_output_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch_output(monkeypatch)
    began = time.monotonic()
    code, _ = await run_own_command("exec >/dev/null 2>&1; exec sleep 500", tmp_path, nullcontext())

    assert code == -9
    assert time.monotonic() - began >= 1


async def test_one_that_is_left_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = watch_output(monkeypatch)
    work = asyncio.ensure_future(run_own_command("echo $$; exec sleep 500", tmp_path, nullcontext()))
    async with asyncio.timeout(60):
        while not printed.getvalue().endswith(b"\n"):
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.wait([work])

    assert not Path(f"/proc/{int(printed.getvalue())}").exists()
