"""Where pip would download a package from, printed as one URL by whichever interpreter has pip."""

import subprocess
import sys
from pathlib import Path

from ollm.providers.local_models import pip_link

PIP = """
from contextlib import contextmanager
from types import SimpleNamespace

def create_command(name):
    assert name == "download"
    return Command()

class Link:
    def __init__(self, url, is_wheel):
        self.url_without_fragment, self.is_wheel = url, is_wheel

class Command:
    def parse_args(self, arguments):
        assert arguments == ["--quiet", "--no-deps", "carrier==1.0"], arguments
        return SimpleNamespace(), []

    @contextmanager
    def main_context(self):
        yield

    def get_default_session(self, options):
        return "session"

    def _build_package_finder(self, options, session):
        assert session == "session"
        return self

    def find_all_candidates(self, name):
        assert name == "carrier"
        return [
            SimpleNamespace(version="0.9", link=Link("https://x/old.whl", True)),
            SimpleNamespace(version="1.0", link=Link("https://x/source.tar.gz", False)),
            SimpleNamespace(version="1.0", link=Link("https://x/right.whl", True)),
        ]
"""


def run(directory: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """As another interpreter runs it, with a package index of its own."""
    commands = directory / "pip" / "_internal" / "commands.py"
    commands.parent.mkdir(parents=True)
    for folder in (commands.parent, commands.parent.parent):
        (folder / "__init__.py").write_text("")
    commands.write_text(pip)
    return subprocess.run(
        [sys.executable, pip_link.__file__, "carrier", "1.0"],
        env={"PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_of_the_wanted_version_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, PIP)

    assert (done.stdout, done.returncode) == ("https://x/right.whl\n", 0), done.stderr


def test_where_pip_has_no_wheel_it_fails(tmp_path: Path) -> None:
    done = run(tmp_path, PIP.replace('right.whl", True', 'right.whl", False'))

    assert done.stdout == ""
    assert done.returncode != 0
