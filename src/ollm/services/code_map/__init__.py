"""Definitions in a project's code: outlines of files, single definitions, and a map of the most used ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.code_map.service import CodeMapService as CodeMapService

__getattr__, __dir__ = lazy_exports(__name__, {"service": ("CodeMapService",)})
