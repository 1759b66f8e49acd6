"""What is learnt about models, written by several processes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.domain.model_facts import ModelFacts
from ollm.store.model_facts import ModelFactsFile, make_facts_key

KEY = make_facts_key("ollama", "http://127.0.0.1:11434", "qwen3:8b")


def test_an_unknown_model_has_safe_defaults(tmp_path: Path) -> None:
    assert ModelFactsFile(tmp_path / "facts.json").get(KEY) == ModelFacts(key=KEY)


def test_what_was_learnt_is_known_in_the_next_run_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "home" / "facts.json"
    ModelFactsFile(path).update(KEY, call_form="text", window=8192)
    ModelFactsFile(path).update(KEY, decode_per_second=12.5)
    ModelFactsFile(path).update("other", window=1)

    assert ModelFactsFile(path).get(KEY) == ModelFacts(key=KEY, call_form="text", window=8192, decode_per_second=12.5)
    assert [facts.key for facts in ModelFactsFile(path).list_all()] == [KEY, "other"]
    assert [place.stat().st_mode & 0o777 for place in (path, path.parent)] == [0o600, 0o700]


def test_fields_of_a_newer_version_survive(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({KEY: {"window": 5, "dreams": True}}), encoding="utf-8")
    ModelFactsFile(path).update(KEY, window=6)

    assert json.loads(path.read_text(encoding="utf-8"))[KEY] == {"window": 6, "dreams": True}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"a": 1}', b'{"k": {"window": "large"}}'])
def test_a_file_that_cannot_be_read_is_learnt_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(content)

    assert ModelFactsFile(path).get("k") == ModelFacts(key="k")
    assert ModelFactsFile(path).update("k", window=7).window == 7


def test_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from ollm.store.model_facts import ModelFactsFile\n"
    script += "for n in range(10): ModelFactsFile(Path(sys.argv[1])).update(f'{sys.argv[2]}-{n}', window=n + 1)"
    path = tmp_path / "facts.json"
    runs = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(4)]

    assert [run.wait() for run in runs] == [0] * 4
    assert len(ModelFactsFile(path).list_all()) == 40
