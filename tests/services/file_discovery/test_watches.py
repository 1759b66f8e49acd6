"""One watch for each root, however many listen."""

import asyncio
import threading
from pathlib import Path

from ollm.services.file_discovery import FileDiscoveryService
from tests.covers import covers
from tests.services.file_discovery.looking import plant
from tests.services.file_discovery.test_watch import SECONDS, Heard


@covers("D317", "D317")
def test_many_watchers_of_one_root_share_a_thread_and_leave_none(service: FileDiscoveryService, root: Path) -> None:
    before = set(threading.enumerate())
    listeners = [Heard(root) for _ in range(50)]

    subscriptions = [service.watch_changes(str(root), heard) for heard in listeners]
    assert len(set(threading.enumerate()) - before) == 1
    (root / "a").touch()
    for heard in listeners:
        heard.wait_for(("add", "a"))
    for subscription in subscriptions:
        subscription.dispose()
        subscription.dispose()

    assert set(threading.enumerate()) <= before


async def test_callbacks_run_in_the_loop_that_asked(service: FileDiscoveryService, root: Path) -> None:
    came: asyncio.Queue[tuple[str, str, int]] = asyncio.Queue()
    subscription = service.watch_changes(
        str(root), lambda kind, path: came.put_nowait((kind, path, threading.get_ident()))
    )

    (root / "a").touch()

    assert await asyncio.wait_for(came.get(), SECONDS) == ("add", str(root / "a"), threading.get_ident())
    subscription.dispose()


def test_a_root_is_watched_from_its_first_listener_to_its_last(service: FileDiscoveryService, root: Path) -> None:
    plant(root, "sub/a")
    assert service.get_watch_state(str(root)) is None
    one, two = Heard(root), Heard(root)
    first, second = service.watch_changes(str(root), one), service.watch_changes(str(root), two)
    assert service.get_watch_state(str(root)) == "events"

    first.dispose()
    (root / "b").touch()
    two.wait_for(("add", "b"))

    assert one.changes == []
    assert service.get_watch_state(str(root)) == "events"
    second.dispose()
    assert service.get_watch_state(str(root)) is None


def test_a_generation_moves_with_every_change_and_only_where_somebody_watches(
    service: FileDiscoveryService, root: Path
) -> None:
    assert service._watches.get_generation(str(root)) is None
    heard = Heard(root)
    service.watch_changes(str(root), heard)
    before = service._watches.get_generation(str(root))

    (root / "a").touch()
    heard.wait_for(("add", "a"))

    after = service._watches.get_generation(str(root))
    assert before is not None
    assert after is not None
    assert after > before
    service.close()
    assert service._watches.get_generation(str(root)) is None


def test_a_callback_of_a_loop_that_is_over_is_not_called(service: FileDiscoveryService, root: Path) -> None:
    late: list[str] = []

    async def listen() -> None:
        service.watch_changes(str(root), lambda kind, path: late.append(path))

    asyncio.run(listen())
    heard = Heard(root)
    service.watch_changes(str(root), heard)
    (root / "a").touch()
    heard.wait_for(("add", "a"))

    assert late == []
