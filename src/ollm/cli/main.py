"""The entry point: answers `--version` before anything else is imported."""

from __future__ import annotations

import os
import sys


def run() -> None:
    _leave_own_folders()
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        from ollm import __version__

        print(f"ollm {__version__}")
        return
    import gc

    gc.set_threshold(50_000)  # Starting makes many objects and hardly any garbage.
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]  # msgspec loads faster without it.
    try:
        from ollm.cli.entry import main

        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # The signal arrived before there was anything to interrupt.
        sys.exit(130)
    finally:
        gc.freeze()  # The exit need not search all objects for garbage.


def _leave_own_folders() -> None:
    """Load nothing from folders of this repository that PYTHONPATH or `python -m` adds, unless ollm itself is there:
    sandboxed commands can write to them."""
    try:
        top = here = os.getcwd()  # noqa: PTH109 - pathlib would be loaded from there
    except OSError:
        return
    named = os.environ.get("PYTHONPATH")
    if not named and here not in sys.path:
        return
    while top and not os.path.lexists(f"{top}/.git"):
        top = top.rpartition("/")[0]
    top = os.path.realpath(top or here) + "/"
    added = {here, *map(os.path.abspath, (named or here).split(os.pathsep))}
    added = {path for path in added if f"{os.path.realpath(path)}/".startswith(top)}
    if __file__.rpartition("/ollm/cli/")[0] not in added:
        sys.path[:] = [path for path in sys.path if path not in added]
