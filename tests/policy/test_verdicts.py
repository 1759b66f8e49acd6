"""The verdicts on the shell lines of verdicts.txt, under the rules of each section."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.system.sandbox.box import LEVELS, Level
from tests.cli.command import ollm
from tests.covers import covers
from tests.policy.conftest import Place, judge, name_verdict, rule, shell
from tests.policy.verdicts import load_sections

PROGRAMS = (
    "ls cat head tail grep rg find wc sort git echo printf cd pwd npm node python make tee cp mv touch env xargs bash sh sudo "
    "timeout nice nohup test [ true tar curl mkdir ln install rsync sed awk tr cut uniq dd chmod rm"
)
RULES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "common programs allowed": ("ask", [rule("allow", "program", PROGRAMS.split())]),
    "some commands allowed": (
        "ask",
        [
            rule("allow", "startsWith", ["git diff", "git log", "npm run test"]),
            rule("allow", "equals", "npm test"),
            rule("allow", "matches", r"^pytest( -q)?$"),
            rule("allow", "matches", r"cargo (build|test)"),
            rule("allow", "program", "ls"),
        ],
    ),
    "restrictions": (
        "allow",
        [
            rule("deny", "program", "rm", flags=["recursive", "force"]),
            rule("deny", "startsWith", "git push --force"),
            rule("deny", "program", "curl"),
            rule("deny", "startsWith", "npm publish"),
            rule("deny", "matches", "^terraform (apply|destroy)"),
            rule("deny", "contains", "--no-verify"),
            rule("deny", "equals", "make deploy"),
            rule("deny", "under", "secrets"),
            rule("allow", "program", ["rm", "git", "ls", "make", "cat", "npm"]),
        ],
    ),
    "rm and forced pushes denied": (
        "allow",
        [rule("deny", "program", "rm"), rule("deny", "program", "git push", flags=["force"])],
    ),
    "rm -rf, curl and shutdown denied": (
        "allow",
        [
            rule("deny", "program", "rm", flags=["recursive", "force"]),
            rule("deny", "program", ["curl", "shutdown"]),
            rule("deny", "startsWith", "git push --force"),
        ],
    ),
}
ACTIONS = ("allow ", "deny ")
GRANTED = ["pytest", "git commit", "make", "npm run", "cargo build", "go test", "frob"]
LONG = [
    f"docker run {'-e A=1 ' * 300}image rm -rf x",
    f"bwrap {'--setenv A 1 ' * 200}rm -rf x",
    f"parallel {{}} ::: {'ls ' * 100}'rm -rf x'",
    f"sudo $X {'a ' * 60}rm -rf x",
    f"{'nohup ' * 500}rm -rf x",
    f"{'ls; ' * 3000}rm -rf x",
    "rm -rf x" + " y" * 6000,
    "(" * 60 + "rm -rf x" + ")" * 60,
]


def list_wrong(section: str, verdicts: dict[str, str]) -> list[str]:
    rows = load_sections()[section]
    return [f"{verdicts[row.line]}, not {row.verdict}: {row.line}" for row in rows if verdicts[row.line] != row.verdict]


@covers("T7.1", "T7.2", "T7.6")
@pytest.mark.parametrize("section", RULES)
def test_the_command_gives_the_verdicts_of_a_file_of_rules(place: Place, section: str) -> None:
    default, rules = RULES[section]
    file = place.workspace.parent / f"{section}.yaml"
    file.write_text(json.dumps({"policy": {"defaultAction": default, "rules": rules}}))
    lines = [row.line for row in load_sections()[section]]
    asked = "".join(f"{json.dumps({'id': line, 'params': {'command': line}})}\n" for line in lines)

    done = ollm(
        *("policy", "check", "shell", "--batch", "--rules", str(file)),
        home=place.home / ".ollm",
        cwd=place.workspace,
        stdin=asked,
        HOME=str(place.home),
    )

    assert done.returncode == 0, done.stderr
    answers = [json.loads(text) for text in done.stdout.splitlines()]
    assert list_wrong(section, {answer["id"]: answer["decision"] for answer in answers}) == []


@covers("T7.1", "T7.3")
def test_the_built_in_rules_let_run_what_reads_and_ask_about_the_rest(place: Place) -> None:
    section = "built-in rules"
    verdicts = {row.line: name_verdict(judge(place, row.line)) for row in load_sections()[section]}
    assert list_wrong(section, verdicts) == []


def test_places_that_the_sandbox_holds_are_asked_about_and_no_others(place: Place) -> None:
    section = "in a whole sandbox"
    verdicts = {row.line: name_verdict(judge(place, row.line, "full")) for row in load_sections()[section]}
    assert list_wrong(section, verdicts) == []


@pytest.mark.parametrize("section", [name for name in load_sections() if name.startswith(ACTIONS)])
def test_one_rule_covers_its_lines_and_no_others(place: Place, section: str) -> None:
    action, operator, value = section.split(" ", 2)
    value, _, flags = value.partition(" with ")
    one = rule(action, operator, value, **({"flags": flags.split()} if flags else {}))
    engine = place.engine([one], "allow" if action == "deny" else "ask")

    verdicts = {row.line: shell(engine, row.line).decision for row in load_sections()[section]}
    assert list_wrong(section, verdicts) == []


def test_a_grant_covers_no_place_outside_and_no_option_that_steers(place: Place) -> None:
    rows = load_sections()["granted"]
    verdicts = {row.line: judge(place, row.line, "none", *GRANTED).decision for row in rows}
    assert list_wrong("granted", verdicts) == []


def test_risky_lines_ask_even_if_every_program_in_them_is_allowed(place: Place) -> None:
    reading = (
        "ls cat head tail grep rg find wc sort uniq echo printf cd pwd test [ true tr cut jq diff xxd fd tree date"
    )
    engine = place.engine([rule("allow", "program", reading.split())])
    risky = [row.line for row in load_sections()["built-in rules"] if row.verdict == "lock"]

    assert [line for line in risky if shell(engine, line).decision == "allow"] == []


@pytest.mark.parametrize("command", LONG, ids=lambda command: f"{command[:10]}-{len(command)}")
def test_no_length_hides_a_denied_command(place: Place, command: str) -> None:
    default, rules = RULES["rm -rf, curl and shutdown denied"]
    assert shell(place.engine(rules, default), command).decision == "deny"


def test_a_line_of_more_than_ten_thousand_characters_asks(place: Place) -> None:
    assert judge(place, "echo " + "a" * 9_995).decision == "allow"
    assert judge(place, "echo " + "a" * 9_996).decision == "ask"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("hostile").resolve())
    workspace, home, out = place.workspace, place.home, place.workspace.parent / "out"
    for directory in (out, workspace / "sub/.git", workspace / "bare/objects", workspace / "bare/refs"):
        directory.mkdir(parents=True)
    names = "pl payload list list0 mod.jq quoted format tests-v .env.local bare/HEAD bare/config"
    for name in names.split():
        (workspace / name).write_text("x\n")
    (home / ".ssh/id_rsa").write_text("the key\n")
    (workspace / "sub-out").symlink_to(out / "p")
    (workspace / "ln-key").symlink_to(home / ".ssh/id_rsa")
    (workspace / "ln-dir").symlink_to(home / ".ssh")
    (workspace / "dir-out").mkdir()
    (workspace / "dir-out/a").symlink_to(home / ".ssh/id_rsa")
    return place


@pytest.mark.parametrize("level", LEVELS)
def test_no_hostile_line_runs_unasked(world: Place, level: Level) -> None:
    places = {
        "KEYDIR": world.home / ".ssh",
        "KEY2": world.home / ".profile",
        "KEY": world.home / ".ssh/id_rsa",
        "OUT": world.workspace.parent / "out",
    }
    allowed = []
    for row in load_sections()["hostile"]:
        command = row.line
        for mark, path in places.items():
            command = command.replace(mark, str(path))
        if judge(world, command, level).decision == "allow":
            allowed.append(row.line)
    assert allowed == []


@pytest.mark.parametrize("level", ["full", "landlock"])
def test_ordinary_reading_lines_run_unasked(level: Level, tmp_path: Path) -> None:
    tidy = Place(tmp_path.resolve())
    for name in (".env", "out", "src/link-out", "src/dir-out"):
        (tidy.workspace / name).unlink()

    asked = [row.line for row in load_sections()["ordinary"] if judge(tidy, row.line, level).decision != "allow"]
    assert len(asked) <= 1, asked


@pytest.mark.parametrize("line", ["ls --newest", "cat -Q a", "sed --frob p a", "md5sum -c a", "strings @a"])
def test_what_may_lead_elsewhere_asks_if_no_mount_holds_it(place: Place, line: str) -> None:
    decisions = {level: judge(place, line, level).decision for level in LEVELS}
    assert decisions == {"full": "allow", "bubblewrap": "allow", "landlock": "ask", "none": "ask"}


def test_a_tree_with_a_secret_in_it_asks_if_the_kernel_does_not_hide_it(place: Place) -> None:
    assert judge(place, "grep -r x .", "full").decision == "allow"
    assert judge(place, "grep -r x .", "landlock").decision == "ask"
    assert judge(place, "grep -r x src", "landlock").decision == "allow"
    assert judge(place, "grep -r --include=*.py x .", "landlock").decision == "allow"
