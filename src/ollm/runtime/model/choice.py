"""Chooses a model, its context window and its form of tool calls: as set, as learnt, or as the server says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.config.settings import ProviderSettings, ProviderTimeouts, Settings
from ollm.domain.model_facts import ModelFacts
from ollm.providers.model_families import BLOCKS_BELOW, choose_first_form, count_parameters, read_size
from ollm.providers.window import choose_window
from ollm.runtime.model.model import Model, describe_model
from ollm.store.model_facts import ModelFactsFile, make_facts_key

if TYPE_CHECKING:
    from ollm.providers.base import Provider
    from ollm.providers.registry import ProviderChoice, ProviderRegistry

READ_TIMEOUT_FACTOR = 2.0  # The timeout is this multiple of the estimated time to read a full window.


class ModelChooser:
    """Chooses models by the settings and by what was learnt about them."""

    def __init__(
        self,
        settings: Settings,
        find_registry: Callable[[ProviderSettings, str | None], ProviderRegistry],
        known: ModelFactsFile,
        queues: Path,
    ) -> None:
        self._settings = settings
        self._find_registry = find_registry
        self._known = known
        self._queues = queues

    async def choose(
        self,
        name: str | None = None,
        *,
        anew: bool = False,
        role: ProviderSettings | None = None,
        held: int | None = None,
        announce: Callable[[str], object] = str,
    ) -> Model:
        """Choose model and window. `name` replaces the model, `role` the server; `anew` ignores what was learnt. `held`
        is the window of a resumed session; `announce` is told what takes long."""
        wanted = role or self._settings.provider
        choice = await self._find_registry(wanted, name).choose(announce)
        try:
            if wanted.context_window is None:
                choice = replace(choice, model=await choice.provider.prepare(choice.model, announce))
            filed = self._known.get(make_facts_key(choice.provider.name, choice.provider.base_url, choice.model))
            said, why = await choose_window(choice.provider, choice.model, wanted, filed.window, held)
        except BaseException:
            await choice.provider.close()
            raise
        facts = drop_stale(filed, choice.provider, said if wanted.context_window is None else None)
        facts = facts.reset(("takes_tools",)) if wanted.call_form == "native" else facts
        stale = filed.list_changes(facts)
        facts = await self._choose_call_form(choice, facts, wanted)
        extend_timeout(choice.provider, said, facts, wanted)
        facts = facts.forget_server() if anew else facts
        facts = await self._compare_set_window(choice, facts, wanted.context_window)
        size, why = limit_window(facts, said, why, wanted)
        model = Model(choice.provider, choice.model, size, facts, why=f"Server: {choice.why}. Context window: {why}.")
        model.said_window, model.price = said, wanted.price
        model.known = replace(facts, **stale)  # The next change then also removes the stale facts from the file.
        model.join_queue(self._queues, wanted.parallel)
        if self._settings.models:
            from ollm.providers.request_settings import find_model_settings

            model.settings = find_model_settings(self._settings.models, choice.model)
        model.is_small = (facts.parameters or read_size(model.name) or BLOCKS_BELOW) < BLOCKS_BELOW
        return model

    async def _compare_set_window(self, to: ProviderChoice, facts: ModelFacts, wanted: int | None) -> ModelFacts:
        """Compare the configured window once with the server's. Ollama and our own server use what is set."""
        if wanted is None or wanted == facts.said_window or to.provider.name != "openai":
            return facts
        if (info := await describe_model(to.provider, to.model)) is None:
            return facts
        served = info.window if info.window and info.window < wanted else None
        found = {"served_window": served, "said_window": wanted}
        learnt = self._known.update(facts.key, found, dict.fromkeys(found, "server")).learnt
        return replace(facts, **found, learnt=learnt)

    async def _choose_call_form(self, to: ProviderChoice, facts: ModelFacts, settings: ProviderSettings) -> ModelFacts:
        """Choose the form of tool calls: as set, as learnt, or as expected of the family and size."""
        wanted = settings.call_form
        if wanted != "auto":
            result = "user" if wanted == "text" else facts.result_form
            facts = replace(facts, call_form=wanted, result_form=result)
        sized = facts.call_form == "blocks" and facts.parameters is None  # The server is then asked for the size.
        if facts.call_form != "unknown" and not sized:
            return facts
        if facts.first_form and settings.context_window is not None:
            return replace(facts, call_form=facts.first_form if wanted == "auto" else facts.call_form)
        if (info := await describe_model(to.provider, to.model)) is None:
            return facts
        first, parameters = choose_first_form(info, to.model), count_parameters(info, to.model)
        if settings.context_window is not None:
            found = {"first_form": first, "parameters": parameters}
            self._known.update(facts.key, found, dict.fromkeys(found, "server"))
        form = first if facts.call_form == "unknown" else facts.call_form
        return replace(facts, call_form=form, first_form=first, parameters=parameters)


def limit_window(facts: ModelFacts, said: int, why: str, wanted: ProviderSettings) -> tuple[int, str]:
    """Return the window and its reason: what the server turned out to serve, if that is less than `said`."""
    less = facts.served_window if facts.said_window == said else None
    is_servers = getattr(facts.learnt.get("served_window"), "source", "") == "server"
    if less and less < said and (is_servers or wanted.context_window is None):
        return less, f"learnt: the server serves no more, though {said} was said"
    return said, why


def drop_stale(facts: ModelFacts, provider: Provider, said: int | None) -> ModelFacts:
    """Drop what was learnt of a server with other weights, template or build, or with another window than `said`."""
    info = getattr(provider, "described", None)
    if info and info.mark and facts.server_mark and facts.server_mark != info.mark:
        return facts.forget_server()
    same = said in (None, facts.said_window) or getattr(provider, "is_silent", False)
    return facts if same else facts.reset(("served_window", "said_window"))


def extend_timeout(provider: Provider, window: int, facts: ModelFacts, wanted: ProviderSettings) -> None:
    """Give a slow model the time that reading a full window takes, unless the settings give a timeout."""
    if facts.prefill_per_second and wanted.timeouts.first_token == ProviderTimeouts().first_token:
        provider.allow(READ_TIMEOUT_FACTOR * window / facts.prefill_per_second)
