"""`ollm -p --schema`: the answer is a document that fits, or the exit code says that it does not."""

import json
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.cli.running import Runner, running
from tests.servers.answers import Answer

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}
ADA = '{"name": "Ada", "age": 36}'


def write_schema(runner: Runner) -> None:
    (runner.workspace / "person.json").write_text(json.dumps(PERSON))


async def test_an_answer_that_fits_is_printed_alone(tmp_path: Path) -> None:
    script = [Answer(text="I look first.", calls=[("ls", {})]), f"```json\n{ADA}\n```"]
    async with running(tmp_path, script) as runner:
        write_schema(runner)
        done = await runner.run("-p", "who?", "--schema", "person.json")

    assert (done.code, done.out) == (0, f"{ADA}\n"), done.err
    first, second = runner.server.chats
    assert all("tools" in request for request in (first, second))
    assert '"minimum":0' in first["messages"][-1]["content"]
    assert "response_format" not in second


async def test_one_that_does_not_fit_is_asked_for_once_more_bound_to_the_schema(tmp_path: Path) -> None:
    async with running(tmp_path, ["Ada is 36.", ADA]) as runner:
        write_schema(runner)
        done = await runner.run("-p", "who?", "--schema", "person.json", "-o", "json", stdin="a letter")

    document = json.loads(done.out)
    assert (done.code, document["answer"], document["reason"]) == (0, {"name": "Ada", "age": 36}, "answered")
    asked = runner.server.chats[1]
    assert asked["response_format"]["json_schema"]["schema"] == PERSON
    assert "tools" not in asked
    assert "not a JSON document" in asked["messages"][-1]["content"]
    assert "a letter" not in asked["messages"][-1]["content"]


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_a_second_misfit_ends_with_its_own_code(tmp_path: Path, output: str) -> None:
    async with running(tmp_path, ["{}", '{"name": 5, "age": -1}']) as runner:
        write_schema(runner)
        done = await runner.run("-p", "who?", "--schema", "person.json", "-o", output)

    assert done.code == 7
    assert "'name' is a required property" in runner.server.chats[1]["messages"][-1]["content"]
    said = done.err if output == "text" else done.out.splitlines()[-1]
    assert "$.age: -1 is less than the minimum of 0; $.name: 5 is not of type 'string'" in said
    if output == "text":
        assert done.out == ""
    else:
        assert json.loads(said)["error"]["type"] == "schema"


async def test_a_server_that_refuses_the_schema_is_asked_without(tmp_path: Path) -> None:
    refusal = Answer(status=400, body={"error": "response_format is not supported"})
    async with running(tmp_path, ["no", refusal, ADA]) as runner:
        write_schema(runner)
        done = await runner.run("-p", "who?", "--schema", "person.json")

    assert (done.code, done.out) == (0, f"{ADA}\n"), done.err
    assert "response_format" not in runner.server.chats[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"type": "object",\n x}', "bad.json:2:2 is not JSON"),
        ('{"properties": {"a": {"type": "strong"}}}', "$.properties.a.type: 'strong' is not valid"),
        ('{"properties": {"a": {"$ref": "#/$defs/none"}}}', "$ref #/$defs/none leads nowhere"),
        ('{"$ref": "https://example.org/schema.json"}', "leads nowhere"),
        ("[]", "expected an object"),
    ],
)
def test_a_bad_schema_is_named_with_its_place(inside: Inside, text: str, said: str) -> None:
    (inside.workspace / "bad.json").write_text(text)

    assert said in inside.fail("-p", "hi", "--schema", "bad.json", code=2)
    assert "Cannot read the schema gone.json" in inside.fail("-p", "hi", "--schema", "gone.json", code=2)


@pytest.mark.parametrize("schema", ['{"$ref": "#"}', '{"not": ' * 3000 + "{}" + "}" * 3000])
async def test_a_schema_without_an_end_is_refused_before_the_model_is_asked(tmp_path: Path, schema: str) -> None:
    async with running(tmp_path, [ADA]) as runner:
        (runner.workspace / "person.json").write_text(schema)
        done = await runner.run("-p", "who?", "--schema", "person.json")

    assert (done.code, runner.server.chats) == (2, [])
    assert "nested too deeply" in done.err


async def test_an_answer_bound_to_the_schema_runs_no_tool_and_may_have_words_around_its_block(tmp_path: Path) -> None:
    again = Answer(
        text=f"Here it is:\n\n```json\n{ADA}\n```\nDone.", calls=[("write_file", {"path": "x", "content": "y"})]
    )
    async with running(tmp_path, ["Ada is 36.", again]) as runner:
        write_schema(runner)
        done = await runner.run("-p", "who?", "--schema", "person.json", "--yes")

    assert (done.code, done.out) == (0, f"{ADA}\n"), done.err
    assert not (runner.workspace / "x").exists()
