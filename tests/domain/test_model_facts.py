"""What is learnt about a model: only how it calls decides the form of a request."""

from ollm.domain.model_facts import ModelFacts


def test_the_forms_are_those_of_the_model_and_nothing_else_of_it() -> None:
    learnt = ModelFacts(
        key="openai|http://x|m",
        call_form="text",
        written_form="tag",
        result_form="user",
        takes_tools=False,
        window=4096,
        token_factor=1.3,
    )

    assert learnt.forms == ModelFacts(
        key="", call_form="text", written_form="tag", result_form="user", takes_tools=False
    )
    assert ModelFacts(key="another", window=1).forms == ModelFacts(key="", window=None)
