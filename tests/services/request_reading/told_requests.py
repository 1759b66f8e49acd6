"""What is read from each line of `requests.txt`, in full, as it was last looked at: what it asks for, what is shown
with it, how an answer begins, and what is left after work of six kinds.

`python -m tests.services.request_reading.told_requests` writes it anew; look at the difference before it is kept.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ollm.services.request_reading.answer_beginnings import (
    begin_first_step,
    begin_named_step,
    begin_words,
    find_new_script,
)
from ollm.services.request_reading.asked_changes import asks_for_change, asks_for_edit
from ollm.services.request_reading.deeds import Deeds
from ollm.services.request_reading.explanations import asks_how, is_meant, is_question
from ollm.services.request_reading.lost_imports import find_lost_imports
from ollm.services.request_reading.named_parts import find_removed_names
from ollm.services.request_reading.plain_words import (
    forbids_change,
    is_kept,
    split_sentences,
    strip_courtesy,
    strip_prohibition,
)
from ollm.services.request_reading.primed_request import Primed, prime_request
from ollm.services.request_reading.replaced_names import find_replacement
from ollm.services.request_reading.suspect_lines import find_suspect_line
from ollm.services.request_reading.unfinished_work import find_kept_tests, find_unfinished, is_computed_into_file
from ollm.services.request_reading.wanted_files import find_changed_files, find_made_files, find_wanted_files
from ollm.services.request_reading.wanted_runs import find_first_command, find_red_tests, find_wanted_commands

FOLDER = Path(__file__).parent
REQUESTS = (FOLDER / "requests.txt").read_text(encoding="utf-8").splitlines()
RECORDED = FOLDER / "told_requests.jsonl"
PARTS = 4  # the table is compared in parts, so that a difference is soon found
MAX_CHARS = 2_600
LONG = "import math\n\nMAX = 3\n\n\n" + "".join(
    f"def total_{number}(items):\n    found = [item for item in items if item]\n    return sum(found) + {number}\n\n\n"
    for number in range(16)
)
FILES = {
    "C.md": "# Changes\n\n## New\n\n- a thing\n\n## 1.0\n\n- the first\n",
    "a.py": "import os\n\nLIMIT = 5\n\n\ndef load(path):\n    return path\n\n\ndef f(x):\n    return load(x) + LIMIT\n",
    "a.txt": "three\none\ntwo\n",
    "add.py": "A_PORT = 8\nB_PORT = 7\nV = '1.4.0'\n\n\ndef add(a, b):\n    return a - b\n",
    "b.py": "from a import load\n\nprint(load('x'))\n",
    "build.sh": "set -e\necho built\n",
    "conf.py": "DEBUG = False\nAPI_PORT = 1039\nSTORE_RETRIES = 3  # times\nMEDIA_ENABLED = True\nNAME = 'app'\nLIMIT_2 = 12\n",
    "config.json": '{\n  "debug": false,\n  "port": 8000\n}\n',
    "data.csv": "id,name,amount\n1,ann,3\n2,bob,4\n",
    "docs/page.md": "# Page\n\n## Print\n\nHow to print.\n\n## Help\n\nAsk.\n",
    "limits.py": LONG,
    "main.py": "import sys\n\nfrom add import add\n\n\ndef main():\n    print(add(1, 2), 'Send')\n\n\nmain()\n",
    "old.txt": "old\n",
    "src/app.py": "PORT = 80\n\n\ndef withdraw(amount):\n    return amount\n\n\nwithdraw(PORT)\n",
    "test_add.py": "from add import add\n\nassert add(1, 2) == 3\n",
}
NAMES = sorted(FILES)
FAILURE = (
    "Traceback (most recent call last):\n"
    '  File "/w/test_add.py", line 3, in <module>\n    assert add(1, 2) == 3\n'
    '  File "/w/limits.py", line 17, in total_2\n    return sum(found) + 2\nAssertionError\n'
)
BLOCKS: tuple[tuple[Any, str, str], ...] = (
    ("shell", "cat a.py | sort", ""),
    ("shell", "rm a.py", ""),
    ("shell", "python main.py", ""),
    ("shell", "python -c 'open(1).write(2)'", ""),
    ("shell", "ls > new.txt", ""),
    ("shell", "sed -i s/a/b/ a.py; git log", ""),
    ("shell", "find . -name x; git status; sed -n 1p a.py", ""),
    ("shell", "git commit -am x", ""),
    ("file", "x", "a.py"),
    ("file", "x", "fresh.py"),
    ("code", "x", ""),
)


@lru_cache(maxsize=1024)
def prime(request: str) -> Primed:
    return prime_request(request, NAMES, FILES.get, MAX_CHARS)


def describe_reading(request: str) -> list[Any]:
    """What it asks for."""
    holds = (asks_for_change, asks_for_edit, is_question, asks_how, forbids_change, is_computed_into_file)
    replaced = find_replacement(request)
    return [
        " ".join(test.__name__ for test in holds if test(request)),
        find_wanted_files(request),
        find_changed_files(request),
        find_made_files(request),
        find_wanted_commands(request),
        sorted(find_kept_tests(request)),
        sorted(find_removed_names(request)),
        [name for name in NAMES if is_kept(name, request)],
        [replaced.old, replaced.new, replaced.called] if replaced else [],
        split_sentences(strip_prohibition(strip_courtesy(request))),
    ]


def describe_beginning(request: str) -> list[Any]:
    """What is shown with it, and how an answer begins."""
    primed = prime(request)
    meant = (is_meant(request, kind, body, path, primed.text) for kind, body, path in BLOCKS)
    alone = (is_meant(request, kind, body, path) for kind, body, path in BLOCKS)
    return [
        *(begin_first_step(request, primed.text, whole=whole) for whole in (False, True)),
        begin_words(request),
        find_new_script(request, primed.text),
        find_first_command(request),
        find_red_tests(request, NAMES),
        "".join("01"[one] for one in meant) + " " + "".join("01"[one] for one in alone),
        primed.text,
        primed.whole,
        primed.meant,
    ]


def describe_left(request: str) -> list[Any]:
    """What is left after work of six kinds, and how an answer to that begins."""
    found = []
    for deeds in list_deeds(request):
        told = find_unfinished(request, deeds, [*NAMES, *deeds.changed])
        shown = [
            f"{step}\n\n{name}:\n```\n{text}```\n{step}"
            for step in told
            for name, text in FILES.items()
            if name in step
        ]
        begun = [begin_named_step(step, whole=whole) for step in (*told, *shown) for whole in (False, True)]
        found.append([told, list(dict.fromkeys(begun))])
    return found


def list_deeds(request: str) -> list[Deeds]:
    wanted = tuple(find_wanted_files(request)) or prime(request).meant or ("add.py",)
    commands = tuple(find_wanted_commands(request)) or ("python main.py", "wc -l data.csv")
    other = {name: f"{text}\n\ndef more():\n    pass\n" for name, text in FILES.items() if name in wanted}
    ran, failed = tuple((line, 0) for line in commands), tuple((line, 1) for line in commands)
    empty = {**FILES, **dict.fromkeys(wanted, " \n")}
    return [
        Deeds(meant=prime(request).meant),
        Deeds(changed=wanted[:1], texts=FILES, before=other, meant=prime(request).meant),
        Deeds(changed=wanted, texts=FILES, before=other, commands=ran, since_change=ran),
        Deeds(changed=wanted[-1:], texts={**FILES, **other}, before=FILES, commands=failed, since_change=failed, failure=FAILURE),
        Deeds(commands=ran, since_change=ran, silent=commands),
        Deeds(changed=wanted, texts=empty, before=FILES, commands=ran, since_change=failed[:1], silent=commands),
    ]  # fmt: skip


def describe_trouble(request: str) -> list[Any]:
    """Imports that were lost, and lines that are suspect."""
    after = {name: FILES[name].replace("load", "fetch") for name in find_wanted_files(request) if name in FILES}
    return [
        find_lost_imports({name: FILES[name] for name in after}, after, NAMES, FILES.get),
        [find_suspect_line(name, FILES[name], FAILURE, request) for name in ("limits.py", "add.py", "a.py")],
    ]


ASPECTS: dict[str, Callable[[str], list[Any]]] = {
    "reading": describe_reading,
    "beginning": describe_beginning,
    "left": describe_left,
    "trouble": describe_trouble,
}


def describe(aspect: str, requests: Sequence[str]) -> list[str]:
    return [json.dumps([aspect, request, *ASPECTS[aspect](request)], ensure_ascii=False) for request in requests]


def list_recorded(aspect: str) -> list[str]:
    lines = RECORDED.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line.startswith(f'["{aspect}"')]


if __name__ == "__main__":
    told = [line for aspect in ASPECTS for line in describe(aspect, REQUESTS)]
    RECORDED.write_text("\n".join(told) + "\n", encoding="utf-8")
