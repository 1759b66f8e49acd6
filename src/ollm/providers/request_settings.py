"""Request settings of a model (`models.NAME`): which ones apply, and the fields that each kind of server takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ollm.config.settings import ModelSettings
from ollm.domain.errors import UsageError
from ollm.domain.messages import JsonObject, PromptMessage
from ollm.domain.text import VARIABLE_PATTERN, expand_variables
from ollm.providers.base import is_called, name_model
from ollm.providers.server_kind import LLAMA_CPP, LM_STUDIO, SGLANG, VLLM, Kind

DEFAULT_ENTRY = "default"
NO_THINK = "/no_think"
TEMPLATE_KINDS = (LLAMA_CPP, VLLM, SGLANG)  # These servers pass `chat_template_kwargs` to the model's template.
REPEAT_PENALTY_KINDS = (LLAMA_CPP, LM_STUDIO)  # Other servers call it `repetition_penalty`.


def find_model_settings(models: Mapping[str, Any], model: str) -> ModelSettings | None:
    """Combine the entries for a model: `default`, then globs, then its own name, each over the ones before."""
    entries = [(_rank_entry(name, model), entry) for name, entry in models.items() if name != "urls"]
    chosen: dict[str, Any] = {}
    for _, entry in sorted((pair for pair in entries if pair[0]), key=lambda pair: pair[0]):
        joined = {key: {**chosen.get(key, {}), **entry[key]} for key in ("extra", "headers") if key in entry}
        chosen = {**chosen, **entry, **joined}
    return msgspec.convert(chosen, ModelSettings) if chosen else None


def _rank_entry(name: str, model: str) -> int:
    """Rank how closely an entry names the model; 0 if it does not."""
    if name == DEFAULT_ENTRY:
        return 1
    if is_called(model, name):
        return 3 + (name == model)  # The full name is the closest.
    return 2 if fnmatchcase(name_model(model), name) or fnmatchcase(model, name) else 0


def list_unmatched(models: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """List the keys under `models` that stand for none of these models."""
    keys = (key for key in models if key not in ("urls", DEFAULT_ENTRY))
    return [key for key in keys if not any(_rank_entry(key, name) for name in names)]


def expand_headers(headers: Mapping[str, str], environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Fill in variables. Returns the headers, and the variables' values, which must never be shown."""
    secrets: list[str] = []
    for name, value in headers.items():
        for found in VARIABLE_PATTERN.finditer(value):
            if found[1] not in environment and found[2] is None:
                raise UsageError(
                    f"The header {name} in models needs {found[1]}, but that variable is not set.",
                    action=f"Set {found[1]} or remove the header.",
                )
            secrets.append(environment.get(found[1], ""))
    return {name: expand_variables(value, environment) for name, value in headers.items()}, secrets


def add_thinking_word(messages: list[PromptMessage], settings: ModelSettings) -> list[PromptMessage]:
    """Add `/no_think` to the first message, so that the prompt keeps its beginning."""
    if settings.thinking != NO_THINK or not messages:
        return messages
    first = msgspec.structs.replace(messages[0], content=f"{messages[0].content}\n\n{NO_THINK}")
    return [first, *messages[1:]]


def add_openai_fields(body: JsonObject, settings: ModelSettings, kind: Kind) -> JsonObject:
    """Add the settings to a chat request; fields that it has already stay."""
    penalty = "repeat_penalty" if kind in REPEAT_PENALTY_KINDS else "repetition_penalty"
    fields = {**build_sampling_fields(settings, penalty), **_build_thinking_fields(settings, kind)}
    if settings.stop:
        fields["stop"] = list(settings.stop)
    return merge_fields({**fields, **body}, settings.extra)


def add_ollama_fields(body: JsonObject, settings: ModelSettings) -> JsonObject:
    """Add the settings to a request to Ollama, which takes most as `options`."""
    options = {**build_sampling_fields(settings, "repeat_penalty"), **body["options"]}
    if settings.stop:
        options["stop"] = list(settings.stop)
    think = settings.thinking == "on" if settings.thinking in ("on", "off") else None
    if settings.reasoning_effort and think is not False:
        body = {**body, "think": settings.reasoning_effort}
    elif think is not None:
        body = {**body, "think": think}
    return merge_fields({**body, "options": options}, settings.extra)


def build_sampling_fields(settings: ModelSettings, penalty: str) -> JsonObject:
    fields = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "min_p": settings.min_p,
        penalty: settings.repeat_penalty,
        "seed": settings.seed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _build_thinking_fields(settings: ModelSettings, kind: Kind) -> JsonObject:
    fields: JsonObject = {}
    template: JsonObject = {}  # Templates ignore variables that they do not read.
    if settings.thinking in ("on", "off"):
        thinks = settings.thinking == "on"
        if kind in TEMPLATE_KINDS:
            template |= {"enable_thinking": thinks, "thinking": thinks}
        elif not thinks:
            fields["reasoning_effort"] = "none"
    if settings.reasoning_effort and settings.thinking != "off":
        (template if kind == LLAMA_CPP else fields)["reasoning_effort"] = settings.reasoning_effort
    if settings.thinking_budget is not None:
        into, name = {
            LLAMA_CPP: (fields, "thinking_budget_tokens"),
            VLLM: (fields, "thinking_token_budget"),
            SGLANG: (template, "thinking_budget"),
        }.get(kind, ({}, ""))
        into[name] = settings.thinking_budget
    return {**fields, "chat_template_kwargs": template} if template else fields


def merge_fields(body: JsonObject, extra: JsonObject) -> JsonObject:
    """Merge fields as they are; a mapping is merged into one of the same name."""
    merged = dict(body)
    for name, value in extra.items():
        before = merged.get(name)
        merged[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def list_request_settings(settings: ModelSettings | None) -> JsonObject:
    """List the settings that are sent, with the names of headers only."""
    shown = msgspec.to_builtins(settings) if settings else {}
    if shown.get("thinking") == "off":
        shown.pop("reasoningEffort", None)
    shown = {key: value for key, value in shown.items() if value not in (None, (), {})}
    return {**shown, "headers": list(shown["headers"])} if "headers" in shown else shown


def format_settings(settings: JsonObject) -> str:
    from ollm.config.change import format_flow_value

    return ", ".join(f"{key} {format_flow_value(value)}" for key, value in settings.items())
