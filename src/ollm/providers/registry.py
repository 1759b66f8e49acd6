"""Choose the server: the configured one, else one that answers at its usual port, else the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ollm.config.environment import Home, has_proxy
from ollm.config.settings import ProviderSettings, Settings
from ollm.domain.errors import ModelError, NoServerError, OllmError, UsageError
from ollm.domain.struct import Data
from ollm.domain.text import format_names
from ollm.providers.base import ModelInfo, Provider, find_model, list_missing_parts, name_model
from ollm.providers.exchange import Exchange, ServerProvider, wait_while_loading
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.server_errors import ModelLoadingError, lists_no_models
from ollm.providers.server_kind import split_base_url

PROBE_SECONDS = 1.0
UNNAMED_MODEL = "default"
MAX_NAMED_MODELS = 5
ROLES = ("main", "small", "summary", "tasks", "embedding")
NON_CHAT_WORDS = ("embed", "bge-", "rerank", "whisper", "clip")


class ServerLocation(Data, frozen=True):
    """Default address of a kind of server."""

    label: str
    type: str
    url: str


class ProviderChoice(Data, frozen=True):
    """The server, its model, and the reason for the choice. The caller closes the provider."""

    provider: Provider
    model: str
    why: str


class DiscoveredServer(Data, frozen=True):
    """A server that answered, with its models."""

    place: ServerLocation
    provider: Provider
    models: list[ModelInfo]


OLLAMA = ServerLocation("Ollama", "ollama", "http://127.0.0.1:11434")
DEFAULT_LOCATIONS = (
    OLLAMA,
    ServerLocation("LM Studio", "openai", "http://127.0.0.1:1234"),
    ServerLocation("llama.cpp", "openai", "http://127.0.0.1:8080"),
    ServerLocation("vLLM", "openai", "http://127.0.0.1:8000"),
    ServerLocation("TabbyAPI", "openai", "http://127.0.0.1:5000"),
)
SERVER_NAMES = {place.label.lower().replace(" ", ""): place.url for place in DEFAULT_LOCATIONS[1:]} | {
    "llamacpp": "http://127.0.0.1:8080",
    "sglang": "http://127.0.0.1:30000",
    "litellm": "http://127.0.0.1:4000",
    "localai": "http://127.0.0.1:8080",
    "koboldcpp": "http://127.0.0.1:5001",
    "jan": "http://127.0.0.1:1337",
    "openrouter": "https://openrouter.ai/api/v1",
}  # These are names for servers with the OpenAI API, and where each listens.
BASE_ACTION = "Derive it from ollm.BaseProvider; docs/extending.md has an example."


class ProviderRegistry:
    """A factory that chooses and builds providers. `environment` is the process environment: a key may be read from it
    by name, and the embedded server gets a cleaned part. `places` are tried when nothing is configured. `others` are
    the kinds of server provided by extensions, by name, and `problems` the reasons why some provide none. `models` are
    the request settings by model, of which the headers are used here."""

    def __init__(
        self,
        settings: ProviderSettings,
        home: Home,
        environment: Mapping[str, str],
        places: tuple[ServerLocation, ...] = DEFAULT_LOCATIONS,
        others: Mapping[str, Callable[[], Provider]] | None = None,
        problems: Sequence[str] = (),
        models: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = resolve_server_name(settings)
        self._home = home
        self._environment = environment
        self._places = places
        self._others = others or {}
        self._problems = problems
        self._models = models or {}
        self._announce: Callable[[str], object] = str

    async def choose(self, announce: Callable[[str], object] = str) -> ProviderChoice:
        """Choose a server. Raises NoServerError if the configured one does not answer, or if no server is found.
        `announce` is told that it loads a model."""
        self._announce = announce
        choice = await self._choose_server()
        self._add_headers(choice.provider, choice.model)
        return choice

    def _add_headers(self, server: Provider | Exchange, model: str) -> None:
        if not self._models or not isinstance(server, ServerProvider | Exchange):
            return
        from ollm.providers.request_settings import expand_headers, find_model_settings

        settings = find_model_settings(self._models, model)
        if settings and settings.headers:
            server.add_headers(*expand_headers(settings.headers, self._environment))

    async def _choose_server(self) -> ProviderChoice:
        settings = self._settings
        if settings.extension:
            return await self._choose_extension(settings.extension)
        if settings.type == "embedded":
            return self._choose_embedded("provider.type is embedded")
        if settings.base_url or settings.type == "ollama":
            return await self._choose_configured(settings.base_url or OLLAMA.url)
        found = await self.discover(only=settings.type)
        usable = [server for server in found if server.models]
        chosen = next((s for s in usable if not settings.model or find_model(s.models, settings.model)), None)
        if chosen is None and usable and not (settings.model and self._is_model_file(settings.model)):
            chosen = usable[0]
        for server in found:
            if server is not chosen:
                await server.provider.close()
        if chosen is not None:
            model = settings.model or pick_chat_model(await self._wait_for_models(chosen.provider))
            return ProviderChoice(chosen.provider, model, f"found {chosen.place.label} running")
        if settings.type:
            tried = ", ".join(place.url for place in self._places if place.type == settings.type)
            raise NoServerError(
                f"No {settings.type} server is running at {tried}.", action="Start one, or set provider.baseUrl."
            )
        empty = "".join(f"; {server.place.label} is running but has no model" for server in found if not server.models)
        return self._choose_embedded(
            f"no model server is running on its usual port{empty}" if not usable else "the model is a file"
        )

    async def discover(self, *, only: str | None = None) -> list[DiscoveredServer]:
        """Find servers at their usual addresses, in order of preference."""
        return await self._probe_all([place for place in self._places if only in (None, place.type)])

    async def list_servers(self, report: Callable[[str], None]) -> list[DiscoveredServer]:
        """List servers at their usual addresses, and the configured one. If that does not answer, it is reported."""
        url = self._settings.base_url
        known = [place for place in self._places if url is None or not url.startswith(place.url)]
        found = await self._probe_all(known)
        if url is not None:
            try:
                provider = await self._open_configured(url)
                models, place = await provider.models(), ServerLocation("configured", provider.name, url)
                found.insert(0, DiscoveredServer(place, provider, models))
            except NoServerError as error:
                report(str(error))
        return found

    async def list_unmatched_settings(self, settings: Settings) -> list[str]:
        """Name the keys under `models` that stand for no model: none of a server that answers, no file, and none that
        the settings name. A server that does not answer may have any, so nothing is said then."""
        if not settings.models.keys() - {"urls", "default"}:
            return []
        from ollm.config.roles import find_role
        from ollm.providers.local_models.model_files import CATALOGUE, list_installed
        from ollm.providers.request_settings import list_unmatched

        problems: list[str] = []
        try:
            servers = await self.list_servers(problems.append)
        except OllmError:  # Unusable settings are already reported.
            return []
        for server in servers:
            await server.provider.close()
        infos = [info for server in servers for info in server.models]
        roles = [found for name in ROLES if (found := find_role(settings, name))]
        if (
            problems
            or not infos
            or any(role.model is None and role.base_url != self._settings.base_url for role in roles)
        ):
            return []
        offered = {name for info in infos for name in (info.name, *info.aliases)}
        files = (*(model.name for model in CATALOGUE), *(file.name for file in list_installed(self._home.models)))
        configured = (server.model or "" for server in (self._settings, *roles))
        has = format_names(sorted(map(name_model, offered)), MAX_NAMED_MODELS)
        unmatched = list_unmatched(settings.models, {*offered, *files, *configured})
        return [f"models.{key} matches no model here: the servers have {has}." for key in unmatched]

    def build(self, kind: str, url: str, api_key: str = "") -> Provider:
        """Build a provider without connecting. The key goes to the configured server only."""
        if kind == "ollama":
            from ollm.providers.ollama import Ollama

            root = url.rstrip("/").removesuffix("/v1").removesuffix("/api")
            return Ollama(self._open_exchange(root, api_key))
        root, api = split_base_url(url)
        return OpenAICompatible(self._open_exchange(root, api_key, url), api)

    async def _open_configured(self, url: str) -> Provider:
        kind = self._settings.type or await self.detect_kind(url)
        provider = self.build(kind, url, self._read_api_key())
        self._add_headers(provider, self._settings.model or "")
        return provider

    def _open_exchange(self, url: str, api_key: str, configured: str = "") -> Exchange:
        proxied = has_proxy(self._environment)
        return Exchange(url, self._settings.timeouts, api_key=api_key, proxied=proxied, configured=configured)

    async def _choose_extension(self, name: str) -> ProviderChoice:
        if name not in self._others:
            known = ", ".join(self._others) or "none"
            raise UsageError(
                f"provider.extension is {name}, but no enabled extension provides it; available: {known}.",
                action=" ".join((*self._problems, "List them with `ollm extensions list`.")),
            )
        try:
            provider = self._others[name]()
        except Exception as error:
            raise UsageError(
                f"The provider {name} cannot be made: {type(error).__name__}: {error}.", action=BASE_ACTION
            ) from error
        if missing := list_missing_parts(provider):
            raise UsageError(
                f"The provider {name} is incomplete: it has no {', '.join(missing)}.",
                action=BASE_ACTION,
            )
        model = self._settings.model or pick_chat_model(
            await self._wait_for_models(provider) or [ModelInfo(name=UNNAMED_MODEL)]
        )
        return ProviderChoice(provider, model, f"provider.extension is {name}")

    async def _choose_configured(self, url: str) -> ProviderChoice:
        provider = await self._open_configured(url)
        if self._settings.model:
            return ProviderChoice(provider, self._settings.model, "as configured")
        try:
            models = await self._wait_for_models(provider)
        except (OllmError, asyncio.CancelledError) as error:
            if provider.name == "openai" and isinstance(error, ModelError) and lists_no_models(error):
                return ProviderChoice(provider, UNNAMED_MODEL, "as configured; it lists no models")
            await provider.close()
            raise
        if not models:
            await provider.close()
            raise ModelError(
                f"The model server at {url} has no model.",
                action="Load one there, or name one that it does not list: ollm -m NAME.",
            )
        return ProviderChoice(provider, pick_chat_model(models), "as configured; the model is the first it lists")

    async def _wait_for_models(self, provider: Provider) -> list[ModelInfo]:
        """List the server's models, waiting while it loads one."""
        return await wait_while_loading(provider.models, self._announce)

    async def detect_kind(self, url: str) -> str:
        """Detect Ollama by its version page. Any other server is assumed to use the OpenAI API."""
        if split_base_url(url)[0] != url.rstrip("/"):
            return "openai"
        exchange = self._open_exchange(url.rstrip("/"), self._read_api_key())
        self._add_headers(exchange, self._settings.model or "")
        try:
            answer = await exchange.try_request_json("GET", "/api/version")
        finally:
            await exchange.close()
        return "ollama" if isinstance(answer, dict) and "version" in answer else "openai"

    async def _probe_all(self, places: Sequence[ServerLocation]) -> list[DiscoveredServer]:
        answers = await asyncio.gather(*(self._probe(place) for place in places))
        return [found for found in answers if found is not None]

    async def _probe(self, place: ServerLocation) -> DiscoveredServer | None:
        provider = self.build(place.type, place.url)
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return DiscoveredServer(place, provider, await provider.models())
        except ModelLoadingError:
            return DiscoveredServer(place, provider, [ModelInfo(name=UNNAMED_MODEL)])
        except (OllmError, TimeoutError):
            await provider.close()
            return None

    def _is_model_file(self, model: str) -> bool:
        from ollm.providers.local_models.model_files import find_model

        return find_model(self._home.models, model) is not None

    def _choose_embedded(self, why: str) -> ProviderChoice:
        from ollm.providers.local_models.embedded import open_embedded

        provider, model = open_embedded(self._settings, self._home.models, self._environment, why)
        return ProviderChoice(
            provider, model, f"{why}, so ollm uses the embedded model" if not self._settings.type else why
        )

    def _read_api_key(self) -> str:
        if self._settings.api_key:
            return self._settings.api_key
        name = self._settings.api_key_env
        if name and name not in self._environment:
            raise UsageError(
                f"provider.apiKeyEnv is {name}, but that variable is not set.", action=f"Set {name} or remove the key."
            )
        return self._environment[name] if name else ""


def resolve_server_name(settings: ProviderSettings) -> ProviderSettings:
    """Replace a product name with the OpenAI API at its usual address."""
    if settings.type not in SERVER_NAMES:
        return settings
    return msgspec.structs.replace(settings, type="openai", base_url=settings.base_url or SERVER_NAMES[settings.type])


def pick_chat_model(models: list[ModelInfo]) -> str:
    """Pick a model that can chat, judging by its name: the first in memory, or else the first."""
    talking = [info for info in models if not any(word in info.name.lower() for word in NON_CHAT_WORDS)] or models
    return next((info for info in talking if info.state in ("loaded", "sleeping")), talking[0]).name
