"""Cards of models as files, to share what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ollm.domain.errors import UsageError
from ollm.domain.model_facts import FORMER_FIELDS, ModelFacts, convert_facts
from ollm.domain.struct import Data
from ollm.providers.base import name_model
from ollm.store.model_facts import split_facts_key
from ollm.system.atomic import read_small_file

MAX_CARD_BYTES = 64 << 10


class SharedCard(Data, frozen=True, forbid_unknown_fields=True):
    """A model's card as a file. It has no address, key, header or command; `facts` holds fields of `ModelFacts`."""

    version: Literal[1]
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    facts: dict[str, Any]


def make_card(facts: ModelFacts) -> SharedCard:
    """Make the card to share. The key is left out, since it names the server's address."""
    shared = msgspec.to_builtins(facts)
    del shared["key"], shared["learnt"]
    return SharedCard(version=1, model=name_model(split_facts_key(facts.key)[2]), facts=shared)


def read_card(path: Path) -> SharedCard:
    """Read and check someone's card."""
    try:
        card = msgspec.json.decode(read_small_file(path, MAX_CARD_BYTES), type=SharedCard)
        known = {field.encode_name for field in msgspec.structs.fields(ModelFacts)} - {"key"}
        if unknown := sorted(card.facts.keys() - known - FORMER_FIELDS):
            raise UsageError(f"{path} has unknown fields: {', '.join(unknown)}.", action="Import only cards of ollm.")
        convert_facts({**card.facts, "key": ""})
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.", action="Check the path.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is not a model card: {error}.", action="A card is the output of `ollm models card NAME --json`."
        ) from error
    return card
