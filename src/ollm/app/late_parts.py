"""Parts of a conversation that are imported when a call first needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ollm.runtime.calls.confirmation import AnswerLog
    from ollm.tools.web_fetch import PageCache


def create_page_cache() -> PageCache:
    from ollm.tools.web_fetch import PageCache

    return PageCache()


def create_answer_log() -> AnswerLog:
    from ollm.runtime.calls.confirmation import AnswerLog

    return AnswerLog()
