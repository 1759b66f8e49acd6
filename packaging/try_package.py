"""Build the wheel and the source package, check them, and try each in empty environments of every Python at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13")
PIECE = 'data: {"choices": [{"index": 0, "delta": {"content": "Hello from the package."}, "finish_reason": null}]}\n\n'
END = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


class Server(BaseHTTPRequestHandler):
    """Answer every chat with one sentence, as a server with the OpenAI API."""

    def do_GET(self) -> None:
        self._answer("application/json", '{"object": "list", "data": [{"id": "sample-8b", "object": "model"}]}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer("text/event-stream", PIECE + END)

    def _answer(self, kind: str, body: str) -> None:
        self.send_response(200 if self.path.rstrip("/").endswith(("/models", "/chat/completions")) else 404)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def run(*command: str | Path, **options: object) -> str:
    """Run a program; a failure shows what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build(uv: Path) -> list[Path]:
    shutil.rmtree(DIST, ignore_errors=True)
    run(uv, "tool", "run", "--from", "build", "pyproject-build", "--outdir", DIST, cwd=ROOT)
    packages = sorted(path for path in DIST.iterdir() if path.suffix in {".whl", ".gz"})
    run(uv, "tool", "run", "twine", "check", "--strict", *packages)
    for package in packages:
        print(f"built {package.name}, {package.stat().st_size // 1024:,} kB", flush=True)
    return packages


def pythons(uv: Path) -> list[str]:
    """Return the interpreters that are installed here; nothing is downloaded for this."""
    search = [uv, "python", "find", "--no-python-downloads", "--system"]
    found = [subprocess.run([*search, version], capture_output=True, text=True, check=False) for version in VERSIONS]
    return [done.stdout.strip() for done in found if done.returncode == 0] or [sys.executable]


def try_out(uv: Path, package: Path, python: str, address: str) -> None:
    """Install a package alone and run the command in an empty home and folder."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv, home, project = place / "venv", place / "home", place / "project"
        run(uv, "venv", "-q", "--python", python, venv)
        run(uv, "pip", "install", "-q", "--python", venv / "bin" / "python", f"ollm-cli[all] @ {package.as_uri()}")
        home.mkdir()
        project.mkdir()
        environment = {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "OLLM_BASE_URL": address}
        version = run(venv / "bin" / "ollm", "--version", env=environment, cwd=project).strip()
        answer = run(venv / "bin" / "ollm", "-p", "Say hello", env=environment, cwd=project, stdin=subprocess.DEVNULL)
        shown = run(venv / "bin" / "ollm", "sessions", "view", env=environment, cwd=project)
        if "Hello from the package." not in answer or "Say hello" not in shown:
            sys.exit(f"{package.name} with {python}: the answer or its session is missing:\n{answer}{shown}")
        print(f"{package.name} with {python}: {version}, an answer, its session", flush=True)


def smoke(uv: Path, wheel: Path) -> None:
    """Run the tests of `ollm -p` with the installed wheel, away from the source."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = place / "venv" / "bin" / "python"
        run(uv, "venv", "-q", "--python", pythons(uv)[0], place / "venv")
        run(uv, "pip", "install", "-q", "--python", python, "--require-hashes", "-r", ROOT / "requirements" / "dev.txt")
        run(uv, "pip", "install", "-q", "--python", python, "--no-deps", wheel)
        shutil.copytree(ROOT / "tests", place / "checkout" / "tests")
        shutil.copy(ROOT / "pyproject.toml", place / "checkout")
        said = run(python, "-m", "pytest", "-q", "tests/cli/test_oneshot.py", cwd=place / "checkout")
        print(f"{wheel.name}: {said.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    uv = Path(sys.argv[1]).absolute()
    packages = build(uv)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for package in packages:
        for python in pythons(uv):
            try_out(uv, package, python, f"http://127.0.0.1:{server.server_port}/v1")
    smoke(uv, next(package for package in packages if package.suffix == ".whl"))


if __name__ == "__main__":
    main()
