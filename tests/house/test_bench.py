"""The measuring harness: what a row says, and that every measurement can be found."""

import re
import subprocess
import sys
from pathlib import Path

import bench.__main__ as harness
import pytest
from bench.__main__ import discovered, save
from bench.row import Row, program


def test_a_goal_bounds_the_ratio_or_the_figure() -> None:
    assert Row("a", 2.0, 1.0, 2.5).met is True
    assert Row("a", 3.0, 1.0, 2.5).met is False
    assert Row("a", 30.0, 1.0, 40.0, "MB", of="figure").met is True
    assert Row("a", 3.0, None, 2.5).met is False
    assert Row("a", 3.0, 1.0).met is None


def test_every_measurement_is_found_and_an_unknown_one_is_refused() -> None:
    assert {"startup", "one_shot"} <= set(discovered())
    assert "row" not in discovered()

    done = subprocess.run([sys.executable, "-m", "bench", "nosuch"], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "startup" in done.stderr


def test_saving_appends_a_table_with_date_and_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "docs" / "performance.md"
    page.parent.mkdir()
    page.write_text("# Performance\n", encoding="utf-8")
    monkeypatch.setattr(harness, "RESULTS", page)
    monkeypatch.setattr(harness, "HERE", tmp_path / "bench")

    save([Row("quick", 2.0, 1.0, 2.5, "ms")])

    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Performance\n\n## 20")
    assert re.search(r"cores at a load of [0-9.]+, Python 3\.", text)
    assert "| quick | 2 ms | 1 ms | 2.00 × | ≤ 2.5 × | ok |" in text


def test_a_measured_program_may_keep_its_compiled_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "helper.py").write_text("")

    program([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import helper"])()

    assert list(tmp_path.glob("__pycache__/helper.*.pyc"))
