"""Routes to what is set up: tools, policy, models, settings, and a picture of a session's window."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get, post
from litestar.params import Parameter

from ollm.daemon.bodies import BacktestBody, PolicyCheckBody
from ollm.daemon.context_picture import ContextPicture, draw_context
from ollm.daemon.service import DaemonService, parse_id
from ollm.daemon.setup_views import SetupViews

Folder = Annotated[str, Parameter(max_length=4096)]


@get("/sessions/{session_id:str}/context")
async def show_context(service: DaemonService, session_id: str) -> ContextPicture:
    """What the model is sent: parts, messages, checkpoints, what was cut, what was reused, how quick it was."""
    found = parse_id(session_id)
    service.ensure_known(found)
    return await draw_context(service, found)


@get("/tools")
async def list_tools(service: DaemonService, workspace: Folder = "") -> list[dict[str, Any]]:
    """The tools a conversation in this workspace would have."""
    return await SetupViews(service).list_tools(workspace)


@get("/policy")
async def show_policy(service: DaemonService, workspace: Folder = "") -> dict[str, Any]:
    """The rules in the order they are asked, and the grants."""
    return await SetupViews(service).show_policy(workspace)


@post("/policy/check", status_code=200)
async def check_policy(service: DaemonService, data: PolicyCheckBody) -> dict[str, Any]:
    """Whether a call would be allowed, and why. Nothing runs."""
    return await SetupViews(service).check_policy(data.workspace_path, data.tool, data.params)


@post("/policy/backtest", status_code=200)
async def backtest_policy(service: DaemonService, data: BacktestBody) -> dict[str, Any]:
    """What these rules (YAML, as in a config file) would have said to every recorded call."""
    return await SetupViews(service).backtest_policy(data.workspace_path, data.rules)


@get("/models")
async def list_models(service: DaemonService) -> dict[str, Any]:
    """The models that are installed, those of running servers, those to download, and what was learnt about each."""
    return await SetupViews(service).list_models()


@get("/settings")
async def show_settings(service: DaemonService, workspace: Folder = "") -> dict[str, Any]:
    """The settings in force, secrets hidden, with the origin of each that is set."""
    return await SetupViews(service).show_settings(workspace)


SETUP_HANDLERS = [show_context, list_tools, show_policy, check_policy, backtest_policy, list_models, show_settings]
