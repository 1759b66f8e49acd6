"""Runs the command and writes down which files of ours are given a marked text: `marked_run.py OUT MARK ARGUMENT...`."""

import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import ollm
from ollm.cli.main import run

SOURCE = str(Path(ollm.__file__).parent) + os.sep
MAX_DEPTH = 4


class MarkedFiles:
    """Every file of the product in which a function takes the mark or gives it, in the order in which it comes there."""

    def __init__(self, mark: str) -> None:
        self.names: dict[str, None] = {}
        self._mark = mark
        self._bytes = mark.encode()
        self._busy = threading.local()

    def look(self, frame: FrameType, event: str, value: Any) -> None:
        file = frame.f_code.co_filename
        if not file.startswith(SOURCE) or getattr(self._busy, "yes", False):
            return
        self._busy.yes = True
        try:
            if event == "call":
                code = frame.f_code
                taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                values = [frame.f_locals.get(name) for name in taken if name != "self"]
            else:
                values = [value] if event == "return" else []
            if any(map(self._holds, values)):
                self.names[file.removeprefix(SOURCE).removesuffix(".py")] = None
        finally:
            self._busy.yes = False

    def _holds(self, value: Any, depth: int = 0) -> bool:
        if isinstance(value, str):
            return self._mark in value
        if isinstance(value, bytes):
            return self._bytes in value
        if depth == MAX_DEPTH:
            return False
        inner: Any = ()
        if isinstance(value, dict):
            inner = value.values()
        elif isinstance(value, list | tuple):
            inner = value
        elif isinstance(value, msgspec.Struct):
            inner = (getattr(value, name, None) for name in value.__struct_fields__)
        return any(self._holds(one, depth + 1) for one in list(inner))


def main() -> None:
    out, mark, *sys.argv[1:] = sys.argv[1:]
    marked, leave = MarkedFiles(mark), os._exit

    def write_and_leave(code: int) -> None:
        sys.setprofile(None)
        Path(out).write_text("\n".join(marked.names), encoding="utf-8")
        leave(code)

    threading.setprofile(marked.look)
    sys.setprofile(marked.look)
    try:
        run()
    except SystemExit as error:
        write_and_leave(int(error.code or 0))
    write_and_leave(0)


if __name__ == "__main__":
    main()
