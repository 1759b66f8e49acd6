"""`ollm models fit`, with GGUF files written here byte by byte, and once with llama.cpp's own log."""

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ollm
from tests.cli.forked import run_aside
from tests.integration import packages
from tests.integration.model_servers import find_gguf
from tests.servers.ollama import OllamaServer

GIB = 2**30
DENSE = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.block_count": 32,
    "llama.context_length": 131072,
    "llama.embedding_length": 4096,
    "llama.feed_forward_length": 14336,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
    "tokenizer.ggml.tokens": ["a", "bc"],
}


def pack_text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def pack_value(value: Any) -> bytes:
    if isinstance(value, list):
        kind = 8 if isinstance(value[0], str) else 4
        body = b"".join(pack_text(one) if kind == 8 else struct.pack("<I", one) for one in value)
        return struct.pack("<IIQ", 9, kind, len(value)) + body
    return struct.pack("<I", 8) + pack_text(value) if isinstance(value, str) else struct.pack("<II", 4, value)


def write_model(path: Path, facts: dict[str, Any], size: int = 0, parameters: int = 8 * 10**9) -> Path:
    """A file with one tensor; its weights are a hole."""
    keys = b"".join(pack_text(key) + pack_value(value) for key, value in facts.items())
    tensor = pack_text("blk.0.w") + struct.pack("<IQQIQ", 2, parameters // 1000, 1000, 0, 0)
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, len(facts)) + keys + tensor
    path.write_bytes(data)
    os.truncate(path, max(size, len(data) + 64))
    return path


def rename(architecture: str, **sizes: Any) -> dict[str, Any]:
    """The dense model as another architecture, with other sizes."""
    same = {key.replace("llama.", f"{architecture}."): value for key, value in DENSE.items()}
    more = {f"{architecture}.{key.replace('__', '.')}": value for key, value in sizes.items()}
    return same | {"general.architecture": architecture} | more


def fit(directory: Path, *arguments: str, gpu: str = "", **variables: str) -> Any:
    """The finished command on a machine with this line of nvidia-smi; it sees no server unless told."""
    programs = directory / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\necho '{gpu}'\n")
    (programs / "nvidia-smi").chmod(0o755)
    work = directory / "work"
    work.mkdir(exist_ok=True)
    told = {"PATH": f"{programs}:/usr/bin:/bin", "OLLM_BASE_URL": "http://127.0.0.1:9", **variables}
    return ollm("models", "fit", *arguments, home=directory / "home", cwd=work, **told)


def read_fit(directory: Path, *arguments: str, **options: str) -> Any:
    done = fit(directory, *arguments, "--json", **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["models"][0]


def test_a_model_that_fits_the_gpu_comes_with_its_windows_speed_and_commands(tmp_path: Path) -> None:
    file = write_model(tmp_path / "eight b.gguf", DENSE, 4_900_000_000)
    card = "NVIDIA GeForce RTX 4090, 24564"

    found = read_fit(tmp_path, str(file), gpu=card)
    text = fit(tmp_path, str(file), gpu=card).stdout

    assert found["kvBytesAt8192"] == {"f16": GIB, "q8_0": GIB * 17 // 32, "q4_0": GIB * 9 // 32}
    assert found["shape"] | {"layers": 32, "heads": 32, "kvHeads": 8, "parameters": 8 * 10**9} == found["shape"]
    own = found["own"]
    assert (own["quant"], own["runsOn"], own["kvType"], own["window"]) == ("Q4_K_M", "GPU", "f16", 131072)
    assert own["tokensPerSecond"] == pytest.approx(0.7 * 1008e9 / 4.9e9, rel=0.01)
    assert found["bestQuant"] == "Q8_0"
    path = f"'{file}'"
    assert f"llama.cpp llama-server -m {path} -c 131072 -np 1 --jinja\n" in text
    assert f"vLLM      vllm serve {path} --max-model-len 131072\n" in text
    assert "Ollama    OLLAMA_CONTEXT_LENGTH=131072 ollama serve\n" in text
    assert "an estimate: 70% of the bandwidth (NVIDIA GeForce RTX 4090: 1,008 GB/s by data sheet; memory: " in text


def test_a_smaller_card_gets_a_smaller_kv_cache(tmp_path: Path) -> None:
    file = write_model(tmp_path / "eight.gguf", DENSE, 4_900_000_000)

    found = read_fit(tmp_path, str(file), gpu="NVIDIA GeForce RTX 3070, 8192")

    own, windows = found["own"], found["own"]["windows"]
    assert (own["runsOn"], own["kvType"]) == ("GPU", "q8_0")
    assert own["window"] == windows["q8_0"] < windows["q4_0"]
    assert "-fa on -ctk q8_0 -ctv q8_0" in found["commands"]["llama.cpp"]
    assert "--kv-cache-dtype fp8" in found["commands"]["vLLM"]
    assert "OLLAMA_KV_CACHE_TYPE=q8_0" in found["commands"]["Ollama"]


def test_experts_that_do_not_fit_the_gpu_stay_in_memory(tmp_path: Path) -> None:
    mixture = rename("qwen3moe", expert_count=128, expert_used_count=8, expert_feed_forward_length=768)
    file = write_model(tmp_path / "moe.gguf", mixture, 12 * 10**9, parameters=40 * 10**9)

    found = read_fit(tmp_path, str(file), gpu="NVIDIA GeForce RTX 3080, 10240")

    assert found["own"]["runsOn"] == "GPU+CPU"
    assert found["own"]["tokensPerSecond"] > 10
    assert "vLLM" not in found["commands"]


SLIDING = {"attention__sliding_window": 1024, "attention__key_length": 128, "attention__value_length": 128}


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        (rename("gemma3", **SLIDING), 2048 * (5 * 8192 + 27 * 1536)),  # 27 of 32 layers see 1,024 and a batch
        (rename("llama", **SLIDING), 2048 * 32 * 8192),  # llama.cpp lets no layer of it slide
        (rename("x", **SLIDING, attention__sliding_window_pattern=[1, 1, 1, 0]), 2048 * (8 * 8192 + 24 * 1536)),
        (rename("x", attention__head_count_kv=[8, 0]), 2048 * 16 * 8192),
        (rename("x", full_attention_interval=4), 2048 * 8 * 8192),
        (
            rename("x", attention__head_count_kv=1, attention__key_length=576, attention__key_length_mla=192),
            576 * 2**18,
        ),
        (rename("x", attention__shared_kv_layers=12, nextn_predict_layers=2), 2048 * 18 * 8192),
    ],
)
def test_the_kv_cache_follows_the_kind_of_attention(tmp_path: Path, facts: dict[str, Any], values: int) -> None:
    file = write_model(tmp_path / "model.gguf", facts)

    assert read_fit(tmp_path, str(file))["kvBytesAt8192"]["f16"] == 2 * values


def test_a_split_model_is_counted_whole(tmp_path: Path) -> None:
    first = write_model(tmp_path / "big-00001-of-00002.gguf", DENSE, 3 * 10**9)
    second = write_model(tmp_path / "big-00002-of-00002.gguf", {"split.no": 1}, 10**9)

    assert read_fit(tmp_path, str(first))["shape"]["size"] == 4 * 10**9
    assert "name the part 00001" in fit(tmp_path, str(second)).stderr
    second.unlink()
    assert "big-00002-of-00002.gguf is not a valid GGUF model: No such file" in fit(tmp_path, str(first)).stderr


def test_a_file_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    whole = write_model(tmp_path / "whole.gguf", DENSE).read_bytes()
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pack_text("list")
    wrong = {
        "it ends too early": whole[:200],
        "it ends before its last weights": whole[:-64],
        "it does not start with GGUF": b"PK\3\4 an archive",
        "a list in it is too long": head + struct.pack("<IIQ", 9, 8, 2**60),
        "a text in it is too long": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**60),
        "too many tensors or keys": b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60),
    }
    for reason, data in wrong.items():
        (tmp_path / "wrong.gguf").write_bytes(data)
        done = fit(tmp_path, str(tmp_path / "wrong.gguf"))
        assert (done.returncode, reason in done.stderr, done.stdout) == (4, True, ""), reason
    write_model(tmp_path / "wrong.gguf", {"general.architecture": "clip"})
    clip = fit(tmp_path, str(tmp_path / "wrong.gguf")).stderr
    assert "it does not say clip.context_length.\n  Name the file of a language model." in clip
    write_model(tmp_path / "wrong.gguf", rename("llama", block_count=2**31))
    assert "layers, not 2147483648" in fit(tmp_path, str(tmp_path / "wrong.gguf")).stderr
    os.mkfifo(tmp_path / "pipe")
    assert "No model or file" in fit(tmp_path, str(tmp_path / "pipe")).stderr
    assert "Is a directory" in fit(tmp_path, str(tmp_path)).stderr
    assert "No model or file 'gone.gguf' here." in fit(tmp_path, "gone.gguf").stderr


def test_models_are_found_by_name_and_all_are_listed_without_one(tmp_path: Path) -> None:
    models = tmp_path / "home" / "models"
    models.mkdir(parents=True)
    write_model(models / "mine.gguf", DENSE)
    (models / "broken.gguf").write_bytes(b"")

    listed = fit(tmp_path)

    assert read_fit(tmp_path, "mine")["path"] == str(models / "mine.gguf")
    assert re.search(r"^mine +\d+ B +\d+K", listed.stdout, re.MULTILINE)
    assert "broken.gguf is not a valid GGUF model" in listed.stderr
    unknown = fit(tmp_path, "nowhere")
    assert unknown.returncode == 1
    assert "No model or file 'nowhere' here.\n  See `ollm models list`, or name a GGUF file." in unknown.stderr
    assert "`ollm models get smollm2`" in fit(tmp_path, "smollm2").stderr


class TellingServer(OllamaServer):
    told: dict[str, Any] = DENSE

    def page(self, request: Any) -> tuple[int, Any]:
        status, page = super().page(request)
        return status, page | {"model_info": self.told} if request.path == "/api/show" else page


async def test_a_model_of_a_server_is_judged_by_what_the_server_says(tmp_path: Path) -> None:
    async with TellingServer(model="qwen3:8b") as server:
        found = json.loads((await run_aside(fit_served, tmp_path, server.base_url)).stdout)["models"][0]
        server.told = {"general.architecture": "llama"}
        silent = await run_aside(fit_served, tmp_path, server.base_url)
        server.told = {}
        unnamed = await run_aside(fit_served, tmp_path, server.base_url)

    assert found["kvBytesAt8192"]["f16"] == GIB
    assert list(found["commands"]) == ["Ollama"]
    assert "does not say enough about qwen3:8b" in silent.stderr
    assert "on the machine that has the file" in silent.stderr
    assert "does not say enough about qwen3:8b: it does not name its architecture." in unnamed.stderr


def test_a_small_model_is_advised_no_quant_that_spoils_it(tmp_path: Path) -> None:
    path = write_model(tmp_path / "small.gguf", DENSE, size=2 * GIB, parameters=35 * 10**8)
    done = fit(tmp_path, str(path), "--json")
    found = json.loads(done.stdout)

    assert found["models"][0]["bestQuant"] in ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M")
    assert found["machine"]["memoryBandwidth"] > 2e9, "the best of many short copies, also on a busy machine"


def fit_served(directory: Path, address: str) -> Any:
    return fit(directory, "qwen3:8b", "--json", OLLM_BASE_URL=address)


@pytest.mark.skipif(not packages.WANTED, reason="needs a real llama.cpp: make integration")
@pytest.mark.parametrize("kind", ["f16", "q8_0", "q4_0"])
def test_the_kv_cache_is_what_llama_cpp_allocates(tmp_path: Path, kind: str) -> None:
    program = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
    if program is None:
        pytest.skip("llama-server is not on the PATH")
    line = [program, "-v", "-m", str(find_gguf()), "-c", "8192", "-np", "1", "-ctk", kind, "-ctv", kind, "--port", "0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        sizes = (re.search(r"llama_kv_cache: size = +([\d.]+) MiB", logged) for logged in run.stdout)
        allocated = next(float(size[1]) for size in sizes if size)
        run.kill()

    assert read_fit(tmp_path, str(find_gguf()))["kvBytesAt8192"][kind] / 2**20 == pytest.approx(allocated, rel=0.05)
