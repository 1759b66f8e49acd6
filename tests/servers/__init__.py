"""Model servers for tests: real sockets, scripted answers, every request kept."""

from importlib import import_module

PLACES = {
    "Answer": "tests.servers.answers",
    "Request": "tests.servers.answers",
    "OllamaServer": "tests.servers.ollama",
    "ScriptedServer": "tests.servers.openai",
}


def __getattr__(name: str) -> object:
    """Looked up when used, so that a server can also be run as a module of its own."""
    if name not in PLACES:
        raise AttributeError(name)
    return getattr(import_module(PLACES[name]), name)
