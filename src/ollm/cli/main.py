"""The entry point: answers `--version` before anything else is imported."""

from __future__ import annotations

import sys


def run() -> None:
    """Entry point of the `ollm` script."""
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        from ollm import __version__

        print(f"ollm {__version__}")
        return
    import gc

    gc.set_threshold(50_000)  # starting makes many objects and hardly any garbage to look for
    try:
        from ollm.cli.entry import main

        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # before there was anything to interrupt
        sys.exit(130)
    finally:
        gc.freeze()  # all of it goes now: no need to look through it on the way out
