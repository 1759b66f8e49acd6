"""`ollm web` and `ollm sessions attach`: sessions of the daemon in a browser or a terminal."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import click

from ollm.app.process import ProcessScope
from ollm.cli.daemon import connect_daemon
from ollm.cli.options import format_table, print_result, shared_options, warn
from ollm.config.environment import copy_environment
from ollm.daemon.bodies import DeviceLine, DeviceRights, LinkReply, PairReply
from ollm.domain.clock import format_age
from ollm.domain.errors import UsageError
from ollm.system.install_command import describe_extra_install

T = TypeVar("T")


@click.group(invoke_without_command=True)
@click.option("--print", "print_only", is_flag=True, help="Print the link instead of opening a browser.")
@click.option(
    "--pair", is_flag=True, help="Pair a device: print a code for daemon.publicUrl, good once and for a minute."
)
@click.option("--name", default="", help="Pair a device of this name (default: phone or browser).")
@click.option("--read-only", is_flag=True, help="Pair a device that may read, and send nothing.")
@click.option("--no-grants", is_flag=True, help="Pair a device whose answers count once and set no rule.")
@click.pass_context
def web(context: click.Context, /, print_only: bool, pair: bool, **rights: Any) -> None:
    """Open your sessions in a browser.

    Starts the daemon when it is not running. The link works once, within a minute, on this machine. Other devices are
    paired: see docs/remote.md.
    """
    if context.invoked_subcommand:
        return
    try:
        import uvicorn  # noqa: F401 - the daemon's own process needs it; say so here
    except ImportError as error:
        raise UsageError("The pages need extra packages.", action=describe_extra_install("daemon")) from error
    if pair or any(rights.values()):
        show_code(rights)
        return
    url = request("POST", "/web/ticket", LinkReply).url
    if print_only or not open_browser(url):
        print(url)


def show_code(rights: dict[str, Any]) -> None:
    code = request("POST", "/web/codes", PairReply, DeviceRights(**rights))
    with suppress(ImportError):  # Without the package, the user types the code.
        import segno

        segno.make(code.url, error="l", micro=False).terminal(compact=True)
    warn("open the address on the device and type the code, or scan the QR code, within a minute:")
    print(f"{code.url}\n{code.code}")


@web.group(invoke_without_command=True)
@shared_options("json")
@click.pass_context
def devices(context: click.Context, as_json: bool) -> None:
    """List the paired devices."""
    if context.invoked_subcommand:
        return
    found = request("GET", "/web/devices", list[DeviceLine])
    rows = [
        (
            one.name,
            format_age(int(one.last_seen * 1000)),
            one.address,
            "read-only" if one.read_only else "no grants" if one.no_grants else "",
        )
        for one in found
    ]
    empty = "No paired devices. Pair one with `ollm web --pair`."
    print_result(found, format_table(("DEVICE", "LAST SEEN", "ADDRESS", "RIGHTS"), rows, empty), as_json=as_json)


@devices.command()
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Revoke all devices.")
def revoke(name: str | None, every: bool) -> None:
    """Revoke the device NAME; what it has open ends."""
    if bool(name) == every:
        raise UsageError("Name a device, or use --all.", action="List them with `ollm web devices`.")
    request("DELETE", f"/web/devices?name={quote(name or '')}", type(None))
    print("Revoked all devices." if every else f"Revoked {name}.")


def request(method: str, path: str, kind: type[T], body: Any = None) -> T:
    """Ask the daemon, which is started if needed."""

    async def ask() -> T:
        async with connect_daemon() as client:
            return await client.call(method, path, body, type=kind)

    return asyncio.run(ask())


def open_browser(url: str) -> bool:
    """Open a URL in $BROWSER or a graphical browser. Returns False if there is none."""
    import webbrowser

    try:
        found = webbrowser.get()
    except webbrowser.Error:
        found = None
    in_terminal = isinstance(found, webbrowser.GenericBrowser) and not copy_environment().get("BROWSER")
    if found is None or in_terminal or not found.open(url):
        print("No browser found. Open this link within a minute:", file=sys.stderr)
        return False
    print("Opened in your browser. The link works once; run `ollm web` again for another.", file=sys.stderr)
    return True


@click.command()
@shared_options("session")
def attach(session: str | None) -> int:
    """Open a session in the daemon, with its running turn and its questions."""
    from ollm.cli.chat import chat

    files = ProcessScope().session_files
    place = files.describe_session(files.places.find(session)).metadata.workspace if session else None
    chosen = ["--session", session, *(["--workspace", place] if place else [])] if session else ["--continue"]
    return int(chat.main(["--daemon", *chosen], standalone_mode=False) or 0)
