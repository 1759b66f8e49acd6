"""Home, environment and settings of one run, and what follows from them alone: trust, the log, what is kept secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.clock import Clock, now
from ollm.domain.lazy import Lazy

if TYPE_CHECKING:
    from ollm.config.environment import Home
    from ollm.config.load import LoadedSettings
    from ollm.config.settings import Settings
    from ollm.policy.trust import TrustBook
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor


class RunSettings:
    """Settings are read when they are first asked for; what is wrong with them is said then, once."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        workspace: Path | None = None,
        flags: Mapping[str, Any] | None = None,
        clock: Clock = now,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        from ollm.config.environment import copy_environment, find_home

        self.environment = copy_environment() if environment is None else environment
        self.home: Home = find_home(self.environment)
        self.clock = clock
        self.workspace = workspace
        self._flags = flags or {}
        self._warn = warn or print_warning
        self._making_rules = False
        self._settings = Lazy(self._use_settings)

    @cached_property
    def loaded_settings(self) -> LoadedSettings:
        """The settings and what is wrong with them; what does not end the command is said here, once."""
        from ollm.config.load import load_settings

        found = load_settings(
            self.home,
            self.environment,
            workspace=self.workspace,
            trusted=self.trusted,
            flags=self._flags,
        )
        for problem in found.problems:
            if not problem.fatal:
                self._warn(redact_error(str(problem)))
        return found

    @cached_property
    def trusted(self) -> bool:
        """Whether the workspace's own files may be used."""
        return self.workspace is not None and self.trust_book.is_trusted(self.workspace)

    @cached_property
    def trust_book(self) -> TrustBook:
        from ollm.policy.trust import TrustBook

        return TrustBook(self.home.trust, self.clock)

    @property
    def settings(self) -> Settings:
        return self._settings.get()

    def _use_settings(self) -> Settings:
        settings = self.loaded_settings.require_settings()
        self.start_logging()
        return settings

    def start_logging(self) -> None:
        """From here on records go to the log; the mistakes of the settings are its first lines."""
        import logging

        from ollm.config.environment import read_log_level
        from ollm.system.logs import start_logging

        start_logging(self.home.log, read_log_level(self.environment), self.redact)
        for problem in self.loaded_settings.problems:
            logging.getLogger("ollm.config").warning(str(problem), extra={"operation": "load"})

    def redact(self, text: str) -> str:
        """Text without secrets: by all rules once the settings are known; by the built-in ones before, and for what is
        said of the rules."""
        if self._settings.built is None or self._making_rules:
            return redact_error(text)
        return self.redactor.redact(text)

    @cached_property
    def user_home(self) -> Path:
        from ollm.config.environment import find_user_home

        return find_user_home(self.environment)

    @cached_property
    def sanitization(self) -> EnvironmentSanitizationService:
        """Which variables are kept from tools; the ones the settings name as holding a key always are."""
        import msgspec

        from ollm.services.environment_sanitization import EnvironmentSanitizationService

        configured, tools = self.settings.environment, self.settings.tools
        keys = self.settings.provider.api_key_env, tools.web_search.api_key_env, self.settings.archive.url_env
        named = tuple(name for name in keys if name)
        rules = msgspec.structs.replace(configured, deny_patterns=(*configured.deny_patterns, *named))
        self._making_rules = True
        try:
            return EnvironmentSanitizationService(rules)
        finally:
            self._making_rules = False

    @cached_property
    def tool_environment(self) -> Mapping[str, str]:
        """What tools, hooks and servers are started with."""
        for warning in self.sanitization.warnings:
            self._warn(warning)
        return self.sanitization.sanitize(self.environment)

    @cached_property
    def redactor(self) -> Redactor:
        """Takes out what looks secret and the values of the variables that tools do not get."""
        from ollm.services.redaction import Redactor

        return Redactor(self.sanitization.list_removed_values(self.environment))

    @cached_property
    def own_settings(self) -> Settings:
        """What the user's own file says, without the workspace's."""
        if not self.trusted:
            return self.settings
        from ollm.config.load import load_settings

        return load_settings(self.home, self.environment).settings

    @property
    def own_hooks(self) -> Mapping[str, Any]:
        return self.own_settings.hooks

    def resolve_user_path(self, named: str) -> Path:
        """A path from the settings: `~` is the user's home, and what is relative lies in it."""
        rest = named.removeprefix("~/") if named.startswith("~/") else "" if named == "~" else named
        return self.user_home / rest

    def resolve_directory(self, named: str, default: Path) -> Path:
        """A directory from the settings; `~/.ollm` in it follows OLLM_HOME."""
        return self.home.resolve_path(named) if named else default


def print_warning(text: str) -> None:
    import sys

    sys.stderr.write(f"ollm: {text}\n")


def redact_error(text: str) -> str:
    """A message as it may be printed: by the built-in rules alone, since the settings may be what is wrong."""
    return _get_error_redactor().redact(text)


@cache
def _get_error_redactor() -> Redactor:
    from ollm.config.environment import copy_environment
    from ollm.services.environment_sanitization import EnvironmentSanitizationService
    from ollm.services.redaction import Redactor

    return Redactor(EnvironmentSanitizationService().list_removed_values(copy_environment()))
