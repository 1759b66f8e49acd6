"""Model servers for tests: real sockets, scripted answers, every request kept."""

from tests.servers.answers import Answer, Request
from tests.servers.ollama import OllamaServer
from tests.servers.openai import ScriptedServer

__all__ = ["Answer", "OllamaServer", "Request", "ScriptedServer"]
