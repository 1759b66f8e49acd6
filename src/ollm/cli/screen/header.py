"""The first lines of a chat: version, model, folder and a tip."""

from __future__ import annotations

from pathlib import Path

from ollm import __version__
from ollm.cli.screen.paint import Painter
from ollm.cli.screen.status import format_server, shorten_model
from ollm.runtime.base import Status
from ollm.system.terminal_text import make_printable

TINY_MODEL = "smollm2"
GPU_TIMEOUT_SECONDS = 0.5  # that the first line waits for a driver
TIPS = ("/help for commands", "@ attaches a file", "! runs a shell command")
TINY_MODEL_WARNING = "SmolLM2 135M is for trying ollm, not for work. To get a real model (also in `ollm doctor`):"


def render_header(status: Status, branch: str, painter: Painter) -> str:
    """Three quiet lines, and a warning where the model is only a toy."""
    model = (shorten_model(status.model), f"{status.window:,}-token context", format_server(status))
    place = (make_printable(shorten_home(status.workspace)), *([branch] if branch else []))
    text = painter.paint_header(f"ollm {__version__}", [model, place, TIPS])
    if status.provider == "embedded" and status.model == TINY_MODEL:
        text += painter.paint_aside(TINY_MODEL_WARNING, "yellow") + _format_model_commands()
    return text


def _format_model_commands() -> str:
    """The commands that bring a real model to this machine, each whole on its line so that it can be copied."""
    from ollm.cli.hardware import inspect_hardware, suggest_models

    hardware = inspect_hardware(timeout_seconds=GPU_TIMEOUT_SECONDS)
    if hardware.gpu_silent:
        return "  ollm doctor    lists the commands that fit this machine\n"
    return "".join(f"  {name:<10}{command}\n" for name, command in suggest_models(hardware).items())


def shorten_home(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path
