"""Real language servers through the command: an edit reports the errors it brings, and no others."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.running import running
from tests.cli.test_diagnostics import edit, results
from tests.integration import packages
from tests.servers.answers import Answer

pytestmark = pytest.mark.skipif(not packages.WANTED, reason="needs the registries: make integration")

PYTHON = {"app.py": "old: str = 3\ncount = 1\n", "uses.py": "from app import count\n\nprint(count)\n"}
SCRIPT = {
    "app.ts": "const old: string = 3;\nexport let count = 1;\n",
    "uses.ts": "import { count } from './app';\nconsole.log(count);\n",
}
RENAMED = ("count = 1", "counts = undefined_name")
TYPED = ("count = 1", "counts: number = 'one'")
CASES = {
    "pyright": (("npm", "pyright", "pyright-langserver"), PYTHON, RENAMED, ("not defined", '"count" is unknown')),
    "basedpyright": (
        ("pypi", "basedpyright", "basedpyright-langserver"),
        PYTHON,
        RENAMED,
        ("not defined", '"count" is unknown'),
    ),
    "ruff": (("pypi", "ruff", "ruff"), PYTHON, RENAMED, ("Undefined name `undefined_name` (F821)", "")),
    "typescript-language-server": (
        ("npm", "typescript-language-server", "typescript-language-server", "typescript@5"),
        SCRIPT,
        TYPED,
        ("Type 'string' is not assignable to type 'number'. (2322)", "'count'"),
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_real_server_reports_the_error_that_an_edit_brings(tmp_path: Path, name: str) -> None:
    (registry, *package), files, change, (own, other) = CASES[name]
    file, importer = files
    try:
        program, _ = (packages.install_npm if registry == "npm" else packages.install_pypi)(*package)
    except packages.UnavailableError as error:
        pytest.skip(f"{name}: {error}")
    steps = [Answer(calls=[edit(*change, path=file)]), "Done."]
    async with running(tmp_path, steps) as runner:
        runner.home.mkdir()
        settings = {"tools": {"diagnostics": {"timeout": 30}}, "sandbox": {"readable": [str(packages.CACHE)]}}
        (runner.home / "config.yaml").write_text(json.dumps(settings))
        for each, text in files.items():
            (runner.workspace / each).write_text(text)
        if registry == "npm":  # as a dependency of the project
            shutil.copytree(program.parents[1], runner.workspace / "node_modules", symlinks=True)
            await runner.run("trust")
        path = os.environ["PATH"] if registry == "npm" else f"{program.parent}:{os.environ['PATH']}"
        done = await runner.run("-p", "go", "--yes", PATH=path)

        (told,) = results(runner)

        assert f"New errors ({name}):\n{file}:2:" in told, done.err
        assert own in told
        assert (f"\n{importer}:1:" in told) == bool(other)
        assert other in told
        assert "old" not in told
