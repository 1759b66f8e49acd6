"""A request in the forms a model understands: a pure function of what is said, the tools and the facts.

The fallback sends by it and the prompt counts by it, so what is added to a request is never more than was counted on.
"""

from __future__ import annotations

from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import ModelFacts
from ollm.domain.tools import ToolSchema
from ollm.providers.text_calls.rendering import ANSWER_TOOL, add_tool_list, add_worked_example, render_messages

Messages = tuple[PromptMessage, ...]
ToolSchemas = tuple[ToolSchema, ...]


def add_answer_tool(tools: ToolSchemas, facts: ModelFacts) -> ToolSchemas:
    """The tools, and to speak as one of them for a model that writes its calls."""
    if facts.call_form not in ("text", "constrained") or facts.result_form != "user":
        return tools
    return tools if any(tool.name == ANSWER_TOOL.name for tool in tools) else (ANSWER_TOOL, *tools)


def format_request(messages: Messages, tools: ToolSchemas, facts: ModelFacts) -> tuple[Messages, ToolSchemas]:
    """Messages and schemas as they are sent. The tools are in the system prompt where the server refuses schemas."""
    if tools and facts.call_form == "blocks":
        from ollm.providers.text_calls.block_rendering import render_block_messages

        return render_block_messages(messages, tools), ()
    if not tools or (facts.takes_tools and facts.result_form == "tool"):
        return messages, tools
    shown = add_answer_tool(tools, facts)
    told = add_worked_example(render_messages(messages, facts.written_form), shown, facts.written_form)
    return (told, shown) if facts.takes_tools else (add_tool_list(told, shown, facts.written_form), ())
