"""What the doctor says of this machine."""

from __future__ import annotations

from pathlib import Path

from ollm.cli.machine import measure_disk_usage


def test_disk_use_is_told_by_part_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "sessions" / "deep").mkdir(parents=True)
    (tmp_path / "sessions" / "deep" / "a").write_bytes(bytes(300))
    (tmp_path / "sessions" / "loop").symlink_to(tmp_path)
    (tmp_path / "index.db").write_bytes(bytes(20))

    assert [(part.name, part.bytes) for part in measure_disk_usage(tmp_path)] == [("sessions", 300), ("index.db", 20)]
    assert measure_disk_usage(tmp_path / "none") == ()
