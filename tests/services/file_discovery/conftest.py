"""Services of discovery: one as people have it, one without built-in rules, both without a person's own git settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.services.file_discovery.service import FileDiscoveryService


@pytest.fixture
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileDiscoveryService]:
    made = FileDiscoveryService(FileDiscoverySettings(), tmp_path_factory.mktemp("home"))
    yield made
    made.close()


@pytest.fixture
def plain(tmp_path_factory: pytest.TempPathFactory) -> FileDiscoveryService:
    """Without built-in rules."""
    return FileDiscoveryService(FileDiscoverySettings(builtin_ignores=()), tmp_path_factory.mktemp("home"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory outside any repository."""
    made = tmp_path / "project"
    made.mkdir()
    return made
