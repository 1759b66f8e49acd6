"""Messages and pieces of an answer that are out of order, repeated or missing are told and put right."""

import pytest

from ollm.domain.messages import Message, TextPart
from tests.cli.running import running
from tests.covers import covers
from tests.store.sessions.support import AT, Home, said
from tests.store.sessions.test_damage import DOCUMENT_KINDS, WORDS, DamagedSession, record_session


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return record_session(Home(tmp_path_factory.mktemp("sound")))


@covers("D606")
@pytest.mark.parametrize(
    ("kind", "told"), [("entries swapped", "out of order"), ("entry twice", "is in the files twice")]
)
async def test_messages_out_of_order_or_repeated_are_put_right_and_told_once(tmp_path, sound, kind, told) -> None:
    session_id, files = sound
    async with running(tmp_path, ["Going on.", "Still here."]) as runner:
        files = files._replace(document=DOCUMENT_KINDS[kind](files.document))
        damaged = DamagedSession(runner.home, session_id, files)
        before = [await runner.run("sessions", *line) for line in (["list"], ["check"], ["view", session_id])]
        resumed = await runner.run("-p", "go on", "--session", session_id)
        again = await runner.run("-p", "and on", "--session", session_id)
    assert [told in done.out + done.err for done in before] == [True] * 3
    assert (resumed.err.count(told), again.err.count(told)) == (1, 0)
    assert damaged.read() == ([*WORDS, "go on", "Going on.", "and on", "Still here."], None)
    assert damaged.is_kept()


PIECES = ["It is", " a long", " answer", " in pieces"]
PIECE_KINDS = {
    "twice": ((0, 1, 2, 1, 3), False, "".join(PIECES)),
    "missing": ((0, 1, 3), True, "It is a long in pieces"),
}


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("kind", PIECE_KINDS)
async def test_a_repeated_piece_of_an_answer_counts_once_and_a_missing_one_is_told(tmp_path, kind, finished) -> None:
    order, is_told, text = PIECE_KINDS[kind]
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("question"))
    for piece in PIECES:
        await service.record_text(session_id, TextPart, piece)
        home.files.writers[-1].write_text(AT)
    if finished:
        whole = (TextPart("".join(PIECES)),)
        await service.record_message(session_id, Message(role="assistant", parts=whole, timestamp=AT))
    *lines, last = home.journal(session_id).read_bytes().splitlines(keepends=True)
    lines, last = (lines, last) if finished else ([*lines, last], b"")
    first = len(lines) - len(PIECES)
    home.crash(session_id)
    lines[first:] = [lines[first + place] for place in order]
    home.journal(session_id).write_bytes(b"".join(lines) + last)

    writer, loaded = home.files.open(session_id)
    writer.close()
    assert ("lacks a part of an answer" in (loaded.damage or "")) == is_told
    assert home.texts(session_id) == ["question", "".join(PIECES) if finished else text]
    assert home.files.read(session_id).damage is None
