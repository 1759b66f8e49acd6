"""A file fetched from a URL: with progress, resumed where it stopped, and kept only when its hash is right."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ollm.domain.errors import OllmError, StorageError, UsageError
from ollm.providers.local_models.model_files import hash_file
from ollm.system.atomic import make_private_directory, sync, sync_directory

Progress = Callable[[int, int], None]  # bytes so far, bytes in all (0 when not known)
BLOCK_BYTES = 1024 * 1024
READ_TIMEOUT_SECONDS = 60.0


def fetch_file(url: str, part: Path, progress: Progress) -> None:
    """Bring the whole of `url` into `part`, going on after what is there. What came stays there on a failure."""
    make_private_directory(part.parent)
    parts = urlsplit(url)
    if parts.scheme == "file":
        _copy(Path(unquote(parts.path)), part, progress)
    elif parts.scheme in ("http", "https"):
        _fetch_http(url, part, progress)
    else:
        raise UsageError(f"Cannot download {url}: only http, https and file URLs are supported.")


def keep_verified(part: Path, target: Path, digest: str) -> None:
    """`part` becomes `target` when its hash is the expected one; otherwise it is removed and that is said."""
    found = hash_file(part)
    if found != digest:
        part.unlink()
        raise StorageError(
            f"{target.name} has the wrong checksum (sha256 {found}, expected {digest}) and was deleted.",
            action="Try again; if it happens again, do not trust the source.",
        )
    descriptor = os.open(part, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
    part.chmod(0o600)
    part.replace(target)
    sync_directory(target.parent)


def require_disk_space(directory: Path, size: int) -> None:
    """Say before the work that the disk is too small for it."""
    free = shutil.disk_usage(directory).free
    if free < size:
        raise _make_disk_full_error(directory, size - free)


def _copy(source: Path, part: Path, progress: Progress) -> None:
    if not source.is_file():
        raise OllmError(f"{source} does not exist.", action="Check the URL (models.urls).")
    with _explain_disk_errors(part), source.open("rb") as file:
        _write(part, iter(lambda: file.read(BLOCK_BYTES), b""), 0, source.stat().st_size, progress)


def _fetch_http(url: str, part: Path, progress: Progress) -> None:
    import httpx2

    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        with (
            httpx2.Client(follow_redirects=True, timeout=httpx2.Timeout(READ_TIMEOUT_SECONDS, connect=10)) as client,
            client.stream("GET", url, headers=headers | {"Accept-Encoding": "identity"}) as response,
        ):
            if response.status_code == 416 and have:  # nothing after what we have: the hash will tell
                return
            begin = _find_start_byte(url, response.status_code, response.headers.get("content-range", ""), have)
            total = begin + int(response.headers.get("content-length") or 0)
            with _explain_disk_errors(part):
                require_disk_space(part.parent, total - begin)
                _write(part, response.iter_bytes(), begin, total, progress)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        why = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        raise OllmError(
            f"Download of {part.name.removesuffix('.part')} failed: {why}.",
            action="Run the same command again to resume.",
        ) from error


def _find_start_byte(url: str, status: int, content_range: str, have: int) -> int:
    """At which byte the answer begins; a server that does not know ranges begins again."""
    if status == 206 and content_range.startswith(f"bytes {have}-"):
        return have
    if status == 200:
        return 0
    raise OllmError(f"Cannot download {url}: the server returned {status}.", action="Check the URL (models.urls).")


def _write(part: Path, blocks: Iterator[bytes], begin: int, total: int, progress: Progress) -> None:
    with part.open("r+b" if begin else "wb") as file:
        if begin:
            file.seek(begin)
            file.truncate()
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
