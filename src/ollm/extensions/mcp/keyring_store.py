"""The keyring of the system as the place of secrets, where the package `keyring` is installed and has one to use."""

from __future__ import annotations

import logging
from typing import Any

SERVICE = "ollm"

log = logging.getLogger("ollm.mcp")


def find_keyring() -> Any | None:
    """The module that speaks to the keyring; None where it is not installed or there is no keyring behind it."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("keyring") is None:
        return None
    try:
        found = import_module("keyring")
        return found if found.get_keyring().priority > 0 else None
    except Exception as error:  # noqa: BLE001 - every system's keyring fails in its own way
        log.debug("No keyring: %s", error, extra={"operation": "keyring"})
        return None


def write_secret(name: str, secret: str) -> bool:
    """Keep a secret; False when it has to be kept elsewhere."""
    keyring = find_keyring()
    if keyring is None:
        return False
    try:
        keyring.set_password(SERVICE, name, secret)
        return bool(keyring.get_password(SERVICE, name) == secret)
    except Exception as error:  # noqa: BLE001 - a locked or full keyring is no reason to lose a login
        log.debug("The keyring took nothing: %s", error, extra={"operation": "keyring"})
        return False


def read_secret(name: str) -> str | None:
    keyring = find_keyring()
    try:
        return keyring.get_password(SERVICE, name) if keyring else None
    except Exception as error:  # noqa: BLE001 - a locked keyring has nothing to say
        log.debug("The keyring gave nothing: %s", error, extra={"operation": "keyring"})
        return None


def delete_secret(name: str) -> None:
    keyring = find_keyring()
    try:
        if keyring:
            keyring.delete_password(SERVICE, name)
    except Exception as error:  # noqa: BLE001 - what is not there need not go
        log.debug("The keyring kept it: %s", error, extra={"operation": "keyring"})
