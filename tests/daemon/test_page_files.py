"""The pages as files."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ollm.daemon import web_routes
from tests.daemon.running import daemon
from tests.sizes import SOAK

ROOT = Path(__file__).parents[2]
WEB = Path(web_routes.__file__).with_name("web")


async def test_files_come_without_a_token_with_a_strict_policy_and_a_tag(tmp_path: Path) -> None:
    async with daemon(tmp_path, (), "--tcp") as found:
        url = f"http://127.0.0.1:{json.loads((found.home / 'run' / 'daemon.pid').read_text())['port']}"
        page = await found.ask("GET", "/", url=url)
        addresses = re.findall(r"(/web/files/[\w./-]+)", page.body.decode())
        names = [address.rpartition("/")[2] for address in addresses]
        for name, address in zip(names, addresses, strict=True):
            reply = await found.ask("GET", address, url=url)
            assert (reply.status, reply.headers["cache-control"]) == (200, web_routes.KEPT), name
            assert "default-src 'none'" in reply.headers["content-security-policy"]
            assert reply.headers["x-content-type-options"] == "nosniff"
            again = await found.ask("GET", address, url=url, headers={"if-none-match": reply.headers["etag"]})
            assert (again.status, again.body) == (304, b"")
        plain = await found.ask("GET", "/web/files/app.js", url=url)
        other = ("/web/files/0123456789abcdef/app.js", addresses[0].rpartition("/")[0] + "/", f"{addresses[0]}/app.js")
        for path in ("/web/files/../auth.py", "/web/files/..%2fauth.py", "/web/files/none.js", "/web/files/", *other):
            assert (await found.ask("GET", path, url=url)).status in (401, 404), path
        foreign = await found.ask("GET", "/web/files/app.js", url=url, headers={"origin": "http://127.0.0.1:1"})

    assert {"app.js", "all.css", "icon.svg"} <= set(names)
    known = web_routes.load_files()[1]
    assert all(known[name][0] in known["all.css"][0] for name in web_routes.STYLES)
    assert foreign.status == 403
    assert [one.headers["cache-control"] for one in (page, plain)] == [web_routes.CHECKED] * 2
    assert "unsafe" not in page.headers["content-security-policy"]


def find_modules(wanted: list[str], known: set[str]) -> set[str]:
    """Those that begin with these, but for the known ones."""
    for name in wanted:
        text = (WEB / name).read_text(encoding="utf-8")
        found = re.findall(r"^import\s(?:[^\"]*from\s)?\"\./([\w.-]+)\"", text, re.MULTILINE)
        wanted += [one for one in dict.fromkeys(found) if one not in wanted]
    return set(wanted) - known


def test_a_page_names_every_module_when_it_is_wanted() -> None:
    """So that they are fetched at once and not one after another has named it; and few before the first paint."""
    page = (WEB / "index.html").read_text(encoding="utf-8")
    at_once, soon, later = (re.findall(r"/web/files/([\w-]+\.js)", part) for part in page.split("<template"))
    first = find_modules(["first-view.js"], set())
    frame = find_modules(["app.js"], first)
    rest = {path.name for path in WEB.glob("*.js")} - first - frame - {"sw.js"}

    assert (sorted(at_once), sorted(soon), sorted(later)) == (sorted(first), sorted(frame), sorted(rest))
    assert len(first) <= 5


SOURCES = sorted(WEB.glob("*.js"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_a_module_is_ours_and_keeps_to_the_rules(source: Path) -> None:
    """No HTML but what the server cleaned, nothing evaluated, no address from elsewhere, every import a file here."""
    text = source.read_text(encoding="utf-8")
    imported = re.findall(r"(?:from|import|import\()\s*\"(\./[\w.-]+)\"", text)

    assert [name for name in imported if not (WEB / name).exists()] == []
    assert source.name == "dom.js" or not re.search(r"\.(inner|outer)HTML\s*=[^=]|insertAdjacentHTML", text)
    assert not re.search(r"\beval\(|new Function|document\.write|\.setAttribute\(\"style\"", text)
    assert [url for url in re.findall(r"https?://[\w.]+", text) if url != "http://www.w3.org"] == []
    assert text.startswith("// "), "a module says what it owns"
    assert len(text.splitlines()) <= 350


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    imports = {path.name: set(re.findall(r"from \"\./([\w-]+\.js)\"", path.read_text())) for path in SOURCES}
    while leaves := [name for name, named in imports.items() if not named & imports.keys()]:
        for name in leaves:
            del imports[name]

    assert imports == {}


def test_pages_and_styles_load_nothing_from_elsewhere() -> None:
    for path in [*WEB.glob("*.html"), *WEB.glob("*.css"), *WEB.glob("*.svg")]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|\bstyle=|<script>|\son\w+=", text), path.name


@pytest.mark.skipif(not SOAK, reason="builds a wheel: make soak")
def test_the_wheel_has_the_pages(tmp_path: Path) -> None:
    tool = Path(sys.executable).with_name("uv")
    if not tool.exists():
        pytest.skip("uv is not in this environment")
    made = subprocess.run(
        [tool, "build", "--wheel", "--offline", "-o", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no build tools without a network")
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()

    assert {
        "ollm/daemon/web/index.html",
        "ollm/daemon/web/app.js",
        "ollm/services/session_export/transcript.css",
    } <= set(names)
