"""`ollm extensions`, `ollm hooks`, and the examples of the pages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.running import Runner, running
from tests.covers import covers
from tests.servers.answers import Answer

EXAMPLE = Path(__file__).parents[2] / "examples" / "word-count"


def enable(runner: Runner, *names: str, **more: Any) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"extensions": {"enabled": names}, **more}))


@covers("S5.6")
async def test_the_example_is_added_used_disabled_and_removed(tmp_path: Path) -> None:
    script = [Answer(calls=[("count_words", {"path": "a.txt"})]), "Three.", "None."]
    async with running(tmp_path, script) as runner:
        (runner.workspace / "a.txt").write_text("one two three")
        refused = await runner.run("extensions", "add", str(EXAMPLE))
        assert refused.code == 2
        assert "tools the model can call, under your policy: count_words" in refused.err
        assert "requests: files" in refused.err
        assert not (runner.home / "extensions").exists()

        added = await runner.run("extensions", "add", str(EXAMPLE), "--yes")
        assert added.code == 0, added.err
        listed = json.loads((await runner.run("extensions", "list", "--json")).out)
        assert [(one["name"], one["enabled"]) for one in listed] == [("word-count", True)]

        done = await runner.run("-p", "how many words?", "--yes")
        assert done.out == "Three.\n", done.err
        first = runner.server.chats[0]
        assert "count_words" in [tool["function"]["name"] for tool in first["tools"]]
        assert (
            "## From an extension: word-count.changed-files.newest\n\nChanged last:\n- a.txt"
            in (first["messages"][0]["content"])
        )
        assert runner.server.chats[1]["messages"][-1]["content"] == "a.txt has 3 words."

        assert (await runner.run("extensions", "disable", "word-count")).code == 0
        await runner.run("-p", "and now?")
        assert "count_words" not in json.dumps(runner.server.chats[2])
        assert (await runner.run("extensions", "enable", "word-count", "--yes")).code == 0
        assert (await runner.run("extensions", "remove", "word-count", "--yes")).code == 0
        assert not (runner.home / "extensions" / "word-count").exists()
        assert (await runner.run("extensions", "enable", "word-count", "--yes")).code == 2


def make_extension(inside: Inside, name: str = "mine") -> str:
    folder = inside.workspace / name
    folder.mkdir()
    (folder / "extension.yaml").write_text(
        f"name: {name}\nversion: '1'\ndescription: Does it.\nasks: [files]\nadds: {{context: {{words: 'code:words'}}}}\n"
    )
    (folder / "code.py").write_text("def words(context):\n    return 'x'\n")
    return name


def test_an_extension_is_added_disabled_enabled_and_removed(inside: Inside) -> None:
    assert inside.read("extensions") == "No extensions. Add one with `ollm extensions add DIRECTORY`.\n"
    assert inside.read_json("extensions", "list") == []
    name = make_extension(inside)
    said = inside.fail("extensions", "add", name, code=2)
    assert "mine 1: Does it." in said
    assert "Add mine and enable it for new conversations?" in said
    assert not (inside.home / "extensions").exists()
    done = inside.run("extensions", "add", name, "--yes")
    assert done.out == f"mine 1 installed in {inside.home / 'extensions' / 'mine'} and enabled.\n"
    (listed,) = inside.read_json("extensions", "list")
    assert listed == {
        "name": "mine",
        "version": "1",
        "description": "Does it.",
        "adds": [{"kind": "context", "name": "words"}],
        "asks": ["files"],
        "place": str(inside.home / "extensions" / "mine"),
        "enabled": True,
    }
    assert inside.read("extensions", "list").splitlines()[1].split() == ["mine", "1", "on", "words", "Does", "it."]
    assert "already exists" in inside.fail("extensions", "add", name, "--yes", code=2)
    assert inside.run("extensions", "add", name, "--yes", "--force").code == 0
    assert inside.read("extensions", "disable", name) == "Disabled mine.\n"
    assert "mine is not enabled." in inside.fail("extensions", "disable", name, code=2)
    assert inside.read("extensions", "list").splitlines()[1].split()[2] == "off"
    assert "Enable mine for new conversations?" in inside.fail("extensions", "enable", name, code=2)
    assert inside.read("extensions", "enable", name, "--yes") == "Enabled mine.\n"
    assert "Delete the extension mine?" in inside.fail("extensions", "remove", name, code=2)
    assert "Delete the extension" not in inside.fail("extensions", "remove", "nosuch", code=1)
    assert inside.read("extensions", "remove", name, "--yes") == f"Deleted {inside.home / 'extensions' / 'mine'}.\n"
    assert inside.read_json("extensions", "list") == []
    assert "No extension named mine" in inside.fail("extensions", "enable", name, "--yes", code=2)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(root: Path) -> Path:
    """An extension with all that one can bring, in a repository that would run programs if it were checked out."""
    folder = root / "repository"
    (folder / "commands").mkdir(parents=True)
    (folder / "commands" / "greet.md").write_text("Say hello to $1.")
    (folder / "guard.sh").write_text("echo kept out >&2; exit 2\n")
    (folder / ".gitattributes").write_text("* filter=evil\n")
    (folder / "extension.yaml").write_text(
        "name: helper\nversion: 1\nhooks: {before-tool: 'sh ${extension}/guard.sh'}\n"
        "mcpServers: {notes: {command: python3, args: ['${extension}/server.py']}}\n"
    )
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    (root / ".gitconfig").write_text(f'[filter "evil"]\nsmudge = touch {root}/ran; cat\nclean = cat\n')
    return folder


def test_an_extension_is_installed_from_git_updated_and_removed(inside: Inside) -> None:
    repository = make_repository(inside.home.parent)
    url, commit = f"file://{repository}", git(repository, "rev-parse", "HEAD")
    said = inside.fail("extensions", "install", f"{url}@main", code=2)
    for part in (
        commit[:12],
        "commands, texts sent to the model: greet",
        "before-tool: sh ${extension}",
        "server notes",
    ):
        assert part in said
    assert not (inside.home / "extensions").exists()
    inside.read("extensions", "install", f"{url}@main", "--yes")
    (listed,) = inside.read_json("extensions", "list")
    assert listed["source"] == {"url": url, "ref": "main", "commit": commit}
    assert inside.read("extensions", "update").startswith("helper is up to date")

    (repository / "extension.yaml").write_text("name: helper\nversion: 2\nhooks: {after-tool: new.sh}\n")
    git(repository, "commit", "-qam", "two")
    said = inside.fail("extensions", "update", "helper", "--diff", code=2)
    for part in ("helper 1 → 2", "changed extension.yaml +2 -3", "+version: 2", "after-tool: new.sh"):
        assert part in said
    assert inside.read_json("extensions", "list") == [listed]
    inside.read("extensions", "update", "--yes")
    assert inside.read("extensions", "list").splitlines()[1].split()[1] == "2"
    inside.read("extensions", "install", f"{url}@{commit}", "--yes", "--force")
    assert inside.read("extensions", "update").startswith("helper is up to date")
    (repository / "extension.yaml").rename(repository / "else.yaml")
    git(repository, "commit", "-qam", "three")
    assert "contains no extension" in inside.fail("extensions", "install", url, "--yes", code=2)
    assert "is not a folder" in inside.fail("extensions", "install", url, "--path", "no", "--yes", code=2)
    inside.read("extensions", "install", f"{url}@{commit}", "--yes", "--force")
    shutil.rmtree(repository)
    assert "Not updated: helper" in inside.fail("extensions", "update", code=1)
    inside.read("extensions", "remove", "helper", "--yes")
    assert inside.read_json("extensions", "list") == []
    assert not (inside.home.parent / "ran").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("file:///r@--upload-pack=x", "is not a branch, tag or commit"),
        ("file:///r@-x", "is not a branch, tag or commit"),
        ("file:///r@a:b", "is not a branch, tag or commit"),
        ("https://ada:secret@host/r", "contains a password"),
        ("ssh://-oProxyCommand=x/r", "Unsupported address"),
        ("git@-oProxyCommand=x:r", "Unsupported address"),
        ("ext::sh -c x", "Unsupported address"),
        ("git://host/r", "Unsupported address"),
        ("http://host/r", "Unsupported address"),
    ],
)
def test_an_address_that_git_must_not_see_is_refused(inside: Inside, source: str, said: str) -> None:
    assert said in inside.fail("extensions", "install", source, "--yes", code=2)


def test_links_and_submodules_are_not_installed(inside: Inside) -> None:
    repository = make_repository(inside.home.parent)
    (repository / "out").symlink_to("/etc/passwd")
    git(repository, "add", "out")
    git(repository, "commit", "-qm", "two")

    assert "out is a link" in inside.fail("extensions", "install", f"file://{repository}", "--yes", code=2)
    assert not (inside.home / "extensions").exists()


async def test_commands_and_hooks_of_an_extension_work(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {})]), "Hello."]) as runner:
        added = await runner.run("extensions", "add", str(make_repository(tmp_path)), "--yes")
        assert added.code == 0, added.err
        await runner.run("-p", "/greet Ada")

    assert runner.server.chats[0]["messages"][-1]["content"] == "Say hello to Ada."
    assert "kept out" in runner.server.chats[1]["messages"][-1]["content"]


def test_one_that_is_enabled_and_gone_is_listed_as_missing(inside: Inside) -> None:
    inside.configure("extensions: {enabled: [gone]}\n")

    assert inside.read("extensions", "list").splitlines()[1].split() == ["gone", "missing"]


def test_a_broken_one_is_told_beside_the_others(inside: Inside) -> None:
    inside.read("extensions", "add", make_extension(inside), "--yes")
    (inside.home / "extensions" / "broken").mkdir()
    (inside.home / "extensions" / "broken" / "extension.yaml").write_text("name: [")
    done = inside.run("extensions", "list", "--json")

    assert "broken" in done.err
    assert len(json.loads(done.out)) == 1


SCRIPTS = Path(__file__).parents[1] / "extensions" / "claude"


def entry(script: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    command = f"{sys.executable} {SCRIPTS / script}"
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 60, **more}]}


async def test_hooks_of_claude_code_are_imported(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("shell", {"command": "rm -rf x"})]), "Done."]) as runner:
        settings = runner.workspace / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry("command_guard.py", "Bash")]}, "model": "x"}))
        imported = await runner.run("hooks", "import", str(settings))
        listed = await runner.run("hooks", "list")
        done = await runner.run("-p", "clean", "--yes", "-o", "json")

    assert imported.code == 0, imported.err
    assert "PreToolUse" in imported.out
    assert "command_guard.py" in listed.out
    (call,) = json.loads(done.out)["toolCalls"]
    assert call["status"] == "denied"


READ = "import json, sys; given = json.load(sys.stdin)['tool_input'];"

LOG = f"""{sys.executable} -c "{READ} print(given['command'])" >> ~/.claude/commands.txt"""

PROTECT = f"""{sys.executable} -c "{READ} sys.exit(2 if '.lock' in given['file_path'] else 0)" """

FORMAT = f"""{sys.executable} -c "{READ} open(given['file_path'], 'a').write('# formatted')" """


async def test_hooks_of_the_home_log_format_and_protect_as_in_claude_code(tmp_path: Path) -> None:
    """What Claude Code's own guide shows: one writes into the home, one formats what was written, one protects files."""
    written = {"PreToolUse": [("Bash", LOG), ("Edit|Write", PROTECT)], "PostToolUse": [("Edit|Write", FORMAT)]}
    hooks = {
        event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]} for matcher, command in listed]
        for event, listed in written.items()
    }
    calls = [
        ("shell", {"command": "echo hi"}),
        ("write_file", {"path": "a.py", "content": "x = 1\n"}),
        ("write_file", {"path": "b.lock", "content": "{}"}),
    ]
    home = tmp_path / "me"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    async with running(tmp_path, [Answer(calls=calls), "Done."]) as runner:
        imported = await runner.run("hooks", "import", HOME=str(home))
        done = await runner.run("-p", "go", "--yes", "-o", "json", HOME=str(home))

    assert "run outside the sandbox" in imported.out
    assert [call["status"] for call in json.loads(done.out)["toolCalls"]] == ["ok", "ok", "denied"]
    assert (home / ".claude" / "commands.txt").read_text() == "echo hi\n"
    assert (runner.workspace / "a.py").read_text() == "x = 1\n# formatted"
    assert not (runner.workspace / "b.lock").exists()


async def test_a_hook_that_the_sandbox_stops_says_how_to_let_it_out(tmp_path: Path) -> None:
    """As root no sandbox refuses a plain file: the shell's own words are what is looked for."""
    hook = "echo 'cannot create x: Permission denied' >&2; exit 2"
    async with running(tmp_path, [Answer(calls=[("shell", {"command": "echo hi"})]), "Done."]) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(json.dumps({"hooks": {"PreToolUse": hook}}))
        done = await runner.run("-p", "go", "--yes")

    assert "sandbox: off" in done.err


def test_hooks_are_listed(inside: Inside) -> None:
    assert inside.read("hooks", "list") == "No hooks are configured.\n"
    inside.configure(
        "hooks:\n  before-tool: [{command: check.sh, tools: [shell, ls], required: true}]\n"
        "  PreToolUse: [{matcher: Bash, hooks: [{type: command, command: guard.sh}]}]\n  nonsense: [x]\n"
    )
    done = inside.run("hooks", "list")
    assert [line.split() for line in done.out.splitlines()] == [
        ["EVENT", "TOOLS", "COMMAND"],
        ["before-tool", "shell,ls", "required", "check.sh"],
        ["before-tool", "Bash", "guard.sh"],
    ]
    assert "hooks.nonsense: unknown event" in done.err
    assert [hook["command"] for hook in inside.read_json("hooks", "list")] == ["check.sh", "guard.sh"]


def test_hooks_are_imported_once(inside: Inside) -> None:
    said = inside.fail("hooks", "import", code=2)
    assert "No hooks were found." in said
    (inside.workspace / ".claude").mkdir()
    file = inside.workspace / ".claude" / "settings.json"
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh"}]}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [entry], "Stop": entry}}))
    assert inside.read("hooks", "import").splitlines() == [
        f"PreToolUse: 1 imported into {inside.home / 'config.yaml'}.",
        f"Stop: 1 imported into {inside.home / 'config.yaml'}.",
    ]
    inside.read("hooks", "import")
    assert len(inside.read_json("hooks", "list")) == 2


def test_what_cannot_run_here_is_told_once_and_not_written_down(inside: Inside) -> None:
    runs, asks = {"type": "command", "command": "guard.sh"}, {"type": "prompt", "prompt": "is it safe?"}
    (inside.workspace / "claude.json").write_text(
        json.dumps(
            {"hooks": {"SubagentStop": [{"hooks": [runs]}], "Stop": [{"hooks": [runs, asks]}, {"hooks": [asks]}]}}
        )
    )
    done = inside.run("hooks", "import", "claude.json")
    assert done.out.splitlines() == [f"Stop: 1 imported into {inside.home / 'config.yaml'}."]
    assert "hooks.SubagentStop: unknown event" in done.err
    assert "only hooks of type command are run; not imported" in done.err
    listed = inside.run("hooks", "list", "--json")
    assert ([hook["command"] for hook in json.loads(listed.out)], listed.err) == (["guard.sh"], "")


def test_a_file_that_cannot_be_read_is_said(inside: Inside) -> None:
    (inside.workspace / "bad.json").write_text("{")

    assert "bad.json cannot be read:" in inside.fail("hooks", "import", "bad.json", code=2)
    assert "gone.json cannot be read:" in inside.fail("hooks", "import", "gone.json", code=2)


DOCS = Path(__file__).parents[2] / "docs"

FILES = {".gitignore": "dist\n*.log\n", "a.log": "", "src/calc.py": "def add(a, b):\n    return a + b\n"}

BARS_AND_NUMBERS = re.compile(r"[█·]+|[\d,]*\d")


def list_examples(page: str) -> list[tuple[str, list[str]]]:
    blocks = re.findall(r"^```\n(\$ ollm .*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    examples = [part.splitlines() for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(lines[0], lines[1:]) for lines in examples]


def make_pattern(line: str) -> str:
    """A line as the page shows it; `…` stands for anything."""
    return ".*".join(map(re.escape, line.split("…")))


@pytest.mark.parametrize("page", ["context.md", "files.md", "policy.md", "security.md"])
def test_an_example_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    rules = re.findall(
        r"^```yaml\n(policy:.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    (home / ".ollm").mkdir(parents=True)
    (home / ".ollm" / "config.yaml").write_text("".join(rules))
    environment = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=workspace, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3), done.stderr  # 3: the doctor finds no model server
        return done.stdout.replace(str(home), "/home/ada")

    examples = list_examples(page)

    assert examples
    for command, expected in examples:
        printed, shown = run(command), "\n".join(expected)
        if command == "ollm doctor" and "sandbox   full" not in printed:
            continue  # another kernel has another level
        if "█" in shown:
            printed, shown = (BARS_AND_NUMBERS.sub("", text) for text in (printed, shown))
        missing = [
            line for line in shown.split("\n") if not re.search(f"^{make_pattern(line)}$", printed, re.MULTILINE)
        ]
        assert missing == [], printed


@pytest.mark.parametrize("page", ["context.md", "policy.md", "providers.md", "security.md"])
def test_every_setting_a_page_shows_is_valid(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

    assert blocks
    for block in blocks:
        (tmp_path / "config.yaml").write_text(block)
        done = ollm("config", "check", home=tmp_path, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "Configuration OK.\n"), done.stdout + done.stderr
