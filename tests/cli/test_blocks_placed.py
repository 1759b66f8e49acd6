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
    asked = "Could you give the db service a `restart: always` in compose.yml? Only db, not the others."
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


async def test_an_item_that_is_to_be_ticked_off_is_work(tmp_path: Path) -> None:
    page = "- [ ] buy paint\n- [ ] paint\n"
    script = ["todo.md remains unchanged.", f"todo.md\n```\n{page.replace('[ ] buy', '[x] buy')}```", "Ticked."]

    _, runner = await run_task(tmp_path, {"todo.md": page}, "tick off 'buy paint' in todo.md", script)

    assert last_message(runner, 1).endswith("Now change todo.md.")
    assert read(runner, "todo.md") == page.replace("[ ] buy", "[x] buy")
