"""Changing and showing settings, and those of the environment."""

import os
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st

from ollm.config.change import remove_key, set_key, set_setting
from ollm.config.environment import (
    Home,
    find_home,
    read_log_level,
)
from ollm.config.load import load_settings
from ollm.config.settings import Settings
from ollm.config.show import render_yaml
from ollm.config.yaml_tree import SourcePosition, parse_yaml, to_plain_value
from ollm.domain.errors import UsageError

COMMENTED = """\
# my settings, all of them mine

sessions:   # how many
  # not too many
  maxSessions: 5     # five
  autoSave: yes-please

compression: {strategy: truncate, threshold: 0.5}  # in braces
snapshots:
# nothing here yet
environment:
  denyPatterns:
  - A_*
  - B_*

# the end
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("sessions.maxSessions", 50, "maxSessions: 5 ", "maxSessions: 50 "),
        ("sessions.trashDays", 3, "sessions:   # how many\n", "sessions:   # how many\n  trashDays: 3\n"),
        ("compression.threshold", 0.75, "threshold: 0.5}", "threshold: 0.75}"),
        ("compression.enabled", False, "{strategy", "{enabled: false, strategy"),
        ("snapshots.maxCount", 2, "snapshots:\n", "snapshots:\n  maxCount: 2\n"),
        ("environment.denyPatterns", ["C_*"], "denyPatterns:\n  - A_*\n  - B_*\n", 'denyPatterns: ["C_*"]\n'),
        ("compression.idle.x", 9, "{strategy", "{idle: {x: 9}, strategy"),
        ("loopDetection.maxTurns", 9, "# the end\n", "# the end\nloopDetection:\n  maxTurns: 9\n"),
        ("tools.webFetch.maxLength", 9, "# the end\n", "# the end\ntools:\n  webFetch:\n    maxLength: 9\n"),
    ],
)
def test_only_the_value_itself_changes(key: str, value: object, old: str, new: str) -> None:
    assert set_key(COMMENTED, key.split("."), value) == COMMENTED.replace(old, new)


words = some.text(some.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)

values = some.one_of(words, some.integers(-99, 10**6), some.booleans(), some.none(), some.lists(words, max_size=4))


@given(value=values, before=values, ending=some.sampled_from(["\n", "\r\n"]), extra=some.booleans())
def test_what_is_set_is_read_back_and_every_comment_stays(value, before, ending: str, extra: bool) -> None:
    text = set_key("# one\nprovider:\n  # two\n  type: x # three\n", ["provider", "model"], before).replace(
        "\n", ending
    )
    text += "# four" if extra else ""

    after = set_key(text, ["provider", "model"], value)

    entry = parse_yaml(after, SourcePosition(file="f"))
    assert entry is not None
    assert to_plain_value(entry) == {"provider": {"type": "x", "model": value}}
    assert [line for line in after.splitlines() if "#" in line and "model" not in line] == [
        line for line in text.splitlines() if "#" in line and "model" not in line
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("environment:\n  denyPatterns:\n    - A # mine\n    - B\n", "environment.denyPatterns"),
        ("a: &x {model: m}\nprovider: *x\n", "provider.model"),
        ("provider:\n  model: | # mine\n    m\n", "provider.model"),
        ("provider: 7\n", "provider.model"),
        ("words\n", "provider.model"),
        ("[1]\n", "provider.model"),
    ],
)
def test_what_would_touch_other_text_is_refused(text: str, key: str) -> None:
    with pytest.raises(UsageError, match="Edit the file yourself"):
        set_key(text, key.split("."), "z")


def test_a_new_file_is_the_users_alone(tmp_path: Path) -> None:
    home = Home(root=tmp_path / "new" / "home")

    file = set_setting(home, "loopDetection.maxTurns", "80")

    assert file.read_text(encoding="utf-8") == "loopDetection:\n  maxTurns: 80\n"
    assert (file.stat().st_mode & 0o777, home.root.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("provider.model", "3", "3"),
        ("provider.model", "off", "off"),
        ("provider.contextWindow", "8192", 8192),
        ("provider.contextWindow", "null", None),
        ("modes.autoSwitch", "off", "off"),
        ("sessions.autoSave", "false", False),
        ("environment.allowList", "[A, 'B C']", ["A", "B C"]),
        ("sandbox.readable", "/opt/tools", ["/opt/tools"]),
        ("mcpServers.files.command", "run it", "run it"),
    ],
)
def test_a_value_is_read_in_the_type_of_its_key(tmp_path: Path, key: str, text: str, expected: object) -> None:
    file = set_setting(Home(root=tmp_path), key, text)
    entry = parse_yaml(file.read_text(encoding="utf-8"), SourcePosition(file="f"))

    assert entry is not None
    found = to_plain_value(entry)
    for part in key.split("."):
        found = found[part]
    assert found == expected


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("loopDetection.maxTurn", "5", "did you mean loopDetection.maxTurns"),
        ("loopDetection.maxTurns", "lots", "expected a whole number"),
        ("loopDetection.maxTurns", "null", "expected a whole number"),
        ("loopDetection", "5", "expected a mapping"),
        ("loopDetection", "{}", "is a section"),
        ("provider.baseUrl", "gpu", "expected a URL"),
        ("environment.allowList", "7", "expected a list"),
        ("environment.allowList", "[A", "not YAML"),
        ("", "x", "unknown key"),
        ("sessions.", "x", "unknown key"),
    ],
)
def test_a_mistake_is_told_before_anything_is_written(tmp_path: Path, key: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        set_setting(Home(root=tmp_path), key, text)

    assert not (tmp_path / "config.yaml").exists()


@pytest.mark.parametrize("broken", ["sessions: [1\n", "\xff\n"])
def test_a_broken_file_is_left_as_it_is(tmp_path: Path, broken: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(broken.encode("latin-1"))

    with pytest.raises(UsageError, match="Nothing changed"):
        set_setting(Home(root=tmp_path), "provider.model", "m")

    assert file.read_bytes() == broken.encode("latin-1")


def test_a_key_written_under_services_is_changed_there(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("services:\n  session:\n    maxSessions: 1\n", encoding="utf-8")

    set_setting(Home(root=tmp_path), "sessions.maxSessions", "2")

    assert file.read_text(encoding="utf-8") == "services:\n  session:\n    maxSessions: 2\n"


def test_a_file_kept_elsewhere_and_linked_stays_linked(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("# mine\n", encoding="utf-8")
    real.chmod(0o644)
    home = Home(root=tmp_path / "home")
    home.root.mkdir()
    home.config.symlink_to(real)

    set_setting(home, "provider.model", "m")

    assert home.config.is_symlink()
    assert real.read_text(encoding="utf-8") == "# mine\nprovider:\n  model: m\n"
    assert real.stat().st_mode & 0o777 == 0o644


def test_changes_at_the_same_time_all_arrive(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    keys = ["provider.model", "sessions.maxSessions", "loopDetection.maxTurns", "snapshots.maxCount", "resume.messages"]
    threads = [threading.Thread(target=set_setting, args=(home, key, "7")) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = load_settings(home, dict(os.environ))

    assert set(keys) <= set(found.sources)
    assert found.problems == ()


names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def read(text: str) -> object:
    entry = parse_yaml(text, SourcePosition(file="f"))
    return {} if entry is None else to_plain_value(entry)


@given(
    before=st.sampled_from(
        [
            "",
            "# only a comment\n",
            "a: 1 # one\n",
            "servers: # s\n  # inner\n  other: {x: 1} # keep\nz: 1\n",
            "servers: {other: 1}\n",
            "servers:\n    other:\n        x: 1\n    # last\n",
        ]
    ),
    name=names.filter(lambda name: name != "other"),
    value=values,
)
def test_what_was_put_in_can_be_taken_out_and_all_else_stays(before: str, name: str, value: object) -> None:
    put = set_key(before, ["servers", name], value)
    taken = remove_key(put, ["servers", name])

    after, original = read(taken), read(before)
    assert isinstance(original, dict)
    assert after == {**original, "servers": original.get("servers")}
    comments = [line.partition("#")[2] for line in before.splitlines() if "#" in line]
    assert [comment for comment in comments if comment not in taken] == []


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("s: {a: 1, b: {c: 2}}\n", "s: {b: {c: 2}}\n"),
        ("s: {b: {c: 2}, a: 1 }\n", "s: {b: {c: 2} }\n"),
        ("s:\n  b: 1\n  a:\n    x: 1\n    y: 2\n", "s:\n  b: 1\n"),
        ("s:\r\n  a: 1\r\n  b: 2\r\n", "s:\r\n  b: 2\r\n"),
        ("s: # why\n  a: 1", "s: # why\n"),
        ("s: {a: 1} # why\n", "s: {} # why\n"),
    ],
)
def test_only_the_key_itself_goes(text: str, after: str) -> None:
    assert remove_key(text, ["s", "a"]) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("# head\na: 1\nb: 2\n", "# head\nb: 2\n"),
        ("a:\n  x: 1\nb: 2\n", "b: 2\n"),
        ("# head\na: 1\n", "# head\n"),
        ("{a: 1, b: 2}\n", "{b: 2}\n"),
        ("{a: 1}\n", "{}\n"),
    ],
)
def test_a_key_at_the_top_goes_too(text: str, after: str) -> None:
    assert remove_key(text, ["a"]) == after


@pytest.mark.parametrize("text", ["", "s: 1\n", "s: {b: 1}\n", "t: {a: 1}\n", "s: [a]\n"])
def test_a_key_that_is_not_there_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"s\.a is not set in the file"):
        remove_key(text, ["s", "a"])


def test_what_was_set_is_followed_by_its_place_and_the_text_reads_back() -> None:
    document = {"a": {"b": [1, "x y"], "c": None}, "d": {}}

    text = render_yaml(document, {"a.b": SourcePosition(file="f.yaml", line=3, column=1)})

    assert '  b: [1, "x y"]  # f.yaml:3:1\n' in text
    entry = parse_yaml(text, SourcePosition(file="t"))
    assert entry is not None
    assert to_plain_value(entry) == document


def test_every_setting_says_what_it_is_for() -> None:
    def walk(kind: msgspec.inspect.Type, path: str) -> list[str]:
        assert isinstance(kind, msgspec.inspect.StructType)
        missing = []
        for field in kind.fields:
            where = f"{path}.{field.encode_name}".lstrip(".")
            if isinstance(field.type, msgspec.inspect.StructType):
                missing += walk(field.type, where)
            elif not (
                isinstance(field.type, msgspec.inspect.Metadata)
                and (field.type.extra_json_schema or {}).get("description")
            ):
                missing.append(where)
        return missing

    assert walk(msgspec.inspect.type_info(Settings), "") == []


def test_the_home_is_moved_as_a_whole(tmp_path: Path) -> None:
    assert find_home({"OLLM_HOME": f" {tmp_path} "}).root == tmp_path
    assert find_home({"HOME": "/home/me"}).root == Path("/home/me/.ollm")
    assert find_home({"HOME": "/home/me", "OLLM_HOME": " "}).root == Path("/home/me/.ollm")
    assert find_home({"OLLM_HOME": "relative"}).root.is_absolute()


@pytest.mark.parametrize(
    ("asked", "level"),
    [("debug", "DEBUG"), (" warn ", "WARNING"), ("ERROR", "ERROR"), ("loud", "INFO"), ("", "INFO")],
)
def test_a_log_level_that_is_none_is_info(asked: str, level: str) -> None:
    assert (read_log_level({"OLLM_LOG_LEVEL": asked}) or "INFO") == level


HOME = Home(Path("/h"))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~/.ollm/sessions", "/h/sessions"),
        ("~/.ollm", "/h"),
        ("elsewhere", "/h/elsewhere"),
        ("/abs", "/abs"),
        ("~/.ollmx", str(Path.home() / ".ollmx")),
    ],
)
def test_a_path_from_the_settings_moves_with_the_home(text: str, path: str) -> None:
    assert HOME.resolve_path(text) == Path(path)
