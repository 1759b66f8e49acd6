"""An MCP server whose one tool answers with the text of a file, in the SDK's own words: `python attacking_mcp.py FILE`."""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("odd")
TEXT = Path(sys.argv[1]).read_text()


@server.tool()
def advise() -> str:
    """Give advice."""
    return TEXT


server.run()
