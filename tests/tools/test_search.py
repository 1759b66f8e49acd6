"""T4: glob and ls, through dispatch, and where searches look."""

import os
from pathlib import Path

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.errors import ToolFailure
from ollm.services.file_discovery.service import FileDiscoveryService
from ollm.tools import grep
from ollm.tools.framework.base import ToolContext
from ollm.tools.grep import read_output
from ollm.tools.ls import format_size
from ollm.tools.search.scope import SearchScope, resolve_scope
from tests.cli.command import ollm
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.services.file_discovery.looking import plant, rules
from tests.tools.drive import Driver, content, error


@covers("T4.1")
async def test_all_matching_paths_come_sorted_and_from_the_workspace(drive: Driver, workspace: Path) -> None:
    plant(workspace, "b.py", "src/a.py", "src/deep/c.py", "d.txt")

    assert content(await drive("glob", pattern="**/*.py")) == "b.py\nsrc/a.py\nsrc/deep/c.py"
    assert content(await drive("glob", pattern="*.py")) == "b.py"
    assert content(await drive("glob", pattern="*.{py,txt}")) == "b.py\nd.txt"
    assert content(await drive("glob", pattern="deep/*", path="src")) == "src/deep/c.py"
    assert content(await drive("glob", pattern=f"{workspace}/src/*.py")) == "src/a.py"


async def test_a_name_that_is_only_further_down_is_found_and_that_is_said(drive: Driver, workspace: Path) -> None:
    plant(workspace, "src/app/main.py")

    said = content(await drive("glob", pattern="main.py"))

    assert said == "src/app/main.py\n[none directly in .; searched **/main.py]"


@covers("T4.2")
async def test_at_most_max_results_come_and_the_rest_is_counted(drive: Driver, workspace: Path) -> None:
    plant(workspace, *(f"f{number:04}.txt" for number in range(150)))

    some = content(await drive("glob", pattern="*.txt", maxResults=3))
    default = content(await drive("glob", pattern="*.txt"))

    assert some.splitlines() == [
        "f0000.txt",
        "f0001.txt",
        "f0002.txt",
        "[147 more; narrow the pattern or raise maxResults]",
    ]
    assert len(default.splitlines()) == 101


@covers("T4.3", "T4.4")
async def test_hidden_files_come_when_asked_for(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a.yml", ".hidden.yml", ".github/workflows/ci.yml")

    without = content(await drive("glob", pattern="**/*.yml"))
    with_them = content(await drive("glob", pattern="**/*.yml", includeHidden=True))

    assert without == "a.yml\n[2 hidden paths match too; set includeHidden]"
    assert with_them == ".github/workflows/ci.yml\n.hidden.yml\na.yml"


async def test_the_newest_come_first_when_asked_for(drive: Driver, workspace: Path) -> None:
    plant(workspace, "old.py", "new.py", "middle.py")
    for name, time in {"old.py": 1, "middle.py": 2, "new.py": 3}.items():
        os.utime(workspace / name, (time, time))

    assert content(await drive("glob", pattern="*.py", sort="newest")) == "new.py\nmiddle.py\nold.py"


@covers("T4.12", "D766", "D767", "D766", "D767")
async def test_ignored_files_are_left_out_unless_their_directory_is_named(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a.log", "out/b.txt", "c.txt", "node_modules/d.txt", "notes/e.txt")
    rules(workspace, ".gitignore", "*.log", "out/")
    rules(workspace, ".ollmignore", "notes")

    assert content(await drive("glob", pattern="**/*.txt")) == "c.txt"
    assert content(await drive("glob", pattern="**/*", path="out")) == (
        "out/b.txt\n[out is ignored (.gitignore:2 hides it: out/); searched because you named it]"
    )


async def test_nothing_found_is_an_answer(drive: Driver) -> None:
    assert content(await drive("glob", pattern="*.nothing")) == "No files match *.nothing."


async def test_names_cannot_forge_lines(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a\nb.txt", "esc\x1b[31m.txt")
    (workspace / os.fsdecode(b"latin-\xe9.txt")).touch()

    said = content(await drive("glob", pattern="*.txt"))
    read = [content(await drive("read_file", path=name)) for name in said.splitlines()]

    assert said.splitlines() == [r"a\x0ab.txt", r"esc\x1b[31m.txt", r"latin-\xe9.txt"]
    assert len(read) == 3, "each is read by the name that was shown"


@covers("T12.2")
async def test_outside_the_workspace_is_asked_about(drive: Driver, workspace: Path, tmp_path: Path) -> None:
    plant(tmp_path, "elsewhere/x.txt")
    (workspace / "link").symlink_to(tmp_path / "elsewhere")

    assert content(await drive("glob", pattern="*", path=str(tmp_path / "elsewhere"))) == str(
        tmp_path / "elsewhere/x.txt"
    )
    assert content(await drive("glob", pattern="**/*")) == f"link -> {tmp_path / 'elsewhere'}"
    assert content(await drive("glob", pattern="link/*")) == "No files match link/*."
    assert len(drive.person.asked) == 1
    drive.person.approves = False
    assert error(await drive("glob", pattern="*", path="link"))[0] == "Denied"


@covers("T4.9")
async def test_a_directory_is_listed_with_sizes_directories_first(drive: Driver, workspace: Path) -> None:
    plant(workspace, "b.txt", "src/a.py", "src/deep/c.py", ".hidden")
    (workspace / "empty").mkdir()
    (workspace / "big.bin").write_bytes(bytes(1_500_000))

    assert content(await drive("ls")) == "empty/  (empty)\nsrc/  (2 inside)\nb.txt  5 B\nbig.bin  1.4 MB"
    assert ".hidden  5 B" in content(await drive("ls", includeHidden=True))


@covers("T4.10", "T4.11")
async def test_a_tree_goes_as_deep_as_it_is_told(drive: Driver, workspace: Path) -> None:
    plant(workspace, "a/b/c/d/e.txt", "a/x.txt", "a/b/y.txt")

    assert content(await drive("ls", recursive=True, maxDepth=1)) == "a/\n  b/  (2 inside)\n  x.txt  5 B"
    assert content(await drive("ls", recursive=True)) == (
        "a/\n  b/\n    c/\n      d/  (1 inside)\n    y.txt  5 B\n  x.txt  5 B"
    )


@covers("T4.12")
async def test_ignored_names_are_left_out(drive: Driver, workspace: Path) -> None:
    plant(workspace, "kept.txt", "node_modules/x", "a.log", "secret/plan")
    rules(workspace, ".gitignore", "*.log")
    rules(workspace, ".ollmignore", "secret")

    assert content(await drive("ls", recursive=True)) == "kept.txt  5 B"


async def test_a_big_directory_is_folded(drive: Driver, workspace: Path) -> None:
    for number in range(1_500):
        (workspace / f"f{number:05}").touch()

    lines = content(await drive("ls")).splitlines()

    assert len(lines) == 201
    assert lines[-1] == "… 1,300 more"


async def test_a_file_is_listed_as_itself(drive: Driver, workspace: Path) -> None:
    plant(workspace, "src/a.py")

    assert content(await drive("ls", path="src/a.py")) == "src/a.py  5 B"


async def test_an_empty_directory_says_so(drive: Driver) -> None:
    assert content(await drive("ls")) == "(empty)"


def test_a_directory_that_may_not_be_read_is_marked() -> None:
    def body(home: Path) -> None:
        import asyncio

        workspace = home / "workspace"
        plant(workspace, "open/a", "shut/b")
        (workspace / "shut").chmod(0)

        async def look() -> str:
            return content(await Driver(workspace)("ls", recursive=True))

        assert asyncio.run(look()) == "open/\n  a  5 B\nshut/  (cannot be read)"

    as_ordinary_user(body)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (10_239, "10 KB"), (5 << 20, "5.0 MB"), (3 << 40, "3.0 TB")],
)
def test_sizes_are_short(size: int, words: str) -> None:
    assert format_size(size) == words


async def test_symbolic_links_are_listed_with_their_targets_and_not_followed(
    drive: Driver, workspace: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "elsewhere/secret.txt")
    plant(workspace, "src/a.py")
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    (workspace / "src" / "again").symlink_to("a.py")
    (workspace / "gone").symlink_to("nowhere")
    (workspace / "hidden").symlink_to("src")
    rules(workspace, ".gitignore", "hidden")

    shown = content(await drive("ls", recursive=True)).splitlines()

    assert shown == ["src/", "  a.py  5 B", "  again -> a.py", "gone -> nowhere", f"out -> {tmp_path / 'elsewhere'}"]


def plant_code(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("class Turn:\n    def run(self):\n        return 1\n")
    (root / "src" / "b.py").write_text("class Other:\n    def run(self):\n        return 2\n")
    (root / ".env").write_text("def secret(): pass\n")
    return root


def read(root: Path, home: Path, arguments: str) -> tuple[int, str]:
    done = ollm("tools", "run", "read_file", "--args", arguments, home=home, cwd=root)
    return done.returncode, done.stdout + done.stderr


def test_a_symbol_alone_is_found_in_the_workspace(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")

    assert read(root, tmp_path / "home", '{"symbol": "Turn.run"}') == (
        0,
        "[src/a.py, lines 2 to 3]\n    def run(self):\n        return 1\n",
    )


def test_a_symbol_in_several_files_is_not_guessed(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")

    code, said = read(root, tmp_path / "home", '{"path": "src", "symbol": "run"}')

    assert code == 1
    assert "run is defined in src/a.py (line 2), src/b.py (line 2). Say which with path." in said


def test_a_symbol_of_nobody_and_one_in_a_private_file(tmp_path: Path) -> None:
    root = plant_code(tmp_path / "project")

    for name in ("nobody", "secret"):
        code, said = read(root, tmp_path / "home", f'{{"symbol": "{name}"}}')
        assert code == 1
        assert f"No file in . defines {name}. Search for it with grep." in said


def test_without_a_symbol_a_path_is_still_needed(tmp_path: Path) -> None:
    code, said = read(plant_code(tmp_path / "project"), tmp_path / "home", "{}")

    assert code == 1
    assert "path" in said


async def search(root: Path, files: list[str], *options: str) -> list[str]:
    printed = b"".join([chunk async for chunk in read_output(root, options, files)])
    return sorted(printed.decode().splitlines())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"needle in {name}\n")
    (tmp_path / ".gitignore").write_text("*.txt\n")
    return tmp_path


async def test_without_ripgrep_it_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "find_ripgrep", lambda: str(tree / "missing"))

    with pytest.raises(ToolFailure) as caught:
        await search(tree, ["a.txt"], "x")
    assert (caught.value.kind, caught.value.message) == ("NotFound", "ripgrep (rg) is not installed; grep needs it.")


@pytest.fixture
def discovery(tmp_path: Path) -> FileDiscoveryService:
    return FileDiscoveryService(FileDiscoverySettings(), tmp_path / "home")


async def test_an_ignored_place_is_looked_into_because_it_was_named(
    context: ToolContext, workspace: Path, discovery: FileDiscoveryService
) -> None:
    (workspace / "node_modules").mkdir()

    found = await resolve_scope(context, discovery, "node_modules")

    [note] = found.notes
    assert note.startswith("node_modules is ignored (")
    assert note.endswith("); searched because you named it")


@pytest.mark.parametrize(
    ("root", "relative", "within", "shown"),
    [
        ("/w", "a/b", "/w", "a/b"),
        ("/w", "", "/w", "."),
        ("/w/sub", "x", "/w", "sub/x"),
        ("/other", "x", None, "/other/x"),
        ("/other", "", None, "/other"),
    ],
)
def test_paths_are_shown_from_the_workspace_or_absolute(
    root: str, relative: str, within: str | None, shown: str
) -> None:
    scope = SearchScope(root=Path(root), workspace=Path("/w"))

    assert (scope.within, scope.render_path(relative)) == (within, shown)


def test_a_file_behind_a_link_put_in_its_place_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "f").write_text("")
    (root / "out").symlink_to("/etc")
    scope = SearchScope(root=root, workspace=root)

    assert scope.still_contains("f")
    assert not scope.still_contains("out/passwd")
