"""The flags and settings of each model server that fix a fault found by `ollm doctor --model`.

`docs/providers.md` cites the page of each server's documentation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from ollm.domain.errors import ModelError
from ollm.domain.model_facts import Fault, ServerKind
from ollm.providers.base import Provider

TEMPLATE_FAULTS = ("system", "users", "results", "calls", "tools")
OWN_KINDS = ("ollama", "embedded")

# By server: for all template faults, for the tool parser, the window, thinking in the answer, and the prompt cache.
REMEDIES: dict[ServerKind, tuple[str, str, str, str, str]] = {
    "llama.cpp": (
        "--jinja --chat-template-file FILE, with a template that renders all roles and tools",
        "--jinja, without --skip-chat-parsing; if the model has no template for tools, --chat-template-file FILE",
        "-c N; several slots (-np) share it",
        "--reasoning-format auto",
        "--cache-prompt; for a model with a sliding window also --swa-full",
    ),
    "vllm": (
        "--chat-template FILE, with a template that renders all roles and tools",
        "--enable-auto-tool-choice --tool-call-parser NAME, the parser of the model's family",
        "--max-model-len N",
        "--reasoning-parser NAME, the parser of the model's family",
        "--enable-prefix-caching",
    ),
    "sglang": (
        "--chat-template FILE, with a template that renders all roles and tools",
        "--tool-call-parser NAME, the parser of the model's family",
        "--context-length N",
        "--reasoning-parser NAME, the parser of the model's family",
        "start it without --disable-radix-cache",
    ),
    "ollama": (
        "a Modelfile with a TEMPLATE that uses .System, .Messages, .Tools and .ToolCalls, then `ollama create`",
        "a Modelfile with a TEMPLATE that uses .Tools and .ToolCalls, then `ollama create`",
        "OLLAMA_CONTEXT_LENGTH=N for `ollama serve`, and no smaller num_ctx in the Modelfile",
        "a newer version of Ollama or of the model, which `ollama show` lists with thinking",
        "",
    ),
    "lm-studio": (
        "My Models, the gear of the model, Prompt Template",
        "a model with native tool use, or another Prompt Template (My Models, the gear of the model)",
        "lms load MODEL --context-length N",
        "Settings, Developer: separate reasoning_content and content in API responses",
        "",
    ),
    "tabbyapi": (
        "prompt_template in config.yml",
        "tool_format in config.yml",
        "max_seq_len and cache_size in config.yml",
        "reasoning: true in config.yml",
        "",
    ),
}


def find_remedy(kind: ServerKind, fault: Fault) -> str:
    """Return the server's own way to fix a fault, or "" if none is documented."""
    template, *others = REMEDIES.get(kind, ("", "", "", "", ""))
    if fault in TEMPLATE_FAULTS:
        return template
    return others[("parser", "window", "thinking", "prefix").index(fault)]


async def identify_server(provider: Provider) -> ServerKind:
    """Identify the kind of server by its model list."""
    if provider.name in OWN_KINDS:
        return cast("ServerKind", provider.name)
    with suppress(ModelError):
        await provider.models()
    return getattr(provider, "kind", None) or "other"
