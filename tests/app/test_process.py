"""What one run of the program shares."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from ollm.app.process import READ_TIMEOUT_FACTOR
from ollm.domain.errors import NoServerError, UsageError
from ollm.domain.messages import Message, TextPart
from ollm.store.model_facts import make_facts_key
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


async def record(place: AppPlace, text: str) -> str:
    recording = place.process().create_recording_service(lambda _: None)
    session = await recording.create_session("m", "ollama", workspace=str(place.workspace))
    await recording.record_message(session, Message(role="user", parts=(TextPart(text),), timestamp=""))
    await recording.close_session(session)
    return session


def test_sessions_are_in_the_home_unless_the_settings_say_where(place: AppPlace) -> None:
    assert place.process().session_directories == (place.home / "sessions", place.home / "session-data")
    place.configure(sessions={"dataDir": "~/.ollm/elsewhere"})
    assert place.process().session_directories[0] == place.home / "elsewhere"


def test_a_session_is_recorded_listed_and_erased_with_every_trace(place: AppPlace) -> None:
    session = asyncio.run(record(place, "hello"))
    process = place.process()
    assert [line["sessionId"] for line in process.session_index.list_sessions()] == [session]
    history = process.home.input_history
    history.write_text(f'{{"text": "hello", "session": "{session}"}}\n{{"text": "kept", "session": "other"}}\n')
    process.library.delete(session)

    assert process.session_files.places.find_home(session) is None
    assert "hello" not in history.read_text()
    assert "kept" in history.read_text()
    process.close()


def test_closing_opens_nothing(place: AppPlace) -> None:
    process = place.process()
    process.close()

    assert not place.home.exists()


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.md", "# "), ("a.MARKDOWN", "# "), ("a.html", "<!"), ("a.htm", "<!"), ("a.json", "{"), ("a.txt", "{")],
)
def test_a_session_is_exported_in_the_form_its_name_asks_for(place: AppPlace, name: str, begins: str) -> None:
    session = asyncio.run(record(place, "hello"))
    target = place.root / name
    place.process().export_session(session, target)

    assert target.read_text().startswith(begins)
    with pytest.raises(UsageError, match="already exists") as found:
        place.process().export_session(session, target)
    assert found.value.action == "Choose another name."


def test_extensions_are_none_unless_some_are_enabled(place: AppPlace) -> None:
    assert place.process().extensions is None
    place.configure(extensions={"enabled": ["gone"]})
    found = place.process().extensions
    assert found is not None
    assert "gone" in found.problems[0]


def test_files_of_the_run_are_in_the_home(place: AppPlace) -> None:
    process = place.process()

    assert process.tool_cache == place.home / "cache" / "tools.json"
    process.notes.set("k", "v")
    assert process.notes.get("k") == "v"
    process.close()


def configure_server(place: AppPlace, server: ScriptedServer, **more: object) -> None:
    place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted", **more})


async def test_the_model_is_chosen_with_a_window_and_why(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=16_384) as server:
        configure_server(place, server)
        model = await place.process().choose_model()
        await model.provider.close()

    assert (model.name, model.window, model.said_window) == ("scripted", 16_384, 16_384)
    assert "; window: " in model.why


async def test_another_name_takes_the_place_of_the_configured_model(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", models=("scripted", "other")) as server:
        configure_server(place, server)
        process = place.process()
        model = await process.choose_model("other")
        await model.provider.close()

    assert model.name == "other"
    assert process.settings.provider.model == "scripted"


@pytest.mark.parametrize(
    ("said", "served", "window"), [(16_384, 4096, 4096), (8192, 4096, 16_384), (16_384, 20_000, 16_384)]
)
async def test_a_window_that_was_learnt_to_be_smaller_is_used(
    place: AppPlace, said: int, served: int, window: int
) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=16_384) as server:
        configure_server(place, server)
        process = place.process()
        first = await process.choose_model()
        await first.provider.close()
        process.save_model_facts(first.facts.key, {"served_window": served, "said_window": said})
        model = await place.process().choose_model()
        await model.provider.close()

    assert (model.window, model.said_window) == (window, 16_384)
    assert ("learnt:" in model.why) is (window == 4096)


async def test_a_window_set_above_the_served_one_is_cut_and_compared_anew_on_demand(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=8192) as server:
        configure_server(place, server, contextWindow=16_384)
        windows = []
        for served, anew in ((8192, False), (16_384, False), (16_384, True), (16_384, False)):
            server.window = served
            model = await place.process().choose_model(anew=anew)
            await model.provider.close()
            windows.append(model.window)
            place.process().save_model_facts(model.facts.key, {"served_window": model.facts.served_window})

    assert windows == [8192, 8192, 16_384, 16_384]


async def test_the_form_of_calls_is_as_set_as_learnt_or_as_expected(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", models=("scripted", "qwen2.5-coder:0.5b")) as server:
        configure_server(place, server, callForm="text")
        set_form = (await place.process().choose_model()).facts
        configure_server(place, server, callForm="native")
        native = (await place.process().choose_model()).facts
        configure_server(place, server)
        process = place.process()
        expected = (await process.choose_model("qwen2.5-coder:0.5b")).facts
        process.save_model_facts(expected.key, {"call_form": "constrained"})
        learnt = (await place.process().choose_model("qwen2.5-coder:0.5b")).facts

    assert (set_form.call_form, set_form.result_form) == ("text", "user")
    assert (native.call_form, native.result_form) == ("native", "tool")
    assert expected.call_form == "blocks"
    assert learnt.call_form == "constrained"


async def test_a_model_that_reads_slowly_gets_the_time_for_a_full_window(place: AppPlace) -> None:
    async with ScriptedServer([], kind="llama.cpp", window=16_384) as server:
        configure_server(place, server)
        process = place.process()
        model = await process.choose_model()
        given: list[float] = []
        model.provider.allow = given.append  # type: ignore[method-assign]
        facts = msgspec.structs.replace(model.facts, prefill_per_second=10.0)
        process.extend_timeout(model.provider, 1000, facts)
        process.extend_timeout(model.provider, 1000, msgspec.structs.replace(facts, prefill_per_second=None))
        assert given == [READ_TIMEOUT_FACTOR * 100] == [200.0]
        configure_server(place, server, timeouts={"firstToken": 7})
        place.process().extend_timeout(model.provider, 1000, facts)
        assert len(given) == 1
        await model.provider.close()


async def test_without_a_server_that_is_said(place: AppPlace) -> None:
    place.configure(provider={"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "model": "m"})
    with pytest.raises(NoServerError):
        await place.process().choose_model()


def test_facts_are_kept_for_the_next_run(place: AppPlace) -> None:
    key = make_facts_key("openai", "http://x", "m")
    place.process().save_model_facts(key, {"window": 4096})

    assert place.process().model_facts.get(key).window == 4096


def test_models_are_kept_in_the_home(place: AppPlace) -> None:
    assert place.process().model_store.find_installed("nothing") is None
    assert not Path(place.home / "models").exists()
