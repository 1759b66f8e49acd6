"""The hardware of this machine, and a model that fits it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryFile

from ollm.domain.struct import Data
from ollm.system.process_tree import count_cores
from ollm.system.sandbox.confined import find_program

GPU_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
POWER_QUERY = ("nvidia-smi", "--query-gpu=index,power.draw", "--format=csv,noheader,nounits", "-l", "1")
LOCAL_ADDRESS = r"://(?:localhost|127\.[\d.]+|\[::1\])(?:[:/]|$)"
QUERY_TIMEOUT_SECONDS = 5
MODEL_SIZES = ((22.0, "32b"), (12.0, "14b"), (7.0, "7b"), (3.5, "3b"), (0.0, "1.5b"))  # Each needs so many GB with 16K.
UNIFIED_SHARE = 0.7  # A GPU without memory of its own gets no more.
PROCESSOR_SHARE = 0.6  # Other programs need the rest.
MANY_CORES = 8
PROCESSOR_GIGABYTES = (6.0, 11.0)  # A larger model writes slower than people read.
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


@contextmanager
def measure_power(address: str) -> Iterator[Callable[[], float | None]]:
    """Measure the mean watts of this machine's GPUs while a server on it works. None if nvidia-smi does not say."""
    program = find_program(POWER_QUERY[0]) if re.search(LOCAL_ADDRESS, address) else None
    with TemporaryFile() as readings, ExitStack() as stack:
        if program:
            meter = subprocess.Popen(
                [program, *POWER_QUERY[1:]], stdin=subprocess.DEVNULL, stdout=readings, stderr=readings
            )
            stack.callback(meter.wait)
            stack.callback(meter.kill)

        def read_watts() -> float | None:
            readings.seek(0)
            found = re.findall(rb"^(\d+), (\d+(?:\.\d+)?)$", readings.read(), re.MULTILINE)
            gpus = {gpu: [float(watts) for index, watts in found if index == gpu] for gpu, _ in found}
            return sum(map(fmean, gpus.values())) if gpus else None

        yield read_watts


def suggest_models(hardware: Hardware) -> dict[str, str]:
    """Map each server to the commands that start a coding model for this machine, or use one elsewhere."""
    size = choose_model_size(hardware)
    model = f"qwen2.5-coder:{size}"
    repository = f"Qwen/Qwen2.5-Coder-{size.upper()}-Instruct-GGUF"
    return {
        "ollama": f"ollama pull {model} && ollm -m {model}",
        "llama.cpp": f"llama-server -hf {repository} -c {WINDOW_TOKENS} --jinja, then: ollm",
        "elsewhere": "ollm config set provider.baseUrl http://HOST:8000/v1",
    }


def choose_model_size(hardware: Hardware) -> str:
    """Choose the largest size that fits the GPU, or without one, the largest that is fast enough on the CPU."""
    fast = PROCESSOR_GIGABYTES[hardware.cores >= MANY_CORES] * 2**30
    usable = hardware.gpu.memory_bytes if hardware.gpu else min(hardware.memory_bytes * PROCESSOR_SHARE, fast)
    return next(name for needed, name in MODEL_SIZES if usable >= needed * 2**30)


def _find_gpus(root: Path, memory: int, timeout_seconds: float) -> list[Gpu]:
    if sys.platform == "darwin":
        if platform.machine() != "arm64":
            return []
        name = _query(("sysctl", "-n", "machdep.cpu.brand_string"), timeout_seconds).strip() or "Apple GPU"
        return [Gpu(name=name, memory_bytes=int(memory * UNIFIED_SHARE))]
    found = [line.rpartition(",") for line in _query(GPU_QUERY, timeout_seconds).splitlines()]
    gpus = [Gpu(name=name.strip(), memory_bytes=int(size) * 2**20) for name, _, size in found if size.strip().isdigit()]
    sizes = [_read_number(file) for file in root.glob("sys/class/drm/card*/device/mem_info_vram_total")]
    return gpus or [Gpu(name="AMD GPU", memory_bytes=size) for size in sizes if size and size >= 2**30]


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


def _read_number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None


def _format_gigabytes(size: int) -> str:
    return f"{size / 2**30:.0f} GB"
