"""Files of data that do not parse are what is to be mended."""

import pytest

from ollm.services.request_reading.answer_beginnings import begin_first_step
from ollm.services.request_reading.broken_data import find_broken_data
from ollm.services.request_reading.deeds import Deeds
from ollm.services.request_reading.primed_request import prime_request
from ollm.services.request_reading.unfinished_work import find_unfinished

BROKEN = '{\n  "a": 1\n  "b": 2\n}\n'
TEXTS = {
    "routes.json": BROKEN,
    "app.toml": "a = \n",
    "good.json": "{}\n",
    "tsconfig.json": "{\n  // paths\n}\n",
    "load.py": "import json\nprint(\n",
}
STEP = "routes.json does not parse: Expecting ',' delimiter: line 3 column 3 (char 13). Now mend routes.json."


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ("load.py cannot read routes.json because it is not valid JSON. Find the mistake and fix it.", ["routes.json"]),
        ("Fix routes.json.", ["routes.json"]),
        ("routes.json is broken, please repair it", ["routes.json"]),
        ("Correct the syntax error in conf/routes.json", ["routes.json"]),
        ("load.py crashes when it loads routes.json. Fix it.", ["routes.json"]),
        ("app.toml does not parse any more. Mend it.", ["app.toml"]),
        ("Fix the mistakes in routes.json and app.toml.", ["routes.json", "app.toml"]),
        ("Fix good.json.", []),
        ("Fix the paths in tsconfig.json.", []),
        ("Fix load.py.", []),
        ("Fix load.py, but do not change routes.json.", []),
        ("Why is routes.json not valid?", []),
        ("Add the key c with the value 3 to routes.json.", []),
        ("Fix the bug.", []),
    ],
)
def test_what_does_not_parse_is_named(request_: str, names: list[str]) -> None:
    assert [step.split(" ")[0] for step in find_broken_data(request_, TEXTS)] == names


def test_it_is_told_first_and_until_it_parses() -> None:
    asked = "load.py cannot read routes.json because it is not valid JSON. Find the mistake and fix it."
    texts = {"load.py": "print(1)\n", "routes.json": BROKEN}
    primed = prime_request(asked, list(texts), texts.get, 4000)

    assert primed.text.endswith(f"\n\n{STEP}")
    assert begin_first_step(asked, f"\n\n{primed.text}") == "routes.json\n```\n"
    left = Deeds(changed=("load.py",), texts=texts, before={"load.py": "x"})
    assert find_unfinished(asked, left, list(texts))[0] == STEP
    right = Deeds(changed=("load.py",), texts={**texts, "routes.json": "{}\n"}, before={"load.py": "x"})
    assert STEP not in find_unfinished(asked, right, list(texts))
