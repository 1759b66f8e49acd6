"""What the doctor says of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ollm.cli.machine import MachineCheck, _check_program, check_machine, measure_disk_usage
from ollm.system.install_command import describe_extra_install


def test_disk_use_is_told_by_part_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "sessions" / "deep").mkdir(parents=True)
    (tmp_path / "sessions" / "deep" / "a").write_bytes(bytes(300))
    (tmp_path / "sessions" / "loop").symlink_to(tmp_path)
    (tmp_path / "index.db").write_bytes(bytes(20))

    assert [(part.name, part.bytes) for part in measure_disk_usage(tmp_path)] == [("sessions", 300), ("index.db", 20)]
    assert measure_disk_usage(tmp_path / "none") == ()


def test_parts_are_listed_largest_first_and_links_count_as_nothing(tmp_path: Path) -> None:
    assert measure_disk_usage(tmp_path / "nothing") == ()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "deep").mkdir()
    (tmp_path / "b" / "deep" / "f").write_bytes(bytes(30))
    (tmp_path / "a").write_bytes(bytes(10))
    (tmp_path / "c").write_bytes(bytes(10))
    (tmp_path / "link").symlink_to(tmp_path / "a")

    assert [(part.name, part.bytes) for part in measure_disk_usage(tmp_path)] == [
        ("b", 30),
        ("a", 10),
        ("c", 10),
        ("link", 0),
    ]


def test_every_program_and_extra_is_looked_for() -> None:
    checks = {check.name: check for check in check_machine()}

    assert list(checks) == ["rg", "shfmt", "FTS5", "[acp]", "[daemon]", "[embedded]", "[mcp]", "[search]"]
    assert checks["rg"].ok
    assert Path(checks["rg"].detail).name == "rg"
    assert checks["FTS5"].ok
    assert checks["[daemon]"].ok
    assert checks["[mcp]"].detail == describe_extra_install("mcp")


def test_a_program_that_is_not_there_says_what_it_is_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _check_program("no-such-program", "does it") == MachineCheck(
        name="no-such-program", ok=False, detail="does it"
    )
    (tmp_path / "no-such-program").write_text("#!/bin/sh\n")
    (tmp_path / "no-such-program").chmod(0o755)
    assert _check_program("no-such-program", "does it").detail == str(tmp_path / "no-such-program")
