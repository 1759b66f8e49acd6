"""The routes of the pages: who is let in, and what they give."""

from pathlib import Path
from typing import Any

from tests.daemon.running import Daemon, daemon

JSON = {"content-type": "application/json"}


async def log_in(found: Daemon) -> tuple[str, dict[str, str], str]:
    """The address, the headers of a page that is logged in, and what set its cookie."""
    link = (await found.ask("POST", "/web/ticket")).json["url"]
    url, _, ticket = link.partition("/#ticket=")
    reply = await found.ask("POST", "/web/login", {"ticket": ticket}, url=url, headers={**JSON, "origin": url})
    assert reply.status == 200, reply.body
    cookie = reply.headers["set-cookie"]
    return url, {"cookie": cookie.partition(";")[0], "x-ollm-page": reply.json["token"]}, cookie


async def test_a_link_is_made_over_the_socket_alone_and_works_once(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        assert not (found.home / "run" / "token").exists(), "no port before it is asked for"
        link = (await found.ask("POST", "/web/ticket")).json
        url, _, ticket = link["url"].partition("/#ticket=")
        own = {**JSON, "origin": url}
        body = {"ticket": ticket}
        token = (found.home / "run" / "token").read_text()
        bearer = {"authorization": f"Bearer {token}"}

        for path in ("/web/ticket", "/web/ticket/", "//web/ticket", "/web//ticket", "/web%2fticket", "/web/%74icket"):
            assert (await found.ask("POST", path, url=url, headers=bearer)).status in (403, 404), path
        for headers in ({**own, "origin": "http://evil.example"}, {**own, "origin": "null"}, {**own, "host": "evil"}):
            assert (await found.ask("POST", "/web/login", body, url=url, headers=headers)).status == 403
        assert (await found.ask("POST", "/web/login", body, url=url, headers=JSON)).status == 401
        assert (await found.ask("POST", "/web/login", {"ticket": "x"}, url=url, headers=own)).status == 401
        good = await found.ask("POST", "/web/login", body, url=url, headers=own)
        again = await found.ask("POST", "/web/login", body, url=url, headers=own)

    assert link["expiresInSeconds"] == 60
    assert good.status == 200
    flags = good.headers["set-cookie"].lower()
    assert flags.startswith(f"ollm-{url.rpartition(':')[2]}=")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in flags.split(";")}
    assert again.status == 401
    assert again.json["action"] == "Run `ollm web` for a new one."


async def test_the_api_wants_cookie_and_page_token_and_our_own_origin(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        url, page, _ = await log_in(found)
        _, other, _ = await log_in(found)

        async def ask(headers: dict[str, str], **more: Any) -> int:
            return (await found.ask("GET", "/sessions", url=url, headers=headers, **more)).status

        assert await ask(page) == 200
        assert await ask({**page, "origin": url}) == 200
        assert await ask({**page, "sec-fetch-site": "same-origin"}) == 200
        assert await ask({"cookie": page["cookie"]}) == 401
        assert await ask({"x-ollm-page": page["x-ollm-page"]}) == 401
        assert await ask({**page, "x-ollm-page": other["x-ollm-page"]}) == 401
        assert await ask({**page, "sec-fetch-site": "same-site"}) == 403
        assert await ask({**page, "sec-fetch-site": "cross-site"}) == 403
        assert await ask({**page, "origin": "http://127.0.0.1:1"}) == 403
        assert await ask({"cookie": page["cookie"], "origin": url}) == 403
        assert await ask({**page, "host": "evil.example"}) == 403
        assert (await found.ask("POST", "/web/logout", url=url, headers={**page, "origin": url})).status == 200
        assert await ask(page) == 401
        assert await ask(other) == 200
