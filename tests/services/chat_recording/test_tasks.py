"""Which sessions are tasks, and whose."""

from pathlib import Path

from ollm.domain.tasks import ParentCall
from ollm.services.chat_recording import ChatRecordingService, SessionLibrary
from ollm.services.chat_recording.tasks import find_tasks, hide_tasks
from ollm.store.session_files import SessionFiles, SessionPlaces
from tests.store.sessions.support import said


async def test_tasks_are_found_by_their_parent_and_hidden_from_others(tmp_path: Path) -> None:
    files = SessionFiles(SessionPlaces(directory=tmp_path / "sessions", trash=tmp_path / "trash"))
    library = SessionLibrary(files)
    service = ChatRecordingService(files, library=library)
    ids = {}
    for name, parent in {"first": None, "second": None, "task": "first", "other": "second"}.items():
        call = ParentCall(session_id=ids[parent], call_id="c1") if parent else None
        ids[name] = await service.create_session("m", "p", origin="task" if parent else None, parent=call)
        await service.record_message(ids[name], said(name))
        await service.close_session(ids[name])
    everything = library.list_summaries(tasks=True)

    assert {summary.session_id for summary in hide_tasks(everything)} == {ids["first"], ids["second"]}
    assert find_tasks(files, everything, [ids["first"]]) == [ids["task"]]
    library.delete(ids["first"])
    assert {summary.session_id for summary in library.list_summaries(tasks=True)} == {ids["second"], ids["other"]}
    library.move_to_trash(ids["second"])
    assert library.list_summaries(tasks=True) == []
    library.delete(ids["second"])
    assert list((tmp_path / "trash").glob("*.json")) == []
