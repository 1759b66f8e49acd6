"""This machine: programs, extras, memory, cores, GPU, a model that fits it, and our disk usage."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from ollm.domain.struct import Data
from ollm.system.install_command import describe_extra_install
from ollm.system.process_tree import count_cores
from ollm.system.sandbox.confined import find_program

PROBE_BYTES = 4096  # a session of a few words
EXTRAS = {
    "code": "tree_sitter",
    "daemon": "litestar",
    "embedded": "xllamacpp",
    "mcp": "mcp",
    "postgres": "psycopg",
    "search": "ddgs",
}


class MachineCheck(Data, frozen=True):
    """A requirement on this machine, and its purpose."""

    name: str
    ok: bool
    detail: str


class DiskUsage(Data, frozen=True):
    name: str
    bytes: int


def check_machine() -> tuple[MachineCheck, ...]:
    programs = [
        _check_program("rg", "finds files and text"),
        _check_program("shfmt", "parses shell commands for the policy"),
    ]
    extras = [
        MachineCheck(name=f"[{extra}]", ok=find_spec(module) is not None, detail=describe_extra_install(extra))
        for extra, module in EXTRAS.items()
    ]
    return (
        *programs,
        MachineCheck(
            name="FTS5",
            ok=_has_full_text_search(),
            detail="searches sessions; needs SQLite with FTS5 in this Python",
        ),
        *extras,
    )


def _check_program(name: str, purpose: str) -> MachineCheck:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else find_program(name)
    return MachineCheck(name=name, ok=found is not None, detail=found or purpose)


def _has_full_text_search() -> bool:
    with sqlite3.connect(":memory:") as database:
        return ("ENABLE_FTS5",) in database.execute("PRAGMA compile_options")


def check_writable(root: Path) -> str | None:
    """Return why a directory, which may not exist yet, is not writable, or None if it is."""
    place = next((above for above in (root, *root.parents) if above.is_dir()), root)
    try:
        with TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    return None


def measure_disk_usage(root: Path) -> tuple[DiskUsage, ...]:
    """Measure disk usage by part, largest first; links count as zero."""
    if not root.is_dir():
        return ()
    parts = [DiskUsage(name=entry.name, bytes=_count_bytes(entry)) for entry in root.iterdir()]
    return tuple(sorted(parts, key=lambda part: (-part.bytes, part.name)))


def _count_bytes(path: Path) -> int:
    try:
        if path.is_symlink():
            return 0
        if path.is_dir():
            return sum(_count_bytes(entry) for entry in path.iterdir())
        return path.stat().st_size
    except OSError:
        return 0


GPU_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
QUERY_TIMEOUT_SECONDS = 5
MODEL_SIZES = ((22.0, "32b"), (12.0, "14b"), (7.0, "7b"), (3.5, "3b"), (0.0, "1.5b"))  # GB that each takes, with 16K
UNIFIED_SHARE = 0.7  # of the memory that a GPU without its own may use
PROCESSOR_SHARE = 0.6  # of the memory that a model may take beside everything else
SLOW_CORES = 8  # with fewer a model over 3B writes slower than one reads
SLOW_SIZES = (("32b", "14b"), ("32b", "14b", "7b"))  # without a GPU, on many cores and on few
WINDOW_TOKENS = 16_384


class Gpu(Data, frozen=True):
    name: str
    memory_bytes: int


class Hardware(Data, frozen=True):
    """Hardware of this machine. `memory_bytes` respects a container's limit. `gpu` is the largest of `gpus`.
    `gpu_silent`: there seems to be a GPU, but its driver did not answer in time."""

    memory_bytes: int
    cores: int
    gpu: Gpu | None = None
    gpus: tuple[Gpu, ...] = ()
    gpu_silent: bool = False

    def describe(self) -> str:
        none = "a GPU whose driver does not answer" if self.gpu_silent else "no GPU found"
        gpu = f"{self.gpu.name} with {_format_gigabytes(self.gpu.memory_bytes)}" if self.gpu else none
        return f"{_format_gigabytes(self.memory_bytes)} of memory, {self.cores} cores, {gpu}"


def inspect_hardware(root: Path = Path("/"), timeout_seconds: float = QUERY_TIMEOUT_SECONDS) -> Hardware:
    """Inspect the hardware. `root` contains `sys` and `proc`."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = count_cores()
    limit = _read_number(root / "sys/fs/cgroup/memory.max")
    memory = min(memory, limit) if limit else memory
    try:
        gpus = _find_gpus(root, memory, timeout_seconds)
    except TimeoutError:
        return Hardware(memory_bytes=memory, cores=cores, gpu_silent=True)
    largest = max(gpus, key=lambda gpu: gpu.memory_bytes, default=None)
    return Hardware(memory_bytes=memory, cores=cores, gpu=largest, gpus=tuple(gpus))


def suggest_models(hardware: Hardware) -> dict[str, str]:
    """Map each server to the commands that start a coding model for this machine, or use one elsewhere."""
    size = choose_model_size(hardware)
    layers = " -ngl 99" if hardware.gpu else ""
    model = f"qwen2.5-coder:{size}"
    repository = f"Qwen/Qwen2.5-Coder-{size.upper()}-Instruct-GGUF"
    return {
        "ollama": f"ollama pull {model} && ollm -m {model}",
        "llama.cpp": f"llama-server -hf {repository} -c {WINDOW_TOKENS} --jinja{layers}, then: ollm",
        "elsewhere": "ollm config set provider.baseUrl http://HOST:8000/v1",
    }


def choose_model_size(hardware: Hardware) -> str:
    """Choose the largest size that fits the GPU, or without one, the largest that is fast enough on the CPU."""
    usable = hardware.gpu.memory_bytes if hardware.gpu else hardware.memory_bytes * PROCESSOR_SHARE
    fitting = [name for needed, name in MODEL_SIZES if usable >= needed * 2**30]
    quick = (
        fitting if hardware.gpu else [name for name in fitting if name not in SLOW_SIZES[hardware.cores < SLOW_CORES]]
    )
    return quick[0]


def _find_gpus(root: Path, memory: int, timeout_seconds: float) -> list[Gpu]:
    if sys.platform == "darwin":
        if platform.machine() != "arm64":
            return []
        name = _query(("sysctl", "-n", "machdep.cpu.brand_string"), timeout_seconds).strip() or "Apple GPU"
        return [Gpu(name=name, memory_bytes=int(memory * UNIFIED_SHARE))]
    found = [line.rpartition(",") for line in _query(GPU_QUERY, timeout_seconds).splitlines()]
    gpus = [Gpu(name=name.strip(), memory_bytes=int(size) * 2**20) for name, _, size in found if size.strip().isdigit()]
    return gpus or _find_amd(root)


def _query(command: tuple[str, ...], timeout_seconds: float) -> str:
    program = find_program(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]],
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _find_amd(root: Path) -> list[Gpu]:
    sizes = [_read_number(file) for file in root.glob("sys/class/drm/card*/device/mem_info_vram_total")]
    return [Gpu(name="AMD GPU", memory_bytes=size) for size in sizes if size and size >= 2**30]


def _read_number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None


def _format_gigabytes(size: int) -> str:
    return f"{size / 2**30:.0f} GB"
