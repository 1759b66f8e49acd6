"""All models there are: installed, on the servers that run, and to be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ollm.domain.errors import NoServerError

if TYPE_CHECKING:
    from ollm.app.process import ProcessScope


async def collect_models(process: ProcessScope, report: Callable[[str], None]) -> dict[str, Any]:
    """The models that are installed, those of the servers that run, and those that can be downloaded."""
    from ollm.providers.local_models.model_files import CATALOGUE, list_installed

    files = list_installed(process.home.models)
    names = {file.name for file in files}
    try:
        servers = await process.providers.list_servers()
    except NoServerError as error:
        report(str(error))
        servers = await process.providers.discover()
    for server in servers:
        await server.provider.close()
    return {
        "files": [{"name": file.name, "size": file.size, "path": str(file.path)} for file in files],
        "servers": [
            {
                "label": server.place.label,
                "baseUrl": server.provider.base_url,
                "models": [{"name": info.name, "size": info.size} for info in server.models],
            }
            for server in servers
        ],
        "catalogue": [
            {"name": model.name, "about": model.about, "size": model.size, "installed": model.name in names}
            for model in CATALOGUE
        ],
    }
