"""The list of `ollm files` on the quick way, which reads its own command line."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.command import ollm
from tests.cli.test_files import project


def test_the_list_needs_neither_click_nor_asyncio(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    code = (
        f"import sys; sys.argv = ['ollm', 'files', '*.py', '--workspace', {str(root)!r}]\n"
        "from ollm.cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "print(sorted({'click', 'asyncio', 'rich', 'ruamel', 'rapidfuzz', 'ssl'} & set(sys.modules)), file=sys.stderr)"
    )

    environment = {**os.environ, "OLLM_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("src/a.py\n", "[]\n")


def test_an_empty_list_prints_nothing_and_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    nothing = ollm("files", "*.rs", home=tmp_path / "home", cwd=root)
    wrong = ollm("files", "--jsn", home=tmp_path / "home", cwd=root)
    unfinished = ollm("files", "--workspace", home=tmp_path / "home", cwd=root)

    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert (wrong.returncode, unfinished.returncode) == (2, 2)
    assert "--json" in wrong.stderr
