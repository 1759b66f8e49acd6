"""`ollm models fit`: the quants and windows of a model that fit this machine, their speed, and servers' commands."""

from __future__ import annotations

import asyncio
import math
import re
import shlex
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ollm.app.process import ProcessScope
from ollm.cli.machine import PROCESSOR_SHARE, inspect_hardware
from ollm.cli.options import format_table, print_result, warn
from ollm.domain.errors import ModelError, NotFoundError, OllmError
from ollm.domain.struct import Data
from ollm.domain.text import suggest_names
from ollm.providers.base import ModelInfo, is_called
from ollm.providers.local_models.gguf import CELLS_STEP, VALUE_BYTES, ModelShape, read_shape
from ollm.providers.local_models.model_files import find_in_catalogue, list_installed
from ollm.providers.window import DEFAULT_WINDOW_TOKENS
from ollm.system.terminal_text import make_printable, wrap_words
from ollm.tools.ls import format_size

# Bits per weight of a whole model, as llama.cpp reports them for models of 7B to 13B.
QUANT_BITS = {"F16": 16.0, "Q8_0": 8.5, "Q6_K": 6.56, "Q5_K_M": 5.68, "Q4_K_M": 4.84, "Q3_K_M": 3.91, "Q2_K": 3.35}
MIN_GOOD_BITS = 4.4  # With fewer bits, models write noticeably worse code.
# Memory bandwidth in GB/s by data sheet.
BANDWIDTHS = """B200 8000, H200 4800, H100 3350, H100 PCIe 2000, A100 2039, A100-SXM4-40GB 1555, A100-PCIE-40GB 1555,
L40S 864, L40 864, L4 300, A40 696, A10 600, A10G 600, T4 320, V100 900, P40 346, GB10 273, RTX PRO 6000 1792,
RTX 6000 Ada 960, RTX A6000 768, RTX 5090 1792, RTX 5080 960, RTX 5070 Ti 896, RTX 5070 672, RTX 5060 448,
RTX 4090 1008, RTX 4080 717, RTX 4070 Ti SUPER 672, RTX 4070 504, RTX 4060 Ti 288, RTX 4060 272, RTX 3090 936,
RTX 3080 760, RTX 3070 448, RTX 3060 360, RTX 2080 Ti 616, RTX 2080 448, RTX 2070 448, RTX 2060 336, Apple M1 68,
Apple M1 Pro 200, Apple M1 Max 400, Apple M2 100, Apple M2 Pro 200, Apple M2 Max 400, Apple M3 100, Apple M3 Pro 150,
Apple M3 Max 300, Apple M3 Ultra 819, Apple M4 120, Apple M4 Pro 273, Apple M4 Max 410"""
GPU_SHARE = 0.92  # The driver, the desktop and fragments take the rest of the GPU's memory.
SPEED_SHARE = 0.7  # Servers reach this share of the bandwidth.
GOOD_WINDOW_TOKENS = 32_768
GOOD_TOKENS_PER_SECOND = 10.0  # People read about this fast.
MEMORY_BYTES = 64 * 2**20  # Most caches hold less than this.
COPY_BYTES = 4 * 2**20  # So short a copy is rarely interrupted.
COPY_SECONDS = 0.5
SMALL_PARAMETERS = 4e9  # A smaller model is of no use below MIN_GOOD_BITS.
HEADINGS = ("SIZE", *VALUE_BYTES, "RUNS ON", "TOKENS/S")


class FitMachine:
    """Bytes for a model in GPUs and main memory, and their bandwidth in bytes per second; 0 if it is not known."""

    def __init__(self) -> None:
        self.hardware = inspect_hardware()
        self.gpus = self.hardware.gpus
        is_shared = any(gpu.name.startswith("Apple") for gpu in self.gpus)
        self.gpu_bytes = int(sum(gpu.memory_bytes for gpu in self.gpus) * (1 if is_shared else GPU_SHARE))
        self.memory_bytes = 0 if is_shared else int(self.hardware.memory_bytes * PROCESSOR_SHARE)
        self.gpu_bandwidth = min((find_bandwidth(gpu.name) for gpu in self.gpus), default=0.0) * 1e9
        self.memory_bandwidth = measure_bandwidth()


def measure_bandwidth() -> float:
    """Measure the bandwidth of one core by the best of several short copies: other work slows most of them."""
    source, target = memoryview(bytearray(b"x") * MEMORY_BYTES), memoryview(bytearray(MEMORY_BYTES))
    target[:] = source  # The first write creates the pages of the target.
    best, end = math.inf, time.monotonic() + COPY_SECONDS
    while time.monotonic() < end:
        for at in range(0, MEMORY_BYTES, COPY_BYTES):
            begin = time.perf_counter()
            target[at : at + COPY_BYTES] = source[at : at + COPY_BYTES]
            best = min(best, time.perf_counter() - begin)
    return 2 * COPY_BYTES / best


def find_bandwidth(name: str) -> float:
    """Find a GPU by the longest entry in its name. Returns 0 for others, and for laptops, which have slower memory."""
    known = [entry.strip().rpartition(" ") for entry in BANDWIDTHS.replace("\n", " ").split(",")]
    found = [(len(gpu), float(speed)) for gpu, _, speed in known if re.search(rf"\b{gpu}\b", name, re.IGNORECASE)]
    return 0.0 if "laptop" in name.lower() else max(found, default=(0, 0.0))[1]


class QuantPlan(Data, frozen=True):
    """A quant on this machine: the largest window by type of KV cache, and the type and window to choose. `runs_on`
    is GPU, GPU+CPU, CPU, or empty if it does not fit."""

    quant: str
    size: int
    runs_on: str
    windows: dict[str, int]
    kv_type: str
    window: int
    tokens_per_second: float | None


def plan_quant(shape: ModelShape, machine: FitMachine, quant: str, size: int) -> QuantPlan:
    def count_bytes(window: int, kind: str) -> int:
        return size + shape.count_kv_bytes(window, kind) + shape.estimate_work_bytes(window)

    good, least = (min(shape.trained_window, tokens) for tokens in (GOOD_WINDOW_TOKENS, DEFAULT_WINDOW_TOKENS))
    both = machine.gpu_bytes + machine.memory_bytes
    places = (("GPU", machine.gpu_bytes), ("GPU+CPU" if machine.gpu_bytes else "CPU", both))
    place, budget = next((place for place in places if count_bytes(least, "q4_0") <= place[1]), ("", 0))
    steps = range(CELLS_STEP, shape.trained_window + 1, CELLS_STEP)
    windows = {
        kind: CELLS_STEP * bisect_right(steps, budget, key=partial(count_bytes, kind=kind)) for kind in VALUE_BYTES
    }
    kind = next((kind for kind, wanted in (("f16", good), ("q8_0", least)) if windows[kind] >= wanted), "q4_0")
    window = min(windows[kind], shape.trained_window if place == "GPU" else good)
    seconds = _estimate_seconds(shape, machine, size, count_bytes(window, kind))
    speed = round(SPEED_SHARE / seconds, 1) if place and seconds else None
    return QuantPlan(
        quant=quant,
        size=size,
        runs_on=place,
        windows=windows,
        kv_type=kind,
        window=window,
        tokens_per_second=speed,
    )


def _estimate_seconds(shape: ModelShape, machine: FitMachine, size: int, needed: int) -> float:
    """Estimate the seconds to read the weights for a token, from the CPU what the GPU cannot hold. Returns 0 if the
    bandwidth of the GPU is not known."""
    used = shape.experts_used / shape.experts if shape.experts else 1.0
    active = size * (1 - shape.expert_share * (1 - used))
    on_gpu = min(1.0, machine.gpu_bytes / needed)
    if on_gpu and not machine.gpu_bandwidth:
        return 0.0
    return active * ((1 - on_gpu) / machine.memory_bandwidth + (on_gpu and on_gpu / machine.gpu_bandwidth))


def choose_quant(shape: ModelShape, plans: list[QuantPlan]) -> str:
    """Choose the largest quant that runs without splitting and fast enough, else the fastest that is still good."""
    fitting = [plan for plan in plans if plan.runs_on and plan.quant != "F16"]
    good = [plan for plan in fitting if plan.size * 8 >= MIN_GOOD_BITS * shape.parameters]
    good = good or (fitting if shape.parameters >= SMALL_PARAMETERS else [])

    def rate(plan: QuantPlan) -> tuple[bool, bool, int]:
        is_fast = (plan.tokens_per_second or math.inf) >= GOOD_TOKENS_PER_SECOND
        return plan.runs_on != "GPU+CPU", is_fast, plan.size if is_fast else -plan.size

    return max(good, key=rate).quant if good else ""


def build_commands(path: str, shape: ModelShape, plan: QuantPlan, gpus: int) -> dict[str, str]:
    small = plan.kv_type != "f16"
    commands = {}
    if path and plan.runs_on:
        words = ["llama-server", "-m", path, "-c", str(plan.window), "-np", "1", "--jinja"]
        words += ["-fa", "on", "-ctk", plan.kv_type, "-ctv", plan.kv_type] if small else []
        commands["llama.cpp"] = shlex.join(words)
    cards = math.gcd(gpus, shape.heads) if gpus else 1  # With vLLM, each GPU takes a share of the heads.
    if path and plan.runs_on == "GPU" and cards == gpus and not re.search(r"-of-\d{5}\.gguf$", path):
        words = ["vllm", "serve", path, "--max-model-len", str(plan.windows["q8_0"] if small else plan.window)]
        words += ["--kv-cache-dtype", "fp8"] if small else []
        words += ["--tensor-parallel-size", str(gpus)] if gpus > 1 else []
        words += ["--tokenizer", shape.base_model] if shape.base_model else []
        commands["vLLM"] = shlex.join(words)
    if plan.runs_on:
        settings = f"OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE={plan.kv_type} " if small else ""
        commands["Ollama"] = f"{settings}OLLAMA_CONTEXT_LENGTH={plan.window} ollama serve"
    return commands


async def find_models(process: ProcessScope, name: str | None) -> list[tuple[str, ModelInfo]]:
    """Find a model, or all, with the place where each is: files first, then models of running servers."""
    given = Path(name or "").expanduser()
    installed = [file for file in list_installed(process.home.models) if name in (None, file.name, file.path.name)]
    found = [("file", ModelInfo(name=file.name, file=str(file.path))) for file in installed]
    if name and not found and (given.is_file() or given.is_dir()):
        found = [("file", ModelInfo(name=given.stem, file=str(given.absolute())))]
    if name and found:
        return found
    servers = await process.providers.list_servers(warn)
    for server in servers:
        for info in (info for info in server.models if name is None or is_called(info.name, name)):
            try:
                described = replace(await server.provider.describe(info.name), name=info.name, size=info.size)
            except OllmError as error:
                warn(str(error))
            else:
                found.append((f"{server.place.label} at {server.provider.base_url}", described))
        await server.provider.close()
    if name and not found:
        near = suggest_names(name, [info.name for server in servers for info in server.models])
        hint = f"Did you mean {near[0]}? " if near else ""
        next_step = f"download it with `ollm models get {name}`" if find_in_catalogue(name) else "name a GGUF file"
        raise NotFoundError(f"No model or file {name!r} here.", action=f"{hint}See `ollm models list`, or {next_step}.")
    return found


def assess_model(where: str, info: ModelInfo, machine: FitMachine) -> dict[str, Any]:
    """Read the file, or else what the server says of it. Raises ModelError if neither is enough."""
    path = info.file if where == "file" or Path(info.file).is_file() else ""
    try:
        shape = (
            read_shape(Path(path)) if path else ModelShape(info.metadata or {}, info.parameters or 0, info.size or 0)
        )
    except ValueError as error:
        action = "Run `ollm models fit FILE.gguf` on the machine that has the file."
        raise ModelError(f"{where} does not say enough about {info.name}: {error}.", action=action) from error
    own_bits = QUANT_BITS.get(shape.quant, shape.size * 8 / max(1, shape.parameters))
    others = {quant: shape.size + int(shape.parameters * (bits - own_bits) / 8) for quant, bits in QUANT_BITS.items()}
    sizes = {quant: size for quant, size in others.items() if shape.parameters and size > 0} | {shape.quant: shape.size}
    plans = [plan_quant(shape, machine, quant, size) for quant, size in sizes.items()]
    plans.sort(key=lambda plan: -plan.size)
    own = next(plan for plan in plans if plan.quant == shape.quant)
    known = {key: value for key, value in vars(shape).items() if not key.startswith("_")}
    return {
        "name": info.name,
        "where": where,
        "path": path,
        "shape": {re.sub("_(.)", lambda letter: letter[1].upper(), key): value for key, value in known.items()},
        "kvBytesAt8192": {kind: shape.count_kv_bytes(DEFAULT_WINDOW_TOKENS, kind) for kind in VALUE_BYTES},
        "own": own,
        "quants": plans,
        "bestQuant": choose_quant(shape, plans),
        "commands": build_commands(path, shape, own, len(machine.gpus)),
    }


def format_plans(heading: str, plans: Iterable[tuple[str, QuantPlan]]) -> str:
    rows = []
    for label, plan in plans:
        windows = [f"{window // 1024}K" if window else "-" for window in plan.windows.values()]
        rows.append((label, format_size(plan.size), *windows, plan.runs_on or "no", plan.tokens_per_second or "-"))
    return format_table((heading, *HEADINGS), rows, "No models here: name a GGUF file, or see `ollm models list`.")


def format_model(model: dict[str, Any], machine: FitMachine) -> Iterator[str]:
    shape, own = model["shape"], model["own"]
    sliding = f" (most see {shape['slidingWindow']:,} tokens)" if shape["slidingValues"] else ""
    experts = f", {shape['expertsUsed']} of {shape['experts']} experts" if shape["experts"] else ""
    size = f"{shape['architecture']}, {shape['parameters'] / 1e9:.1f}B parameters, {shape['layers']} layers{sliding}"
    heads = f"{shape['heads']} heads ({shape['kvHeads']} for KV){experts}"
    caches = ", ".join(f"{kind} {size / 2**20:,.0f} MiB" for kind, size in model["kvBytesAt8192"].items())
    usable = format_size(machine.gpu_bytes + machine.memory_bytes)
    known = f"{machine.gpu_bandwidth / 1e9:,.0f} GB/s by data sheet" if machine.gpu_bandwidth else "not known"
    gpu = f"{machine.gpus[0].name}: {known}; " if machine.gpus else ""
    bandwidth = f"{gpu}memory: {machine.memory_bandwidth / 1e9:.0f} GB/s by a copy on one core"
    wrap = wrap_words if sys.stdout.isatty() else str
    yield wrap(make_printable(f"{model['name']}: {size}, {heads}, trained for {shape['trainedWindow']:,} tokens."))
    yield wrap(f"KV cache at 8K tokens: {caches}.")
    yield wrap(f"Machine: {machine.hardware.describe()}; {usable} for a model.")
    yield format_plans("QUANT", ((plan.quant + " *" * (plan == own), plan) for plan in model["quants"]))
    yield wrap("* as it is; other sizes are estimates. f16, q8_0, q4_0: the largest window with that KV cache.")
    yield wrap(f"Speed is an estimate: {SPEED_SHARE:.0%} of the bandwidth ({bandwidth}).")
    yield f"Best quant here: {model['bestQuant'] or 'none fits'}."
    yield from (f"{server:<10}{make_printable(command)}" for server, command in model["commands"].items())


def print_fit(name: str | None, *, as_json: bool) -> None:
    machine, models = FitMachine(), []
    for where, info in asyncio.run(find_models(ProcessScope(), name)):
        try:
            models.append(assess_model(where, info, machine))
        except OllmError as error:
            if name:
                raise
            warn(str(error))
    numbers = {"gpuBytes": machine.gpu_bytes, "memoryBytes": machine.memory_bytes}
    bandwidths = {"gpuBandwidth": machine.gpu_bandwidth, "memoryBandwidth": machine.memory_bandwidth}
    document = {"machine": {"hardware": machine.hardware, **numbers, **bandwidths}, "models": models}
    table = format_plans("MODEL", ((model["name"], model["own"]) for model in models))
    print_result(document, "\n".join(format_model(models[0], machine)) if name else table, as_json=as_json)
