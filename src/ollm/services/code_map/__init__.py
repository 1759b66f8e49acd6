"""What a project's code defines: outlines of files, single definitions, and a map of what is used most."""

from ollm.services.code_map.service import CodeMapService as CodeMapService
