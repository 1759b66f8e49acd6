"""The examples of the pages print what the pages show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FILES = {".gitignore": "dist\n*.log\n", "a.log": "", "src/calc.py": "def add(a, b):\n    return a + b\n"}
BARS_AND_NUMBERS = re.compile(r"[█·]+|[\d,]*\d")


def list_examples(page: str) -> list[tuple[str, list[str]]]:
    blocks = re.findall(r"^```\n(\$ ollm .*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    examples = [part.splitlines() for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(lines[0], lines[1:]) for lines in examples]


def make_pattern(line: str) -> str:
    """A line as the page shows it; `…` stands for anything."""
    return ".*".join(map(re.escape, line.split("…")))


@pytest.mark.parametrize("page", ["context.md", "files.md", "policy.md", "security.md"])
def test_an_example_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    rules = re.findall(
        r"^```yaml\n(policy:.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    (home / ".ollm").mkdir(parents=True)
    (home / ".ollm" / "config.yaml").write_text("".join(rules))
    environment = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=workspace, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3), done.stderr  # 3: the doctor finds no model server
        return done.stdout.replace(str(home), "/home/ada")

    examples = list_examples(page)

    assert examples
    for command, expected in examples:
        printed, shown = run(command), "\n".join(expected)
        if command == "ollm doctor" and "sandbox   full" not in printed:
            continue  # another kernel has another level
        if "█" in shown:
            printed, shown = (BARS_AND_NUMBERS.sub("", text) for text in (printed, shown))
        missing = [
            line for line in shown.split("\n") if not re.search(f"^{make_pattern(line)}$", printed, re.MULTILINE)
        ]
        assert missing == [], printed


@pytest.mark.parametrize("page", ["context.md", "policy.md", "providers.md", "security.md"])
def test_every_setting_a_page_shows_is_valid(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

    assert blocks
    for block in blocks:
        (tmp_path / "config.yaml").write_text(block)
        environment = {**os.environ, "HOME": str(tmp_path), "OLLM_HOME": str(tmp_path)}
        ollm = Path(sys.executable).parent / "ollm"
        done = subprocess.run(
            [ollm, "config", "check"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "Configuration OK.\n"), done.stdout + done.stderr
