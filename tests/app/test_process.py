"""What one run of the program shares."""

from pathlib import Path

import msgspec
import pytest

from ollm.app.process import READ_TIMEOUT_FACTOR, HiddenPaths
from tests.app.places import AppPlace
from tests.servers.openai import ScriptedServer


def configure_server(place: AppPlace, server: ScriptedServer, **more: object) -> None:
    place.configure(provider={"type": "openai", "baseUrl": server.base_url, "model": "scripted", **more})


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


def test_rules_of_every_directory_on_the_way_count(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".ollmignore").write_text("*.key\nprivate/\n")
    (tmp_path / "a" / ".ollmignore").write_text("!open.key\nnotes\n")
    hidden = HiddenPaths(str(tmp_path)).is_hidden

    paths = (
        "x.key",
        "a/x.key",
        "a/open.key",
        "private/x",
        "a/b/notes",
        "notes",
        f"{tmp_path}/x.key",
        "../x.key",
        "a\0",
    )
    assert [path for path in paths if hidden(path)] == [
        "x.key",
        "a/x.key",
        "private/x",
        "a/b/notes",
        f"{tmp_path}/x.key",
    ]


def test_the_settings_of_a_workspace_count_once_it_is_trusted(place: AppPlace) -> None:
    place.configure(hooks={"before-turn": ["mine"]})
    place.configure_workspace(modes={"default": "plan"}, hooks={"before-turn": ["theirs"]})
    assert not place.process().trusted
    assert place.process().settings.modes.default == "code"
    place.trust()
    process = place.process()

    assert process.trusted
    assert process.settings.modes.default == "plan"
    assert process.own_settings.modes.default == "code"
    assert process.own_settings.hooks == {"before-turn": ("mine",)} or process.own_settings.hooks == {
        "before-turn": ["mine"]
    }
    assert not place.process(workspace=False).trusted
