"""File discovery (S6): the whole project, as git sees it, with `.ollmignore` on top.

The walk and its rules are plain classes and strings: files are listed before what the service needs is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.file_discovery.service import Disposable as Disposable
    from ollm.services.file_discovery.service import FileDiscoveryService as FileDiscoveryService
    from ollm.services.file_discovery.service import PathMatches as PathMatches

__getattr__, __dir__ = lazy_exports(__name__, {"service": ("Disposable", "FileDiscoveryService", "PathMatches")})
