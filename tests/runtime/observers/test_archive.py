"""After a turn, and not before: the shipper is woken, and what it has to say is said."""

from ollm.domain.events import Event, Notice
from ollm.runtime.observers.archive import ArchiveObserver
from ollm.runtime.turn_observer import TurnReport


class RecordedShipping:
    def __init__(self, *, first: str = "", trouble: str = "") -> None:
        self.first, self.trouble, self.wakes = first, trouble, 0

    def wake(self) -> None:
        self.wakes += 1

    def take_trouble(self) -> str:
        return self.trouble

    def announce(self) -> str:
        return self.first


async def test_a_turn_wakes_the_shipper_when_it_is_over() -> None:
    shipping, events = RecordedShipping(first="first push: 1 sessions", trouble="it went on elsewhere"), list[Event]()
    observer = ArchiveObserver(shipping, events.append)

    await observer.session_opened("s", resumed=True)
    await observer.before_turn("text")
    await observer.before_request()
    assert (shipping.wakes, events) == (0, [])
    await observer.after_turn(TurnReport(session_id="s", messages=(), calls=(), reason="answered"))
    await observer.session_closed("s")

    assert shipping.wakes == 2
    assert [(event.level, event.text) for event in events if isinstance(event, Notice)] == [
        ("info", "Archive, first push: 1 sessions"),
        ("warning", "Archive: it went on elsewhere"),
    ]
