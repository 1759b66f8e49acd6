"""The machine as the doctor reports it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ollm.cli.machine import (
    Gpu,
    Hardware,
    choose_model_size,
    inspect_hardware,
    measure_disk_usage,
    suggest_models,
)
from tests.cli.command import ollm

GB = 2**30


@pytest.mark.parametrize(
    ("memory", "cores", "gpu", "size"),
    [
        (24, 2, None, "3b"),
        (24, 16, None, "7b"),
        (256, 64, None, "7b"),
        (4, 4, None, "1.5b"),
        (64, 16, 24, "32b"),
        (64, 16, 16, "14b"),
        (16, 8, 8, "7b"),
        (16, 8, 4, "3b"),
    ],
)
def test_the_model_fits_the_machine(memory: int, cores: int, gpu: int | None, size: str) -> None:
    found = Gpu(name="GPU", memory_bytes=gpu * GB) if gpu else None
    hardware = Hardware(memory_bytes=memory * GB, cores=cores, gpu=found)

    assert choose_model_size(hardware) == size
    assert suggest_models(hardware)["ollama"] == f"ollama pull qwen2.5-coder:{size} && ollm -m qwen2.5-coder:{size}"
    assert ("-ngl 99" in suggest_models(hardware)["llama.cpp"]) == bool(gpu)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says")
def test_a_container_and_an_amd_card_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text(f"{2 * GB}\n")
    card = tmp_path / "sys/class/drm/card0/device"
    card.mkdir(parents=True)
    (card / "mem_info_vram_total").write_text(f"{16 * GB}\n")

    found = inspect_hardware(tmp_path)

    assert found.memory_bytes <= 2 * GB
    assert found.gpu == Gpu(name="AMD GPU", memory_bytes=16 * GB)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert inspect_hardware(tmp_path).memory_bytes > 0


@pytest.mark.skipif(sys.platform != "linux", reason="the command is looked for on Linux")
def test_doctor_names_the_gpu_and_the_commands_that_fit_it(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA GeForce RTX 4090, 24564'\necho 'broken'\n")
    (programs / "nvidia-smi").chmod(0o755)
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "OLLM_PROVIDER": "openai", "OLLM_BASE_URL": "http://127.0.0.1:9"}

    done = ollm("doctor", home=tmp_path / "home", cwd=tmp_path, **variables)
    document = json.loads(ollm("doctor", "--json", home=tmp_path / "home", cwd=tmp_path, **variables).stdout)

    assert "NVIDIA GeForce RTX 4090 with 24 GB" in done.stdout
    assert "ollama    ollama pull qwen2.5-coder:32b" in done.stdout
    assert "llama.cpp llama-server -hf Qwen/Qwen2.5-Coder-32B-Instruct-GGUF" in done.stdout
    assert document["hardware"]["gpu"]["name"] == "NVIDIA GeForce RTX 4090"
    (programs / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert "no GPU found" in ollm("doctor", home=tmp_path / "home", cwd=tmp_path, **variables).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the command is looked for on Linux")
def test_a_driver_that_does_not_answer_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    hardware = inspect_hardware(timeout_seconds=0.05)

    assert (hardware.gpu, hardware.gpu_silent) == (None, True)
    assert "a GPU whose driver does not answer" in hardware.describe()


def test_disk_use_is_told_by_part_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "sessions" / "deep").mkdir(parents=True)
    (tmp_path / "sessions" / "deep" / "a").write_bytes(bytes(300))
    (tmp_path / "sessions" / "loop").symlink_to(tmp_path)
    (tmp_path / "index.db").write_bytes(bytes(20))

    assert [(part.name, part.bytes) for part in measure_disk_usage(tmp_path)] == [("sessions", 300), ("index.db", 20)]
    assert measure_disk_usage(tmp_path / "none") == ()
