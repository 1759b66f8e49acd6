"""Detection of a server's kind, the details it adds about its models, and its own way to fix a fault.

`server_remedies.json` has the flags and settings by server; `docs/providers.md` cites the page of its documentation.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from ollm.domain.errors import ModelError
from ollm.domain.model_facts import Fault, ServerKind
from ollm.providers.base import LoadState, ModelInfo, Provider, as_entries, as_mapping, as_text, read_sampling
from ollm.providers.server_errors import as_int

Kind = ServerKind
LLAMA_CPP: Final = "llama.cpp"
VLLM: Final = "vllm"
SGLANG: Final = "sglang"
LM_STUDIO: Final = "lm-studio"
TEMPLATE_FAULTS = ("system", "users", "results", "calls", "tools")
REMEDIES = Path(__file__).with_name("server_remedies.json")
PROXY_PAGE = "/model/info"
SERVED_PAGE = "/info"
PROXY_WINDOW_KEYS = ("max_input_tokens", "max_tokens")
WINDOW_KEYS = ("max_total_tokens", "max_model_len", "context_length", "max_input_tokens", "max_input_length")
OWNERS: dict[str, Kind] = {
    "llamacpp": LLAMA_CPP,
    "vllm": VLLM,
    "sglang": SGLANG,
    "organization_owner": LM_STUDIO,
    "tabbyAPI": "tabbyapi",
}
LLAMA_SWAP: Final = "llama-swap"
LOAD_STATES: dict[str, LoadState] = {
    "loaded": "loaded",
    "ready": "loaded",
    "sleeping": "sleeping",
    "loading": "loading",
    "starting": "loading",
    "downloading": "downloading",
    "unloaded": "unloaded",
    "not-loaded": "unloaded",
    "stopping": "unloaded",
    "stopped": "unloaded",
}

# The pages of servers that load models on request: the list of load states, its key for the entries and for a name, the
# states of an entry without one and of a model that is left out, the pages that load and unload, and the address of a
# page about one model.
HOST_PAGES: dict[str, dict[str, str]] = {
    LLAMA_CPP: {  # Without its own model, it runs a server for each model.
        "states": "/models",
        "load": "/models/load",
        "unload": "/models/unload",
        "about": "{page}{joint}model={model}&autoload=false",
        "watch": "yes",  # A request would wait in silence, so the load state is watched instead.
    },
    LLAMA_SWAP: {
        "states": "/running",
        "entries": "running",
        "name": "model",
        "unlisted": "unloaded",
        "load": "/upstream/{model}/health",
        "unload": "/api/models/unload/{model}",
        "about": "/upstream/{model}{page}",
    },
    LM_STUDIO: {
        "states": "/api/v0/models",
        "load": "/api/v1/models/load",
        "unload": "/api/v1/models/unload",
    },
    "ollama": {
        "states": "/api/ps",
        "entries": "models",
        "name": "name",
        "listed": "loaded",
        "unlisted": "unloaded",
        "load": "/api/generate",
        "unload": "/api/generate",
    },
}


def split_base_url(url: str) -> tuple[str, str]:
    """Split a URL into the server's root and the path of its API, `/v1` for a bare host."""
    trimmed = url.rstrip("/")
    root, _, last = trimmed.rpartition("/")
    if last.startswith("v") and last[1:].isdecimal():
        return root, f"/{last}"
    has_path = "/" in trimmed.partition("://")[2]
    return trimmed, "" if has_path else "/v1"


def detect_kind(listed: Any) -> Kind:
    """Detect the kind of server by the owners of its models."""
    owners = [as_text(entry.get("owned_by")) for entry in as_entries(as_mapping(listed).get("data"))]
    return next((OWNERS[owner] for owner in owners if owner in OWNERS), "other")


def find_host_pages(listed: Any, kind: Kind) -> dict[str, str]:
    """Find the pages of a server that loads models on request, by its list. Returns an empty mapping for any other."""
    entries = as_entries(as_mapping(listed).get("data"))
    swaps = any(entry.get("owned_by") == LLAMA_SWAP for entry in entries)
    routes = kind != LLAMA_CPP or any("status" in entry for entry in entries)
    return HOST_PAGES.get(LLAMA_SWAP if swaps else kind if routes else "", {})


def parse_model_infos(listed: Any) -> list[ModelInfo]:
    return [
        _parse_model_info(entry) for entry in as_entries(as_mapping(listed).get("data")) if as_text(entry.get("id"))
    ]


def _parse_model_info(entry: dict[str, Any]) -> ModelInfo:
    meta = as_mapping(entry.get("meta"))
    arguments = _read_arguments(as_mapping(entry.get("status")).get("args"))
    window = as_int(entry.get("max_model_len")) or as_int(meta.get("n_ctx"))
    return ModelInfo(
        name=as_text(entry.get("id")),
        aliases=tuple(alias for alias in entry.get("aliases") or () if isinstance(alias, str)),
        size=as_int(meta.get("size")) or None,
        file=arguments.get("--model", ""),
        window=window or _compute_window(arguments) or None,
        window_why="" if window else "by the arguments of its server",
        trained_window=as_int(meta.get("n_ctx_train")) or None,
        parameters=as_int(meta.get("n_params")) or None,
    )


def _read_arguments(listed: Any) -> dict[str, str]:
    """Read the arguments with which a llama.cpp router starts a model: the next one by each, which may be a value."""
    words = [as_text(word) for word in listed] if isinstance(listed, list) else []
    return dict(zip(words, [*words, ""][1:], strict=True))


def _compute_window(arguments: dict[str, str]) -> int:
    """Compute the window of one request. Without a common cache the requests at a time share it."""
    window, places = (arguments.get(name, "") for name in ("--ctx-size", "--parallel"))
    shared = int(places) if places.isdecimal() and "--kv-unified" not in arguments else 1
    return int(window) // max(1, shared) if window.isdecimal() else 0


def add_server_details(info: ModelInfo, kind: Kind, details: Any) -> ModelInfo:
    """Add facts from the server's own pages: the window of a slot, vision."""
    if kind == LLAMA_CPP:
        properties = as_mapping(details)
        served = as_mapping(properties.get("default_generation_settings"))
        window = as_int(served.get("n_ctx"))
        return replace(
            info,
            window=window or info.window,
            window_why="" if window else info.window_why,
            sampling=read_sampling(as_mapping(served.get("params"))),
            vision=bool(as_mapping(properties.get("modalities")).get("vision")),
            template=as_text(properties.get("chat_template")),
            file=as_text(properties.get("model_path")) or info.file,
            build=as_text(properties.get("build_info")),
        )
    if kind == LM_STUDIO:
        found = next((e for e in as_entries(as_mapping(details).get("data")) if e.get("id") == info.name), {})
        return replace(
            info,
            window=as_int(found.get("loaded_context_length")) or None,
            trained_window=as_int(found.get("max_context_length")) or None,
            vision=found.get("type") == "vlm",
            architecture=as_text(found.get("arch")),
        )
    return info


def choose_window_page(listed: Any, model: str) -> str | None:
    """Return the page that may state the window of the server with this model list. Returns None if no page is likely
    to exist, so that a turn never waits for a missing page."""
    entries = as_entries(as_mapping(listed).get("data"))
    if not entries:
        return SERVED_PAGE  # Transformers and old versions of text-generation-inference list nothing.
    owner = next((as_text(entry.get("owned_by")) for entry in entries if entry.get("id") == model), "")
    if owner == "openai":
        return PROXY_PAGE  # All models of litellm have this owner.
    return SERVED_PAGE if owner and owner == model else None


def add_window_of_page(info: ModelInfo, page: Any) -> ModelInfo:
    """Add the window reported by `/model/info` (litellm) or `/info` (TGI and others)."""
    proxied = served = as_mapping(page)
    entries = [e for e in as_entries(proxied.get("data")) if as_text(e.get("model_name")) == info.name]
    described = as_mapping(entries[0].get("model_info")) if entries else {}
    window = next((as_int(described.get(key)) for key in PROXY_WINDOW_KEYS if as_int(described.get(key))), 0)
    window = window or next((as_int(served.get(key)) for key in WINDOW_KEYS if as_int(served.get(key))), 0)
    return replace(info, window=window or None)


def find_remedy(kind: ServerKind, fault: Fault) -> str:
    """Return the server's own way to fix a fault, or "" if none is documented."""
    known: dict[str, dict[str, str]] = msgspec.json.decode(REMEDIES.read_bytes())
    return known.get(kind, {}).get("template" if fault in TEMPLATE_FAULTS else fault, "")


async def identify_server(provider: Provider) -> ServerKind:
    """Identify the kind of server by its model list."""
    if provider.name in ("ollama", "embedded"):
        return cast("ServerKind", provider.name)
    with suppress(ModelError):
        await provider.models()
    return getattr(provider, "kind", None) or "other"
