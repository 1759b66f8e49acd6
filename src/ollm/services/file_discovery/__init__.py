"""File discovery (S6): the whole project, as git sees it, with `.ollmignore` on top."""

from ollm.services.file_discovery.service import Disposable, FileDiscoveryService, PathMatches

__all__ = ["Disposable", "FileDiscoveryService", "PathMatches"]
