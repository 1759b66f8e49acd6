"""`ollm -p` with a model that writes blocks: what is put where it belongs, and what its steps begin with."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_blocks import blocks, last_message, read, run_task

__all__ = ["blocks"]  # a fixture that each test uses

SERVICES = "services:\n  web:\n    image: nginx\n  db:\n    image: postgres\n  cache:\n    image: redis\n"
REGION = '{\n      "host": "HOST.example",\n      "timeout": 30,\n      "disks": [\n        "ssd"\n      ]\n    }'
NAMES = ("eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east", "sa-east", "af-south", "me-north")
REGIONS = (
    '{\n  "regions": {\n' + ",\n".join(f'    "{name}": {REGION.replace("HOST", name)}' for name in NAMES) + "\n  }\n}\n"
)


async def test_a_line_for_one_entry_goes_there_although_the_block_has_it_in_another(tmp_path: Path) -> None:
    asked = "Could you make the db service restart always in compose.yml? Only db, not the others."
    block = f"compose.yml\n```\n{SERVICES}    restart: always\n```"

    _, runner = await run_task(tmp_path, {"compose.yml": SERVICES}, asked, [block, "Added."])

    assert read(runner, "compose.yml") == SERVICES.replace("postgres\n", "postgres\n    restart: always\n")
    assert "+    restart: always" in last_message(runner, 1)


async def test_an_entry_among_others_like_it_is_changed_and_one_that_is_left_goes_by_a_command(tmp_path: Path) -> None:
    asked = "in regions.json set the timeout of us-east to 45 and remove the region ap-south"
    changed = f'    "us-east": {REGION.replace("HOST", "us-east").replace("30", "45")},'
    shown = f'regions.json\n```\n{{\n  "regions": {{\n    "eu-west": {{\n...\n{changed}\n...\n  }}\n}}\n```'
    script = [shown, "Timeout set. Removed ap-south.", "\n```", "Done."]

    _, runner = await run_task(tmp_path, {"regions.json": REGIONS}, asked, script, kind="llama.cpp")

    step = runner.server.chats[2]["messages"]
    assert step[-2]["content"].startswith("ap-south is still in regions.json. Now run sed -i '")
    assert step[-1]["content"].startswith("```bash\nsed -i '")
    wanted = json.loads(REGIONS)
    wanted["regions"]["us-east"]["timeout"] = 45
    del wanted["regions"]["ap-south"]
    assert json.loads(read(runner, "regions.json")) == wanted


async def test_a_block_for_another_entry_is_asked_for_again(tmp_path: Path) -> None:
    asked = "Make the db service of compose.yml restart by itself."
    wrong = f"compose.yml\n```\n{SERVICES.replace('nginx', 'nginx-new')}```"
    wanted = SERVICES.replace("postgres\n", "postgres\n    restart: always\n")

    said, runner = await run_task(
        tmp_path, {"compose.yml": SERVICES}, asked, [wrong, f"compose.yml\n```\n{wanted}```", "Done."]
    )

    assert "Nothing was changed: with this block web would change in compose.yml, and db would not." in last_message(
        runner, 1
    )
    assert [call["status"] for call in said["toolCalls"]] == ["failed", "ok"]
    assert read(runner, "compose.yml") == wanted


async def test_a_line_that_is_spelled_out_for_one_entry_is_put_there(tmp_path: Path) -> None:
    asked = "Could you give the db service a `restart: always` in the compose file? Only db, not the others."
    files = {"docker-compose.yml": SERVICES, "README.md": "Start it with docker compose.\n"}
    wanted = SERVICES.replace("postgres\n", "postgres\n    restart: always\n")

    said, runner = await run_task(tmp_path / "1", files, asked, ["Added."])
    assert read(runner, "docker-compose.yml") == wanted
    assert [call["name"] for call in said["toolCalls"]] == ["shell"]

    asked = "Run `cat README.md`, then add `restart: always` to db in docker-compose.yml"
    script = ["```bash\ncat README.md\n```", "Added.", f"docker-compose.yml\n```\n{wanted}```", "Done."]
    _, runner = await run_task(tmp_path / "2", files, asked, script)
    assert "restart: always is not under db in docker-compose.yml. Now run sed -i '5a\\    restart" in last_message(
        runner, 2
    )
    assert read(runner, "docker-compose.yml") == wanted


async def test_other_entries_stay_as_they_were_although_the_block_changes_them_too(tmp_path: Path) -> None:
    css = "body {\n  background: white;\n}\n\n.card {\n  background: white;\n}\n"
    block = f"style.css\n```css\n{css.replace('white', '#fafafa')}```"
    one = "I want a background of #fafafa in the body rule of style.css."

    _, runner = await run_task(tmp_path / "1", {"style.css": css}, one, [block, "Changed."])
    assert read(runner, "style.css") == css.replace("white", "#fafafa", 1)
    assert last_message(runner, 1).count("#fafafa") == 1, "that is what the model is told"

    plain = "The body's background in style.css should be #fafafa instead of white."
    said, runner = await run_task(tmp_path / "3", {"style.css": css}, plain, [block, "Changed."])
    assert read(runner, "style.css") == css.replace("white", "#fafafa", 1)
    steps = [(call["name"], call["status"]) for call in said["toolCalls"]]
    assert steps == [("shell", "ok")], "what it says in full is done first, and then no more"

    both = "Every background in style.css should be #fafafa, in body and elsewhere."
    _, runner = await run_task(tmp_path / "2", {"style.css": css}, both, [block, "Changed."])
    assert read(runner, "style.css") == css.replace("white", "#fafafa")


PAGE = "- [ ] buy paint\n- [ ] paint\n"


async def test_an_item_is_ticked_off_by_the_command_its_words_say(tmp_path: Path) -> None:
    said, runner = await run_task(tmp_path, {"todo.md": PAGE}, "tick off 'buy paint' in todo.md", ["Ticked."])

    assert read(runner, "todo.md") == PAGE.replace("[ ] buy", "[x] buy")
    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("shell", "ok")]
    assert "\n-- [ ] buy paint\n+- [x] buy paint\n" in last_message(runner, 0), "the model is told what was done"


async def test_an_item_that_was_to_be_ticked_off_and_was_not_is_a_step(tmp_path: Path) -> None:
    asked = "Write hello into a.txt, then check 'buy paint' off in todo.md"
    block = f"todo.md\n```\n{PAGE.replace('[ ] buy', '[x] buy')}```"
    script = ["a.txt\n```\nhello\n```", "todo.md remains unchanged.", block, "Ticked."]

    _, runner = await run_task(tmp_path, {"todo.md": PAGE}, asked, script)

    assert "The box of 'buy paint' is not changed in todo.md. Now run sed -i 's/" in last_message(runner, 2)
    assert read(runner, "todo.md") == PAGE.replace("[ ] buy", "[x] buy")
    assert len(runner.server.chats) == 4, "then nothing is left"


async def test_a_line_is_commented_out_by_the_command_its_words_say(tmp_path: Path) -> None:
    text = "def start_toolbar():\n    print('toolbar')\n\n\nstart_toolbar()\n"
    asked = "comment out the line in app.py that starts the toolbar"

    said, runner = await run_task(tmp_path, {"app.py": text}, asked, ["It is commented out."])

    assert read(runner, "app.py") == text.replace("\nstart", "\n# start")
    assert [call["name"] for call in said["toolCalls"]] == ["shell"]


async def test_files_move_by_the_command_that_the_words_say(tmp_path: Path) -> None:
    files = {"run.sh": "echo up\n", "stop.sh": "echo down\n", "test_run.py": "# nothing\n"}

    said, runner = await run_task(tmp_path / "1", files, "Rename the script run.sh to start.sh.", ["It is renamed."])
    assert sorted(path.name for path in runner.workspace.glob("*.sh")) == ["start.sh", "stop.sh"]
    assert read(runner, "start.sh") == "echo up\n"
    assert [(call["name"], call["status"]) for call in said["toolCalls"]] == [("shell", "ok")]
    assert len(runner.server.chats) == 1, "the model was only asked for words"

    asked = "Create the folder tests and put test_run.py there."
    said, runner = await run_task(tmp_path / "2", files, asked, ["It is there."])
    assert read(runner, "tests/test_run.py") == "# nothing\n"
    assert not (runner.workspace / "test_run.py").exists()
    assert said["text"].endswith("It is there.")


async def test_in_a_file_with_crlf_a_method_goes_into_its_class_and_the_ends_of_lines_stay(tmp_path: Path) -> None:
    parts = "".join(f"def part_{number}(x):\n    return x + {number}\n\n\n" for number in range(30))
    text = f"class Shelf:\n    def count(self):\n        return 1\n\n\n{parts.rstrip()}\n".replace("\n", "\r\n")
    asked = "Add a method rest to the class Shelf in shelf.py that returns 2."
    block = "shelf.py\n```python\ndef rest(self):\n    return 2\n```"

    _, runner = await run_task(tmp_path, {"shelf.py": text}, asked, [block, *["Done."] * 3])

    after = (runner.workspace / "shelf.py").read_bytes().decode()
    added = "        return 1\r\n\r\n    def rest(self):\r\n        return 2\r\n"
    assert after == text.replace("        return 1\r\n", added)
