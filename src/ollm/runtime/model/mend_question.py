"""A question of its own about code that has a bug, without what was said before. A pure function of the messages.

In a long talk a small model copies code as it stands; asked for it alone, it finds what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data

HEATS = (0.0, 0.8, 0.8, 0.8, 1.0)  # of one attempt after the other, and all later ones
_ASKED = re.compile(
    r"(?:^|\n)(?P<where>[^\n]+?)(?: was)?:\n```\n(?P<code>.*)\n```\n\n"
    r"(?P<said>[^\n]+) Now find the bug in (?P=where)\.$",
    re.DOTALL,
)
LANGUAGES = {"py": "python"}
QUESTION = "```{}\n{}\n```\n\n{} What has to be changed? Write the code without the bug."


class MendQuestion(Data, frozen=True):
    text: str
    begun: str  # what the answer begins with
    heat: float


def find_mend_question(messages: Sequence[PromptMessage]) -> MendQuestion | None:
    """The question that the last message ends with."""
    found = _read_question(messages[-1].content) if messages else None
    if found is None:
        return None
    asked = sum(_read_question(said.content) is not None for said in messages)
    path = found["where"].rpartition(" in ")[2]
    ending = path.rpartition(".")[2]
    language = LANGUAGES.get(ending, ending)
    return MendQuestion(
        text=QUESTION.format(language, found["code"], found["said"]),
        begun=f"{path}\n```{language}\n",
        heat=HEATS[min(asked, len(HEATS)) - 1],
    )


def is_mending(messages: Sequence[PromptMessage]) -> bool:
    """Whether such a question was asked before: what it changed is run as it was."""
    return any(_read_question(said.content) is not None for said in messages)


def _read_question(content: str) -> re.Match[str] | None:
    return _ASKED.search(content) if " Now find the bug in " in content[-300:] else None
