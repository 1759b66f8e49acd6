"""What a turn does more for a model that writes blocks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.messages import ToolCall
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.providers.base import CallPiece
from ollm.providers.text_calls.block_edits import BROKEN_OFF, OUTPUT_REPEATED
from ollm.runtime.calls.block_resolver import Resolved
from ollm.runtime.calls.turn_guide import NO_WORDS, NOTHING_DONE, TurnGuide
from ollm.runtime.model.block_answer import FILE_BLOCK
from tests.runtime.calls.support import ASK
from tests.runtime.calls.test_project_files import Place


class Scene(Place):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.guide = TurnGuide(self.files, 4096)

    def block(self, path: str, content: str, *, whole: bool = True) -> object:
        return self.guide.resolve_call(CallPiece(FILE_BLOCK, {"path": path, "content": content, "whole": whole}))

    async def step(
        self, call: ToolCall, *, code: int | None = None, error: str = "", output: str = "", **files: str | None
    ) -> str:
        """A call with what it did to the files."""
        await self.guide.note_before([call])
        for name, text in files.items():
            target = self.root / name.replace("__", ".")
            if text is None:
                target.unlink()
            else:
                target.write_text(text)
        result = RecordedResult(llm_content=output, exit_code=code)
        failure = ErrorInfo(type=error, message=error) if error else None
        record = ToolCallRecord(
            id="c",
            name=call.name,
            args=call.arguments,
            timestamp="",
            result=result,
            error=failure,
            status="denied" if error == "Denied" else "failed" if error else "ok",
        )
        return await self.guide.describe_after([call], [record])


def shell(command: str) -> ToolCall:
    return ToolCall(id="c", name="shell", arguments={"command": command})


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "w")
    yield made
    made.discovery.close()


async def test_a_request_goes_with_the_files_it_names_and_they_are_known_whole(scene: Scene) -> None:
    scene.write("app.py", "x = 1\n")
    scene.write("other.py", "y = 1\n")

    primed = await scene.guide.prime_request("Change x in app.py to 2.")

    assert primed.startswith("Files here: app.py, other.py")
    assert "x = 1" in primed
    assert "y = 1" not in primed
    assert scene.files.knows_whole("app.py", "x = 1\n")
    assert not scene.files.knows_whole("other.py", "y = 1\n")


async def test_a_new_file_is_written_and_a_known_one_changed(scene: Scene) -> None:
    scene.write("app.py", "x = 1\n")
    await scene.guide.prime_request("Change x in app.py to 2.")

    new = scene.block("new.py", "z = 1\n")
    changed = scene.block("app.py", "x = 2\n")

    assert (new.name, new.arguments, new.refusal) == ("write_file", {"path": "new.py", "content": "z = 1\n"}, "")  # type: ignore[attr-defined]
    assert changed.name in ("edit_file", "write_file")  # type: ignore[attr-defined]
    assert changed.refusal == ""  # type: ignore[attr-defined]
    assert "x = 2" in str(changed.arguments)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("request_", "every"), [("Set each x to 2 in app.py.", True), ("Set x to 2 in app.py.", False)]
)
async def test_an_edit_is_of_every_place_where_the_request_says_so(scene: Scene, request_: str, every: bool) -> None:
    scene.write("app.py", "x = 1\n" + "y = 3\n" * 90 + "x = 1\n")
    await scene.guide.prime_request(request_)

    found: Any = scene.block("app.py", "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n")

    (edit,) = found.arguments["edits"]
    assert edit == {"target": "x = 1", "replacement": "x = 2", **({"replaceAll": True} if every else {})}


async def test_a_block_that_broke_off_is_not_done(scene: Scene) -> None:
    await scene.guide.prime_request("Write new.py.")

    assert scene.block("new.py", "z = ", whole=False).refusal == BROKEN_OFF  # type: ignore[attr-defined]
    command = scene.guide.resolve_call(CallPiece("shell", {"command": "rm -r", "brokenOff": True}))
    assert (command.refusal, command.arguments) == (BROKEN_OFF, {"command": "rm -r"})
    plain = scene.guide.resolve_call(CallPiece("shell", {"command": "ls"}))
    assert (plain.name, plain.arguments, plain.refusal) == ("shell", {"command": "ls"}, "")
    assert scene.guide.resolve_call(CallPiece("ls", "no object")).arguments == "no object"


async def test_a_file_that_may_not_be_read_is_written_as_the_block_says(scene: Scene) -> None:
    scene.policy.verdict = ASK
    scene.write("secret.txt", "hidden")
    await scene.guide.prime_request("Change secret.txt.")

    made = scene.block("secret.txt", "text")

    assert (made.name, made.arguments) == ("write_file", {"path": "secret.txt", "content": "text"})  # type: ignore[attr-defined]


async def test_a_name_alone_means_the_only_file_of_that_name_that_was_asked_about(scene: Scene) -> None:
    scene.write("src/deep/app.py", "x = 1\n")
    await scene.guide.prime_request("Change x in src/deep/app.py to 2.")
    assert scene.guide._find_path("app.py") == "src/deep/app.py"
    assert scene.guide._find_path("none.py") == "none.py"
    scene.write("lib/app.py", "x = 1\n")
    await scene.guide.prime_request("Change x in src/deep/app.py to 2.")
    assert scene.guide._find_path("app.py") == "app.py"


@pytest.mark.parametrize(
    ("request_text", "answer", "command"),
    [
        ("Delete old.txt.", "rm old.txt", "rm old.txt"),
        ("Delete old.txt.", "  rm old.txt\n", "rm old.txt"),
        ("Delete old.txt.", "rm", None),
        ("Delete old.txt.", "rm removes files.", None),
        ("Delete old.txt.", "rm a\nrm b", None),
        ("Delete old.txt.", "nonsense old.txt", None),
        ("What is in old.txt?", "rm old.txt", None),
    ],
)
async def test_a_command_without_its_fence_is_read_where_something_is_to_be_done(
    scene: Scene, request_text: str, answer: str, command: str | None
) -> None:
    await scene.guide.prime_request(request_text)

    found = scene.guide.read_bare_command(answer)

    assert (found.arguments if found else None) == ({"command": command} if command else None)


async def test_what_the_calls_did_is_said_in_lines(scene: Scene) -> None:
    scene.write("a.txt", "one\ntwo\n")
    scene.write("gone.txt", "x\n")
    await scene.guide.prime_request("Do it.")

    facts = await scene.step(shell("sed"), code=0, a__txt="one\n2\n", new__txt="x\n", gone__txt=None)

    assert facts == "Deleted gone.txt.\nChanged lines of a.txt:\n-two\n+2\nCreated new.txt (1 line)."
    assert scene.guide.describe_deeds() == (
        "Changed: a.txt (+1 -1), new.txt (+1 -0), gone.txt (deleted). Ran: sed (exit code 0)."
    )


async def test_a_file_that_was_written_is_not_shown_again_but_known_whole(scene: Scene) -> None:
    await scene.guide.prime_request("Write a.txt.")
    call = ToolCall(id="c", name="write_file", arguments={"path": "a.txt", "content": "x\n"})

    assert await scene.step(call, a__txt="x\n") == NO_WORDS
    assert scene.files.knows_whole("a.txt", "x\n")
    assert scene.guide.describe_deeds() == "Changed: a.txt (+1 -0)."


async def test_a_file_printed_whole_is_known_whole(scene: Scene) -> None:
    scene.write("a.txt", "one\n")
    await scene.guide.prime_request("Do it.")
    await scene.step(shell("cat ./a.txt | head"), code=0)
    assert not scene.files.knows_whole("a.txt", "one\n")
    await scene.step(shell("cat ./a.txt"), code=1)
    assert not scene.files.knows_whole("a.txt", "one\n")
    await scene.step(shell("cat ./a.txt"), code=0)

    assert scene.files.knows_whole("a.txt", "one\n")


async def test_what_has_not_happened_is_said_once_and_three_times_at_most(scene: Scene) -> None:
    scene.write("a.py", "x = 1\n")
    scene.guide.adopt_request("Change x in a.py to 2.")
    await scene.step(shell("ls"), code=0)

    first = scene.guide.find_missing()

    assert "a.py" in first
    assert scene.guide.find_missing() == first
    assert scene.guide.find_missing() == "Now change a.py with a command."
    assert scene.guide.find_missing() == ""


async def test_a_file_that_no_longer_parses_is_said(scene: Scene) -> None:
    scene.write("a.py", "x = 1\n")
    scene.guide.adopt_request("Change x in a.py to 2.")

    facts = await scene.step(shell("sed"), code=0, a__py="x = (\n")

    assert "a.py" in facts
    assert len(facts.splitlines()) > 3
    assert scene.guide.find_missing().endswith("Now mend a.py.")


@pytest.mark.parametrize(
    ("command", "mended"),
    [
        ("sed -i 's/a b/c' f.py", "sed -i 's/a b/c/' f.py"),
        ("sed -i 's/a/b/g' f.py", "sed -i 's/a/b/g' f.py"),
        (r"sed -i 's/\/a/b' f.py && ls", r"sed -i 's/\/a/b/' f.py && ls"),
        ("echo 's/a/b'", "echo 's/a/b'"),
    ],
)
def test_a_substitution_gets_the_slash_it_lacks(scene: Scene, command: str, mended: str) -> None:
    assert scene.guide.resolve_call(CallPiece("shell", {"command": command})).arguments == {"command": mended}


async def test_what_is_counted_comes_with_its_number(scene: Scene) -> None:
    scene.guide.adopt_request("How many files are here?")
    await scene.guide.note_before([shell("ls")])
    result = RecordedResult(llm_content="a\nb\nc\n", exit_code=0)
    record = ToolCallRecord(id="c", name="shell", args={}, timestamp="", result=result)

    assert "That is 3 lines." in await scene.guide.describe_after([shell("ls")], [record])


async def test_a_file_that_is_still_to_change_is_shown_as_it_is_now(scene: Scene) -> None:
    scene.write("a.py", "x = 1\n")
    scene.write("b.py", "y = 1\n")
    scene.guide.adopt_request("Change x to 2 in a.py and b.py.")
    await scene.step(shell("sed"), code=0, a__py="x = 2\n")

    assert scene.guide.find_missing() == "b.py:\n```\ny = 1\n```\n\nNow change b.py too."
    assert scene.files.knows_whole("b.py", "y = 1\n")


async def test_the_same_answer_once_more_is_taken(scene: Scene) -> None:
    scene.write("a.py", "x = 1\n")
    scene.guide.adopt_request("Change x in a.py to 2.")
    await scene.step(shell("ls"), code=0)

    assert scene.guide.find_missing_after("Done.").endswith("Now change a.py.")
    assert scene.guide.find_missing_after("Done.") == ""


async def test_an_empty_answer_is_asked_for_words_once(scene: Scene) -> None:
    scene.guide.adopt_request("What is here?")
    await scene.step(shell("ls"), code=0)

    assert scene.guide.find_missing_after("") == NO_WORDS
    assert scene.guide.find_missing_after("") == ""


async def test_a_file_that_is_meant_without_its_name_is_shown_and_named_as_what_is_left(scene: Scene) -> None:
    scene.write("bank.py", "def withdraw(balance, amount):\n    return balance - amount\n")
    scene.write("app.py", "print(1)\n")

    primed = await scene.guide.prime_request("withdraw should raise ValueError if amount is greater than balance.")

    assert "return balance - amount" in primed
    await scene.step(shell("ls"), code=0)
    assert scene.guide.find_missing_after("Done.").endswith("Now change bank.py.")


async def test_a_file_that_the_user_wants_kept_is_not_changed(scene: Scene) -> None:
    scene.write("a.py", "x = 1\n")
    scene.write("test_a.py", "from a import x\nassert x == 2\n")
    await scene.guide.prime_request("python test_a.py fails. Make it pass, but don't touch the test.")

    assert getattr(scene.block("test_a.py", "assert True\n"), "refusal", "")
    assert not getattr(scene.block("a.py", "x = 2\n"), "refusal", "")


async def test_an_answer_of_blocks_alone_is_asked_for_words(scene: Scene) -> None:
    scene.guide.adopt_request("What does discount(100) return?")
    assert scene.guide.find_missing_after("```bash\npython a.py\n```") == NO_WORDS

    other = TurnGuide(scene.files, 4096)
    other.adopt_request("What is the command to list files?")
    assert other.find_missing_after("```bash\nls\n```") == ""


async def test_files_changed_there_and_back_are_noticed(scene: Scene) -> None:
    scene.write("a.py", "x = 1\n")
    scene.guide.adopt_request("Change x in a.py.")
    for number in range(5):
        assert not scene.guide.find_circle()
        await scene.step(shell("sed"), code=0, a__py=f"x = {number % 2 + 2}\n")

    assert scene.guide.find_circle() == "files were changed there and back"


async def test_a_module_that_imports_what_moved_is_the_step_that_is_left(scene: Scene) -> None:
    scene.write("paths.py", "ROOT = 1\nLOGS = 2\n")
    scene.write("const.py", "NAME = 3\n")
    scene.write("main.py", "from paths import LOGS\n")
    await scene.guide.prime_request("Move LOGS from paths.py into const.py. main.py must still work.")
    await scene.step(shell("mv"), code=0, paths__py="ROOT = 1\n", const__py="NAME = 3\nLOGS = 2\n")

    assert scene.guide.find_missing().endswith("It is in const now. Now change main.py.")


EDIT = ("edit_file", {"path": "app.py", "edits": [{"target": "x = 1", "replacement": "x = 2"}]}, "")
NO_PARSE = "Nothing was changed: with this block app.py no longer parses: line 1: invalid syntax."
EMPTY = "The block for app.py is empty: nothing was changed."


@pytest.mark.parametrize(
    ("command", "resolved"),
    [
        ("app.py: error", OUTPUT_REPEATED),
        ("Traceback (most recent call last)", OUTPUT_REPEATED),
        ("[exit code 1]", OUTPUT_REPEATED),
        ("ls", ""),
        ("cat > app.py <<'EOF'\nx = 2\ny = 2\nEOF", EDIT),
        ("cat > app.py <<EOF\nx = 2\ny = 2\nEOF", EDIT),
        ("cat > app.py <<EOF\nx = $(ls)\nEOF", ""),
        (
            "cat > app.py <<'EOF'\nx = $(ls)\nEOF",
            ("write_file", {"path": "app.py", "content": "x = $(ls)\n"}, NO_PARSE),
        ),
        ("cat > new.py <<'EOF'\nx = 2\nEOF", ""),
        ("cat > app.py << EOF\nEOF", ("write_file", {"path": "app.py", "content": ""}, EMPTY)),
    ],
)
async def test_a_command_that_writes_a_file_that_is_there_is_a_change_of_it(
    scene: Scene, command: str, resolved: str | tuple[str, Any, str]
) -> None:
    scene.write("app.py", "x = 1\ny = 2\n")
    await scene.guide.prime_request("Change x in app.py to 2.")

    found = scene.guide.resolve_call(CallPiece("shell", {"command": command}))

    wanted = ("shell", {"command": command}, resolved) if isinstance(resolved, str) else resolved
    assert (found.name, found.arguments, found.refusal) == wanted


async def test_the_blocks_of_one_answer_follow_each_other_and_those_of_the_next_begin_anew(scene: Scene) -> None:
    scene.write("app.py", "x = 1\ny = 2\n")
    await scene.guide.prime_request("Change x in app.py to 2.")

    def tell(content: str, **more: bool) -> tuple[str, Any, str]:
        found: Any = scene.block("app.py", content, **more)
        return found.name, found.arguments, found.refusal

    assert tell("x = 2\ny = 2\n") == EDIT
    assert tell("x = 2\ny = 3\n")[1]["edits"] == [{"target": "y = 2", "replacement": "y = 3"}]
    scene.guide.begin_answer()
    assert tell("x = 2\ny = 2\n") == EDIT
    scene.guide.begin_answer()
    cut = tell("x = 2\ny = 2\n", whole=False)
    assert cut == ("write_file", {"path": "app.py", "content": "x = 2\ny = 2\n"}, BROKEN_OFF)
    assert tell("x = 2\ny = 2\n") == EDIT, "what was refused changed nothing"


SHOWN = "app.py:\n```\nx = 1\n```\n\nNow change app.py."
IDLE = "sed found nothing to replace: no file was changed."
CHANGED = "Changed lines of app.py:\n-x = 1\n+x = 2"


@pytest.mark.parametrize(
    ("names_steps", "may_change", "told"),
    [
        (False, True, ["", f"{IDLE}\n{SHOWN}", f"{IDLE}\n{SHOWN}", f"{CHANGED}\n\nNow run python app.py.", "", ""]),
        (False, False, ["", IDLE, IDLE, CHANGED, "", ""]),
        (
            True,
            True,
            [
                *(SHOWN, f"{IDLE}\n{SHOWN}", f"{IDLE}\nNow change app.py with a command."),
                *(f"{CHANGED}\n\nNow run python app.py.", NO_WORDS, ""),
            ],
        ),
        (True, False, ["", IDLE, IDLE, f"{CHANGED}\n\n{NO_WORDS}", "", ""]),
    ],
)
async def test_a_whole_turn_step_by_step(scene: Scene, names_steps: bool, may_change: bool, told: list[str]) -> None:
    scene.write("app.py", "x = 1\n")
    guide = scene.guide = TurnGuide(scene.files, 4096, names_steps=names_steps, may_change=may_change)
    await guide.prime_request("Change x in app.py to 2, then run python app.py.")
    assert guide.describe_deeds() == ("No file was changed and no command was run." if may_change else "")
    sed = shell("sed -i 's/q/r/' app.py")

    said = [
        await scene.step(shell("ls"), code=0),
        await scene.step(sed, code=0),
        await scene.step(sed, code=0, error="NotFound"),
        await scene.step(shell("sed -i 's/1/2/' app.py"), code=0, app__py="x = 2\n"),
        await scene.step(shell("python app.py"), code=3),
        guide.find_missing_after("Done.") if not names_steps else "",
    ]

    assert said[:4] == told[:4]
    assert guide.read_bare_command("rm app.py") is None, "something was done already"
    assert guide.describe_deeds() == (
        "Changed: app.py (+1 -1). Ran: ls (exit code 0); sed -i 's/q/r/' app.py (exit code 0);"
        " sed -i 's/q/r/' app.py (exit code 0); sed -i 's/1/2/' app.py (exit code 0); python app.py (exit code 3)."
    )


async def test_of_many_files_those_are_watched_that_are_spoken_of(scene: Scene) -> None:
    for number in range(400):
        scene.write(f"f{number}.txt", "x\n")
    await scene.guide.prime_request("Change it in f3.txt.")
    assert await scene.step(shell("x"), code=0, f7__txt="y\n") == "Changed lines of f7.txt:\n-x\n+y"
    scene.write("f400.txt", "x\n")

    assert await scene.step(shell("x"), code=0, f7__txt="z\n") == ""
    assert await scene.step(shell("x f7.txt"), code=0, f7__txt="w\n", f3__txt="q\n") == (
        f"Changed lines of f3.txt:\n-x\n+q\nChanged lines of f7.txt:\n-z\n+w\n\n{NO_WORDS}"
    )


async def test_what_is_missing_is_said_six_times_in_a_turn(scene: Scene) -> None:
    for name in ("a.py", "b.py", "c.py"):
        scene.write(name, "x = 1\n")
    scene.guide.adopt_request("Change x to 2 in a.py, b.py and c.py.")
    await scene.step(shell("ls"), code=0)

    said = [bool(scene.guide.find_missing()) for _ in range(8)]

    assert said == [True] * 6 + [False] * 2


async def test_a_file_changed_by_a_command_is_known_as_it_is_now(scene: Scene) -> None:
    scene.write("app.py", "x = 1\n")
    scene.write("other.py", "y = 1\n")
    await scene.guide.prime_request("Change x in app.py to 2.")

    await scene.step(shell("sed"), code=0, app__py="x = 2\n", other__py="y = 2\n")

    assert scene.files.knows_whole("app.py", "x = 2\n")
    assert not scene.files.knows_whole("other.py", "y = 2\n")
    assert not scene.is_stale("other.py")


async def test_a_write_that_failed_shows_nothing(scene: Scene) -> None:
    scene.write("a.txt", "one\n")
    await scene.guide.prime_request("Do it.")
    call = ToolCall(id="c", name="write_file", arguments={"path": "a.txt", "content": "x\n"})

    await scene.step(call, error="NotFound")

    assert not scene.files.knows_whole("a.txt", "one\n")


async def test_only_commands_that_ended_were_run(scene: Scene) -> None:
    await scene.guide.prime_request("What is here?")
    await scene.step(shell("ls"), error="NotFound")
    await scene.step(ToolCall(id="c", name="lint", arguments={"command": "all"}), code=0)

    assert scene.guide.describe_deeds() == NOTHING_DONE


async def test_a_failed_call_is_followed_by_what_is_left(scene: Scene) -> None:
    scene.write("app.py", "x = 1\n")
    await scene.guide.prime_request("Change x in app.py to 2.")

    assert await scene.step(shell("patch app.py"), error="NotFound") == SHOWN
    assert await scene.step(shell("patch app.py"), error="Denied") == ""


async def test_a_command_that_is_left_is_named_behind_a_change_alone(scene: Scene) -> None:
    scene.write("app.py", "x = 1\n")
    await scene.guide.prime_request("Change x in app.py to 2, then run python app.py.")

    assert await scene.step(shell("sed"), code=0, error="NotFound", app__py="x = 2\n") == CHANGED
    assert await scene.step(shell("ls"), code=0) == ""
    assert await scene.step(shell("sed"), code=0, app__py="x = 2 \n") == (
        "Changed lines of app.py:\n-x = 2\n+x = 2 \n\nNow run python app.py."
    )
    assert [scene.guide.find_missing() for _ in range(3)] == ["Now run python app.py."] * 2 + [""]


@pytest.mark.parametrize(
    ("code", "output", "said"), [(2, "no such file", ""), (0, "", ""), (0, "[no output]", ""), (0, "a.txt", NO_WORDS)]
)
async def test_a_look_that_found_nothing_is_not_the_time_for_words(
    scene: Scene, code: int, output: str, said: str
) -> None:
    scene.guide = TurnGuide(scene.files, 4096, names_steps=True)
    await scene.guide.prime_request("What is here?")

    assert await scene.step(shell("ls"), code=code, output=output) == said


async def test_words_are_asked_for_behind_a_change_whatever_was_printed(scene: Scene) -> None:
    scene.guide = TurnGuide(scene.files, 4096, names_steps=True)
    await scene.guide.prime_request("Do it.")

    assert await scene.step(shell("touch new.txt"), code=0, new__txt="x\n") == (
        f"Created new.txt (1 line).\n\n{NO_WORDS}"
    )


async def test_a_file_of_this_turn_that_is_gone_again_was_no_deed(scene: Scene) -> None:
    scene.write("old.txt", "x\n")
    scene.guide.adopt_request("Do it.")
    await scene.step(shell("ls"), code=0)
    await scene.step(shell("touch new.txt"), code=0, new__txt="x\n")
    await scene.step(shell("rm new.txt old.txt"), code=0, new__txt=None, old__txt=None)

    assert scene.guide.describe_deeds().startswith("Changed: old.txt (deleted). Ran: ls")


@pytest.mark.parametrize(("window", "whole"), [(1024, True), (800, False)])
async def test_what_goes_with_a_request_takes_a_share_of_the_window(scene: Scene, window: int, whole: bool) -> None:
    scene.write("app.py", "x = 123456789012345\n" * 42)
    guide = TurnGuide(scene.files, window)

    primed = await guide.prime_request("Change x in app.py to 2.")

    assert scene.files.knows_whole("app.py", "x = 123456789012345\n" * 42) == whole
    assert len(primed) <= window * 0.9


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        ("Rename total to amount in a.py.", ""),
        ("Rename total to amount.", "b.py"),
    ],
)
async def test_a_word_is_looked_for_everywhere_unless_it_is_said_where(scene: Scene, request_: str, left: str) -> None:
    scene.write("a.py", "total = 1\n")
    scene.write("b.py", "total = 3\n")
    await scene.guide.prime_request(request_)
    await scene.step(shell("sed"), code=0, a__py="amount = 1\n")

    said = scene.guide.find_missing()

    assert (left in said) if left else said == ""


async def test_a_file_that_a_command_of_this_turn_made_may_be_written_anew(scene: Scene) -> None:
    scene.write("temps.json", "[1]\n")
    await scene.guide.prime_request("I need temps.json as a CSV file, temps.csv.")
    await scene.step(shell("python -c x > temps.csv"), code=0, temps__csv="{}\n" * 17)

    assert scene.block("temps.csv", "city,low\nOslo,1\n") == Resolved(
        name="write_file", arguments={"path": "temps.csv", "content": "city,low\nOslo,1\n", "overwrite": True}
    )


async def test_a_command_that_fails_whatever_is_changed_for_it_ends_in_a_circle(scene: Scene) -> None:
    scene.write("a.sh", "x\n")
    await scene.guide.prime_request("a.sh fails. Fix it.")
    for number in range(9):
        await scene.step(shell("sh a.sh"), code=1, output="no", a__sh=f"{number}\n")
        assert not scene.guide.find_circle()

    await scene.step(shell("sh a.sh"), code=1, output="no", a__sh="more\n")

    assert scene.guide.find_circle() == "the same command fails again and again"
