"""What is done beside the conversation."""

from datetime import UTC, datetime

from ollm.domain.lazy import Lazy
from ollm.runtime.observers.housekeeping import LateObserver, LazyObserver, PageCacheObserver, WorkspaceMoveObserver
from ollm.runtime.turn_observer import TurnObserver, TurnReport

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REPORT = TurnReport(session_id="s", messages=(), calls=(), reason="answered")


class Noting(TurnObserver):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        self.heard.append(f"opened {session_id} {resumed}")

    async def after_turn(self, report: TurnReport) -> None:
        self.heard.append("turn")

    async def context_changed(self) -> None:
        self.heard.append("changed")

    async def session_closed(self, session_id: str) -> None:
        self.heard.append(f"closed {session_id}")


class Scene:
    def __init__(self) -> None:
        self.inner = Noting()
        self.built: list[datetime] = []
        self.observer = LazyObserver(self.build, lambda: NOW)

    def build(self, opened: datetime) -> TurnObserver:
        self.built.append(opened)
        return self.inner


async def test_an_observer_is_built_when_the_first_turn_ends_and_told_what_it_missed() -> None:
    scene = Scene()
    await scene.observer.session_opened("s", resumed=False)
    await scene.observer.before_turn("x")
    assert scene.built == []

    await scene.observer.after_turn(REPORT)
    await scene.observer.after_turn(REPORT)
    await scene.observer.session_closed("s")

    assert scene.built == [NOW]
    assert scene.inner.heard == ["opened s False", "turn", "turn", "closed s"]


async def test_a_resumed_session_needs_it_at_once() -> None:
    scene = Scene()

    await scene.observer.session_opened("s", resumed=True)

    assert scene.inner.heard == ["opened s True"]


async def test_a_command_that_changes_something_builds_it_too() -> None:
    scene = Scene()
    await scene.observer.session_opened("s", resumed=False)
    await scene.observer.context_changed()

    assert scene.inner.heard == ["opened s False", "changed"]


async def test_without_a_session_there_is_nothing_to_build_or_close() -> None:
    scene = Scene()
    await scene.observer.after_turn(REPORT)
    await scene.observer.context_changed()
    await scene.observer.session_closed("s")

    assert (scene.built, scene.inner.heard) == ([], [])


async def test_a_moved_workspace_is_looked_for_once_after_the_first_turn() -> None:
    class Place:
        looked = 0

        def detect_move(self) -> None:
            self.looked += 1

    place = Place()
    observer = WorkspaceMoveObserver(Lazy(lambda: place))
    await observer.before_turn("x")
    assert place.looked == 0
    await observer.after_turn(REPORT)
    await observer.after_turn(REPORT)

    assert place.looked == 1


async def test_pages_are_forgotten_with_every_turn_once_there_are_any() -> None:
    class Pages:
        forgotten = 0

        def forget(self) -> None:
            self.forgotten += 1

    pages = Pages()
    lazy: Lazy[Pages] = Lazy(lambda: pages)
    observer = PageCacheObserver(lazy)  # type: ignore[arg-type]
    await observer.before_turn("x")
    assert pages.forgotten == 0
    lazy.get()
    await observer.before_turn("x")

    assert pages.forgotten == 1


async def test_one_that_is_built_by_others_hears_of_the_turn_s_end_once_it_is_built() -> None:
    inner = Noting()
    later: Lazy[TurnObserver] = Lazy(lambda: inner)
    observer = LateObserver(later)

    await observer.after_turn(REPORT)
    assert inner.heard == []
    later.get()
    await observer.after_turn(REPORT)
    assert inner.heard == ["turn"]
