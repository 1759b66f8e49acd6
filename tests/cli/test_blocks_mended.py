"""`ollm -p` with a model that writes blocks: its slips in programs, and values in tests of its own."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_blocks import blocks, read, run_task

__all__ = ["blocks"]  # a fixture that each test uses


async def test_lines_go_into_json_without_their_line_breaks(tmp_path: Path) -> None:
    asked = "turn names.txt into a json list of strings, in names.json"
    code = "import json; print(json.dumps(open('names.txt').readlines()))"
    script = "make.py\n```python\nimport json\nlines = list(open('names.txt'))\njson.dump(lines, open('names.json', 'w'))\n```"
    for number, steps in enumerate(
        ([f'```bash\npython3 -c "{code}" > names.json\n```'], [script, "```bash\npython3 make.py\n```"])
    ):
        _, runner = await run_task(
            tmp_path / str(number), {"names.txt": "Mara\nJonas\n"}, asked, [*steps, "It is there."]
        )

        assert json.loads(read(runner, "names.json")) == ["Mara", "Jonas"]


async def test_a_file_of_this_turn_that_is_no_json_becomes_it(tmp_path: Path) -> None:
    asked = "turn names.txt into a json list of strings, in names.json"
    first = "```bash\ncat names.txt > names.json; cat names.json\n```"
    written = 'names.json\n```json\n["Mara", "Jonas", "Priya", "Leila"]\n```'
    script = [first, "It is there.", written, "It is JSON now."]

    for number, old in enumerate(({}, {"names.json": '[\n"a",\n"b",\n"c"\n"d"\n]\n'})):
        files = {"names.txt": "Mara\nJonas\nPriya\nLeila\n", **old}
        steps = script if not old else script[2:]
        _, runner = await run_task(tmp_path / str(number), files, asked, steps)
        wanted = old.get("names.json", '["Mara", "Jonas", "Priya", "Leila"]\n')
        assert read(runner, "names.json") == wanted, "what was there before is not cut"
