"""`ollm mcp`: list, add, remove and test MCP servers (the settings' `mcpServers`)."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from ollm.app.mcp_setup import create_mcp_servers, open_catalogue_file, read_configured_servers
from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.cli.options import format_table, parse_json, parse_pairs, print_result, shared_options, warn
from ollm.config.change import put_mapping_entry, unset_setting
from ollm.domain.errors import ExitCode, OllmError, UsageError
from ollm.domain.text import format_count
from ollm.extensions.mcp.catalogue import Catalogue
from ollm.extensions.mcp.login import LoginFile, log_in
from ollm.extensions.mcp.settings import convert_entry, find_foreign_files, read_foreign_file, read_server
from ollm.runtime.commands.mcp import render_prompt_command
from ollm.system.install_command import describe_extra_install
from ollm.system.processes import ProcessHost
from ollm.system.terminal_text import make_printable


@click.group()
def mcp() -> None:
    """List, add, remove and test MCP servers."""


@mcp.command("list")
@shared_options("process", "json")
def list_servers(process: ProcessScope, as_json: bool) -> None:
    """List the configured servers.

    Shows the tools of the last contact; no server is started.
    """
    servers, problems = read_configured_servers(process)
    warn(*problems)
    kept = open_catalogue_file(process)
    rows = [(server, kept.get(server)) for server in servers]
    document = [{"name": server.name, "place": server.place, **serialize_catalogue(found)} for server, found in rows]
    cells = [
        (
            server.name,
            "off" if server.disabled else "on",
            "not connected yet" if found is None else len(found.tools),
            server.place,
        )
        for server, found in rows
    ]
    table = format_table(("SERVER", "", "TOOLS", "WHERE"), cells, "No MCP servers configured.")
    print_result(document, table, as_json=as_json)


@mcp.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    help="As Claude Code has it: with http or sse the COMMAND is the URL.",
)
@click.option("--url", help="URL of an HTTP server.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True, help="Environment variable for the server.")
@click.option("--header", "headers", metavar="NAME:VALUE", multiple=True, help="HTTP header to send.")
@click.option("--cwd", metavar="DIR", help="Working directory (default: the workspace).")
@click.option("--timeout", type=float, help="Timeout of a call in seconds.")
@click.option("--force", is_flag=True, help="Replace an existing server.")
def add(
    name: str,
    command: tuple[str, ...],
    transport: str | None,
    url: str | None,
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    cwd: str | None,
    timeout: float | None,
    force: bool,
) -> None:
    """Add server NAME to your settings.

    Give a COMMAND after --, or --url. Values may contain ${VARIABLE}.
    """
    if transport in ("http", "sse") and command and not url:
        url, command = command[0], command[1:]
    entry: dict[str, Any] = {
        "type": transport if transport == "sse" else None,
        "url": url,
        "command": command[0] if command else None,
        "args": list(command[1:]),
        "env": parse_pairs(variables, "=", "--env"),
        "headers": {name: value.strip() for name, value in parse_pairs(headers, ":", "--header").items()},
        "cwd": cwd,
        "timeout": timeout,
    }
    entry = {key: value for key, value in entry.items() if value}
    save_server(name, entry, force=force)


@mcp.command("add-json")
@click.argument("name")
@click.argument("text", metavar="JSON")
@click.option("--force", is_flag=True, help="Replace the server of that name.")
def add_json(name: str, text: str, force: bool) -> None:
    """Add server NAME from its JSON, as other clients write it."""
    given = parse_json(text, "That")
    entry, notes = convert_entry(given) if isinstance(given, dict) else ({}, [])
    warn(*(f"{name}: {note}" for note in notes))
    save_server(name, entry, force=force)


@mcp.command("import")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--force", is_flag=True, help="Replace servers of the same names.")
@shared_options("workspace")
def import_servers(files: tuple[str, ...], force: bool, workspace: Path) -> None:
    """Copy servers from Claude Code, Cursor, VS Code or Gemini.

    They are added to your settings from FILE, or from where these clients keep them, here and in your home directory.
    """
    known = ProcessScope().settings.mcp_servers
    named = [Path(file) for file in files] or find_foreign_files(workspace, Path.home())
    taken: set[str] = set()
    for file in named:
        try:
            servers, notes = read_foreign_file(file, workspace)
        except UsageError as error:
            warn(str(error))
            continue
        warn(*(f"{file}: {note}." for note in notes))
        for name, entry in servers.items():
            if name in taken or (name in known and not force):
                more = "" if name in taken else "; --force replaces it"
                warn(f"{name} of {file} was skipped: there is a server of that name{more}.")
            elif fault := find_entry_fault(name, entry):
                warn(f"{name} of {file} was skipped: {fault}.")
            else:
                taken.add(name)
                save_server(name, entry, force=True)
    if not taken:
        raise UsageError("No server was imported.", action="Name a file: ollm mcp import FILE.")


def find_entry_fault(name: str, entry: dict[str, Any]) -> str:
    found = read_server(name, entry)
    return found if isinstance(found, str) else ""


def save_server(name: str, entry: dict[str, Any], *, force: bool) -> None:
    if fault := find_entry_fault(name, entry):
        raise UsageError(f"{name}: {fault}.", action="For example: ollm mcp add files -- npx some-server .")
    process = ProcessScope()
    if name in process.settings.mcp_servers and not force:
        raise UsageError(f"A server named {name} already exists.", action="Use --force to replace it.")
    file = put_mapping_entry(process.home, "mcpServers", name, entry)
    print(
        f"Added {name} to {file}. Its tools are named {name}__TOOL and ask before they run."
        f" Try it: `ollm mcp test {name}`."
    )
    if find_spec("mcp") is None:
        warn(f"MCP servers need an extra: {describe_extra_install('mcp')}.")


@mcp.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove server NAME from your settings."""
    file = unset_setting(ProcessScope().home, f"mcpServers.{name}")
    print(f"Removed {name} from {file}.")


@mcp.command()
@click.argument("name")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port the browser comes back to (default: free)."
)
@click.option("--no-browser", is_flag=True, help="Only print the address to open.")
@shared_options("process")
def login(name: str, port: int, no_browser: bool, process: ProcessScope) -> None:
    """Log in to HTTP server NAME in your browser (OAuth).

    The tokens are kept in ~/.ollm/mcp-logins.json, which only you can read, and renewed when they expire.
    """
    import webbrowser

    servers = {server.name: server for server in read_configured_servers(process)[0]}
    if name not in servers:
        raise UsageError(f"No MCP server named {name}; available: {', '.join(servers) or 'none'}.")
    server = servers[name]
    if not server.url:
        raise UsageError(f"{name} is a program: only servers with a url can be logged in to.")

    async def show(url: str) -> None:
        print(f"Open this address to log in to {name}:\n{make_printable(url)}", file=sys.stderr, flush=True)
        if not no_browser:
            await asyncio.to_thread(webbrowser.open, url)

    tools = asyncio.run(log_in(server, LoginFile(process.home.mcp_logins), show, port))
    print(f"Logged in to {name}: {format_count(tools, 'tool')}.")


@mcp.command()
@click.argument("name")
def logout(name: str) -> None:
    """Forget the login at server NAME."""
    if not LoginFile(ProcessScope().home.mcp_logins).remove(name):
        raise UsageError(f"There is no login at {name}.")
    print(f"Forgot the login at {name}.")


@mcp.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@shared_options("workspace", "json")
def test(names: tuple[str, ...], workspace: Path, as_json: bool) -> int:
    """Connect to servers and list what they offer.

    Exit code 1 if one fails.
    """
    found = asyncio.run(ask_servers(workspace, names))
    document = [{"name": name, **serialize_answer(answer)} for name, answer in found.items()]
    lines = [line for name, answer in found.items() for line in format_answer(name, answer)]
    print_result(document, "\n".join(lines) or "No MCP servers configured.", as_json=as_json)
    return ExitCode.FAILED if any(isinstance(answer, OllmError) for answer in found.values()) else ExitCode.DONE


async def ask_servers(workspace: Path, names: tuple[str, ...]) -> dict[str, Catalogue | OllmError]:
    """Query all servers at once for their catalogues. A server that fails gives its error."""
    process, host = ProcessScope(workspace=workspace), ProcessHost()
    sandbox = WorkspaceScope(process, workspace).create_sandbox()
    servers, problems = create_mcp_servers(process, workspace, lambda: host, lambda: sandbox, warn)
    warn(*problems)

    async def ask(name: str) -> Catalogue | OllmError:
        try:
            return await servers.ask_server(name)
        except OllmError as error:
            return error

    wanted = names or tuple(state.server.name for state in servers.list_states())
    try:
        return dict(zip(wanted, await asyncio.gather(*(ask(name) for name in wanted)), strict=True))
    finally:
        await servers.close()
        await host.close()
        sandbox.close()


def serialize_catalogue(found: Catalogue | None) -> dict[str, Any]:
    return {
        "tools": None if found is None else [tool.name for tool in found.tools],
        "prompts": None if found is None else [prompt.name for prompt in found.prompts],
        "resources": None if found is None else found.resources,
    }


def serialize_answer(answer: Catalogue | OllmError) -> dict[str, Any]:
    if isinstance(answer, OllmError):
        return {"ok": False, "error": str(answer), **serialize_catalogue(None), "leftOut": []}
    return {"ok": True, "error": None, **serialize_catalogue(answer), "leftOut": answer.left_out}


def format_answer(name: str, answer: Catalogue | OllmError) -> list[str]:
    if isinstance(answer, OllmError):
        return [f"{name}: {make_printable(str(answer))}"]
    lines = [f"{name}: {format_count(len(answer.tools), 'tool')}, {format_count(len(answer.prompts), 'prompt')}"]
    lines += [f"  {tool.name}  {make_printable(tool.description)}" for tool in answer.tools]
    lines += [
        make_printable(f"  {render_prompt_command(name, prompt)}  {prompt.description}") for prompt in answer.prompts
    ]
    lines += [f"  {name}__read_resource  reads its resources"] if answer.resources else []
    return [*lines, *(f"  {make_printable(sentence)}" for sentence in answer.left_out)]
