"""Programs that build, test and package a project: what names a grant for them, and which options steer them."""

from __future__ import annotations

from ollm.policy.shell.programs.git import GIT
from ollm.policy.shell.programs.record import Granting, Launching, Program, share_record, write_files

_PACKAGES = Granting(
    depth=2,
    subcommands=("test", "start", "run", "build", "lint", "ls", "outdated"),
    third=("run",),
)
_NPM = Granting(depth=2, subcommands=_PACKAGES.subcommands, third=("run", "exec"))
_EXEC = Launching(after=("exec", "dlx", "x"), own=1)
_WHOLE = Granting(depth=1)
_TWO_WORDS = Granting(depth=2)

BUILD_TOOLS: dict[str, Program] = {
    "git": GIT,
    "npm": Program(
        launches=_EXEC, grants=_NPM, steering="C", global_values="--prefix -w --workspace --loglevel --registry"
    ),
    "pnpm": Program(launches=_EXEC, grants=_PACKAGES, steering="C"),
    "yarn": Program(launches=_EXEC, grants=_PACKAGES),
    "bun": Program(launches=_EXEC, grants=_PACKAGES, steering="r", kind="interpreter", code=True),
    "cargo": Program(
        launches=Launching(after=("watch",), words=False),
        grants=Granting(depth=2, subcommands=("build", "test", "check", "clippy", "fmt", "doc", "bench", "tree")),
        steering="ZC",
        global_values="--color --config -Z -C --manifest-path",
    ),
    "go": Program(grants=Granting(depth=2, subcommands=("test", "build", "vet", "fmt", "list")), steering="C"),
    "make": Program(
        commands="--eval",
        acting="--file --makefile --directory --include-dir -f -C -I",
        acting_words="SHELL=.*",
        grants=_TWO_WORDS,
        steering="fCIEW",
        fed="commands",
        versioned=True,
    ),
    "gh": Program(grants=Granting(depth=2, third=("pr", "issue"))),
    "gradle": Program(grants=_TWO_WORDS, steering="IpDbcP"),
    "mvn": Program(grants=_TWO_WORDS, steering="fsDl"),
    "just": Program(grants=_TWO_WORDS, steering="fd"),
    "tox": Program(grants=_TWO_WORDS, steering="cx"),
    "dotnet": Program(grants=_TWO_WORDS),
    "pytest": Program(grants=_WHOLE, steering="pco"),
    "mypy": Program(grants=_WHOLE, steering="pm"),
    "eslint": Program(grants=_WHOLE, steering="cof"),
    "tsc": Program(grants=_WHOLE, steering="p"),
    "flake8": Program(grants=_WHOLE, steering="r"),
    **share_record("jest vitest", Program(grants=_WHOLE, steering="c")),
    **share_record("ruff prettier black", Program(grants=_WHOLE)),
    **share_record("pip terraform", Program(grants=Granting())),
    "gcc": write_files(
        "option", "oIDLl", targets=("o",), acting_words=r"-wrapper|-B.*|-specs.*|-fplugin.*", versioned=True
    ),
    **share_record("g++ clang cmake", Program(versioned=True)),
}
