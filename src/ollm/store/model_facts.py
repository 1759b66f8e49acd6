"""Learned facts about models, in `~/.ollm/model-facts.json`: one object per server and model.

Several processes may learn at once: each change is merged into the current file under a lock, and the file is replaced
atomically. Fields of a newer version survive. An unreadable file counts as empty, and is kept beside the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.clock import Clock, format_stamp, now
from ollm.domain.model_facts import Learnt, ModelFacts, Source, convert_facts
from ollm.system.atomic import lock_directory, read_small_file, replace_file

FACT_NAMES = dict(zip(ModelFacts.__struct_fields__, ModelFacts.__struct_encode_fields__, strict=True))


class ModelFactsFile:
    """The facts by key (`{provider}|{base_url}|{model}`)."""

    def __init__(self, path: Path, clock: Clock = now, report: Callable[[str], object] = str) -> None:
        self._path = path
        self._clock = clock
        self._report = report

    def get(self, key: str) -> ModelFacts:
        """Return the known facts, or safe defaults for an unknown model."""
        return _parse_facts(key, self._read().get(key, {})).drop_unproved(self._clock())

    def list_all(self) -> list[ModelFacts]:
        facts = (_parse_facts(key, fields) for key, fields in sorted(self._read().items()))
        return [known.drop_unproved(self._clock()) for known in facts]

    def update(self, key: str, changes: Mapping[str, Any], sources: Mapping[str, Source]) -> ModelFacts:
        """Merge these fields (snake_case) into the known facts with their source and date, and return all of them."""
        unknown, at = ModelFacts(key=key), format_stamp(self._clock())
        known = msgspec.structs.replace(unknown, **changes)
        dated = {name: Learnt(source=sources.get(name, "use"), at=at) for name in known.list_changes(unknown)}
        self._write(key, known, changes, dated)
        return self.get(key)

    def forget(self, key: str, names: Collection[str] | None) -> bool:
        """Return these fields (snake_case), or all, to those of an unknown model. Returns False if they were so."""
        unknown, known = ModelFacts(key=key), self.get(key)
        names = set(FACT_NAMES) - {"key", "learnt"} if names is None else known.add_forms(names)
        self._write(key, unknown, names, {})
        return bool(known.list_changes(unknown).keys() & names)

    def _write(self, key: str, known: ModelFacts, names: Collection[str], dated: Mapping[str, Learnt]) -> None:
        written: dict[str, Any] = msgspec.to_builtins(known)
        with lock_directory(self._path.parent):
            everything = self._read(self._put_aside)
            before = everything.get(key, {})
            learnt = {name: one for name, one in _parse_facts(key, before).learnt.items() if name not in names}
            changed = {FACT_NAMES[name]: written[FACT_NAMES[name]] for name in names}
            everything[key] = {**before, **changed, "learnt": {**learnt, **dated}}
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(everything), indent=1))

    def _read(self, handle_damage: Callable[[], None] | None = None) -> dict[str, dict[str, Any]]:
        try:
            return msgspec.json.decode(read_small_file(self._path), type=dict[str, dict[str, Any]])
        except OSError:
            return {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            if handle_damage:
                handle_damage()
            return {}

    def _put_aside(self) -> None:
        kept = f"{self._path.name}.damaged-{format_stamp(self._clock()).replace(':', '').replace('.', '-')}"
        self._path.rename(self._path.with_name(kept))
        self._report(f"{self._path} is damaged: it was kept as {kept}, and a new one made.")


def _parse_facts(key: str, fields: dict[str, Any]) -> ModelFacts:
    try:
        return convert_facts({**fields, "key": key})
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
