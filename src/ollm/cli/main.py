"""The entry point: answers `--version` and `files` at once, and imports a command family only when it is asked for."""

from __future__ import annotations

import os
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
        if sys.argv[1:2] == ["files"] and "_OLLM_COMPLETE" not in os.environ:
            code = _list_files_quickly(sys.argv[2:])
            if code is not None:
                sys.exit(code)
        if not {"--help", "-h"}.intersection(sys.argv) and "_OLLM_COMPLETE" not in os.environ:
            _import_msgspec()
        from ollm.cli.entry import main

        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # before there was anything to interrupt
        sys.exit(130)
    finally:
        gc.freeze()  # all of it goes now: no need to look through it on the way out


def _list_files_quickly(words: list[str]) -> int | None:
    """The exit code; None where the list is for the ordinary way."""
    from ollm.cli.quick_list import print_list_quickly

    try:
        return print_list_quickly(words)
    except OSError as error:
        from ollm.cli.entry import report_output_error

        return report_output_error(error)


def _import_msgspec() -> None:
    """Without `typing_extensions`, which it takes where that is installed, though Python has all that it needs: with
    what that one imports it takes a third of the time."""
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
