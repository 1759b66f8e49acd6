"""`ollm web`: open the pages of the daemon in a browser, logged in by a link that works once."""

from __future__ import annotations

import asyncio
import sys

import click

from ollm.domain.errors import UsageError


@click.command()
@click.option("--print", "print_only", is_flag=True, help="Print the link instead of opening a browser.")
def web(print_only: bool) -> None:
    """Open your sessions in a browser.

    Starts the daemon when it is not running. The link works once, within a minute, on this machine. For another device,
    forward the port in the link: ssh -L PORT:127.0.0.1:PORT HOST, then open the link there.
    """
    try:
        import uvicorn  # noqa: F401 - the daemon's own process needs it; say so here
    except ImportError as error:
        from ollm.system.install_command import describe_extra_install

        raise UsageError("The pages need extra packages.", action=describe_extra_install("daemon")) from error
    url = asyncio.run(request_link())
    if print_only or not open_browser(url):
        print(url)


async def request_link() -> str:
    from ollm.cli.remote import connect_daemon
    from ollm.daemon.bodies import LinkReply

    async with connect_daemon() as client:
        return (await client.call("POST", "/web/ticket", type=LinkReply)).url


def open_browser(url: str) -> bool:
    """Start the browser of $BROWSER, or a graphical one; False if there is none."""
    import webbrowser

    from ollm.config.environment import copy_environment

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
