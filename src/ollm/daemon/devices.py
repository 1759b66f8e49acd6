"""Paired devices: the one-time code that pairs one, its key, and what it may do."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec

from ollm.daemon.bodies import DeviceLine, DeviceRights, PairReply
from ollm.domain.errors import DeniedError, NotFoundError, OllmError, UsageError

CODE_SECONDS = 60
DEVICE_SECONDS = 30 * 24 * 3600
SEEN_SECONDS = 60  # The last use is noted at most this often.
MAX_WRONG_CODES, MAX_WRONG_CODES_PER_HOUR = 5, 20
LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
DEVICE_COOKIE = "__Host-ollm-device"  # Browsers accept and send a cookie of this name over https only.
READING = {"GET", "HEAD", "OPTIONS", "/web/render", "/web/logout", "/policy/check", "/policy/backtest"}
LOCAL_COMMANDS = (["approval"], ["trust"], ["add-dir"], ["export"])


class BadTicketError(OllmError):
    """A ticket or a pairing code that is wrong, was used or has expired."""


class Device(DeviceLine, frozen=True):
    """A paired device, with the hash of its key."""

    key: str = ""


class DeviceKeys:
    """The paired devices of a daemon whose page has the origin `public` for them. `save` keeps them."""

    def __init__(
        self, devices: tuple[Device, ...], public: str, clock: Callable[[], float], save: Callable[[], None]
    ) -> None:
        self.all = devices
        self.public = public
        self._clock, self._save = clock, save
        self._code, self._until, self._rights = "", 0.0, DeviceRights(name="")
        self._tries = 0  # The code is void after this many wrong ones.
        self._wrong: deque[float] = deque([0.0] * MAX_WRONG_CODES_PER_HOUR, MAX_WRONG_CODES_PER_HOUR)

    def make_code(self, rights: DeviceRights) -> PairReply:
        """Make the code that pairs one device within a minute. An earlier code is void."""
        if not self.public:
            raise UsageError(
                "Other devices have no address for the page.",
                action="Set daemon.publicUrl, then restart the daemon: `ollm daemon stop`, `ollm daemon start`.",
            )
        self._refuse_after_guesses()
        self._code = "".join(secrets.choice(LETTERS) for _ in range(8))
        self._until, self._tries, self._rights = self._clock() + CODE_SECONDS, MAX_WRONG_CODES, rights
        shown = f"{self._code[:4]}-{self._code[4:]}"
        return PairReply(url=f"{self.public}/#pair={shown}", code=shown, expires_in_seconds=CODE_SECONDS)

    def _refuse_after_guesses(self) -> None:
        if self._wrong[0] > self._clock() - 3600:
            raise DeniedError("Too many wrong codes in the last hour.", action="Pair again later.")

    def pair(self, code: str, kind: str, address: str) -> tuple[str, Device]:
        """Trade a code for the key of a new device, called `kind` if it was given no name."""
        self._refuse_after_guesses()
        given, waits = code.upper().replace("-", "").replace(" ", ""), self._tries > 0 and self._until > self._clock()
        if not waits or not hmac.compare_digest(given.encode(), self._code.encode()):
            if waits:
                self._tries -= 1
                self._wrong.append(self._clock())
            raise BadTicketError("This code is wrong, was used or has expired.", action="Run `ollm web --pair` again.")
        self._tries, key = 0, secrets.token_urlsafe(32)
        rights, taken = self._rights, {one.name for one in self.list_valid()}
        names = (f"{rights.name or kind} {number}" if number > 1 else rights.name or kind for number in count(1))
        device = Device(
            name=next(name for name in names if name not in taken),
            read_only=rights.read_only,
            no_grants=rights.no_grants,
            last_seen=self._clock(),
            address=address,
            key=hash_key(key),
        )
        self._keep(*self.list_valid(), device)
        return key, device

    def list_valid(self) -> list[Device]:
        return [one for one in self.all if one.last_seen + DEVICE_SECONDS > self._clock()]

    def find(self, key: str, address: str) -> Device | None:
        """Find the device with this key, and note when it was seen."""
        hashed = hash_key(key)
        found = next((one for one in self.list_valid() if hmac.compare_digest(one.key, hashed)), None)
        if found and found.last_seen + SEEN_SECONDS < self._clock():
            seen = msgspec.structs.replace(found, last_seen=self._clock(), address=address)
            self._keep(*(seen if one is found else one for one in self.list_valid()))
        return found

    def revoke(self, name: str) -> None:
        """Revoke the device of this name, or all of them if it is empty."""
        kept = [one for one in self.list_valid() if name and one.name != name]
        if name and len(kept) == len(self.list_valid()):
            raise NotFoundError(f"No device {name[:80]!r}.", action="List them with `ollm web devices`.")
        self._keep(*kept)

    def holds(self, device: Device) -> bool:
        return any(one.key == device.key for one in self.list_valid())

    def _keep(self, *devices: Device) -> None:
        self.all = devices
        self._save()


def hash_key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def find_address(scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Find where a request came from, as the proxy on this machine says; it is shown, and nothing else follows from
    it."""
    peer: str = (scope.get("client") or ("",))[0]
    told = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return told if peer.startswith("127.") and re.fullmatch(r"[0-9a-fA-F.:]{2,45}", told) else peer


def require_local(device: Device | None, what: str) -> None:
    """Raise DeniedError if a request came from a paired device."""
    if device is not None:
        raise DeniedError(f"{what} on the machine itself, not from a paired device.", action="Open it with `ollm web`.")
