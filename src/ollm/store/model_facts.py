"""Learned facts about models, in `~/.ollm/model-facts.json`: one object per server and model.

Several processes may learn at once: each change is merged into the current file under a lock, and the file is replaced
atomically. Fields of a newer version survive. An unreadable file counts as empty, and its facts are learned again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.model_facts import ModelFacts
from ollm.system.atomic import lock_directory, read_small_file, replace_file


class ModelFactsFile:
    """The facts by key (`{provider}|{base_url}|{model}`)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, key: str) -> ModelFacts:
        """Return the known facts, or safe defaults for an unknown model."""
        return _parse_facts(key, self._read().get(key, {}))

    def list_all(self) -> list[ModelFacts]:
        return [_parse_facts(key, fields) for key, fields in sorted(self._read().items())]

    def update(self, key: str, **changes: Any) -> ModelFacts:
        """Merge these fields (snake_case) into the known facts and return all of them."""
        known = msgspec.structs.replace(ModelFacts(key=key), **changes)
        written: dict[str, Any] = msgspec.to_builtins(known)
        names = {field.name: field.encode_name for field in msgspec.structs.fields(ModelFacts)}
        changed = {names[name]: written[names[name]] for name in changes}
        with lock_directory(self._path.parent):
            everything = self._read()
            everything[key] = {**everything.get(key, {}), **changed}
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(everything), indent=1))
        return _parse_facts(key, everything[key])

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            return msgspec.json.decode(read_small_file(self._path), type=dict[str, dict[str, Any]])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return {}


def _parse_facts(key: str, fields: dict[str, Any]) -> ModelFacts:
    try:
        return msgspec.convert({**fields, "key": key}, ModelFacts)
    except msgspec.ValidationError:
        return ModelFacts(key=key)


def make_facts_key(provider: str, base_url: str, model: str) -> str:
    """Make the key of a model. Embedded models have no address; for them `base_url` names the file."""
    return f"{provider}|{base_url}|{model}"


def split_facts_key(key: str) -> tuple[str, str, str]:
    """Split a key into provider, address and model."""
    provider, _, rest = key.partition("|")
    address, _, model = rest.partition("|")
    return provider, address, model
