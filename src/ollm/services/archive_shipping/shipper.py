"""Sends one session: what the archive does not hold yet, batch by batch, and what is gone here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from ollm.services.archive_shipping.outgoing import OutgoingSession
from ollm.store.team_archive.records import ArchiveRecord
from ollm.store.team_archive.sending import SessionMovedOnError, SessionSender, make_batches

OpenOutgoing = Callable[[], AbstractContextManager[OutgoingSession]]


def ship_session(open_outgoing: OpenOutgoing, sender: SessionSender, *, known: bool = True) -> int:
    """Bring the archive up to date with the session; gives how many records were sent. Safe to break off and repeat.
    Where it is not `known` whether this machine sent it before, what it holds decides whether it went on elsewhere."""
    try:
        sender.begin()
    except SessionMovedOnError:
        if known or not _has_all(open_outgoing, sender):
            raise
        sender.adopt()
    with open_outgoing() as outgoing:
        count, told = 0, None
        for batch in make_batches(outgoing.iter_records()):
            by_name = {(record.kind, record.key): record for record in batch}
            count += len(by_name)
            if new := sender.filter_new(list(by_name.values())):
                told = outgoing.describe()
                sender.send(new, told)
        head = outgoing.describe()
    if sender.count_keys() > count and (gone := _find_gone(open_outgoing, sender)):
        sender.send(gone, head)
    elif sender.sent and told != head:
        sender.send([], head)
    return sender.sent


def _has_all(open_outgoing: OpenOutgoing, sender: SessionSender) -> bool:
    """Whether everything that the archive holds of the session is here as it is there."""
    with open_outgoing() as outgoing:
        here: dict[tuple[str, str], bytes] = {
            (record.kind, record.key): record.digest for record in outgoing.iter_records()
        }
    return all(here.get((kind, key)) == digest for kind, key, digest in sender.list_digests())


def _find_gone(open_outgoing: OpenOutgoing, sender: SessionSender) -> list[ArchiveRecord]:
    """What the archive holds under a name that the session does not have any more."""
    with open_outgoing() as outgoing:
        here = {(record.kind, record.key) for record in outgoing.iter_records()}
    return [
        ArchiveRecord(kind, key, None)
        for kind in ("message", "call", "file")
        for key in sender.list_keys(kind)
        if (kind, key) not in here
    ]
