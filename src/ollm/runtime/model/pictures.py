"""Pictures that a model server refused: left out of every later request, so that one cannot end a conversation."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ollm.domain.errors import ModelError, RequestRefusedError
from ollm.domain.messages import PromptMessage
from ollm.domain.patterns import compile_late

PICTURE_WORDS = compile_late(r"image|multi-?modal|mmproj|vision|picture", re.IGNORECASE)


class RefusedPictures:
    """Only what was refused is left out: a server may take another picture, or be started so that it does."""

    def __init__(self) -> None:
        self._refused: set[int] = set()
        self._told = False

    def learn_refusal(self, error: ModelError, messages: tuple[PromptMessage, ...]) -> bool:
        """Whether the same request is worth sending without its pictures: it has some, and may be refused for them."""
        found = {hash(image.data) for message in messages for image in message.images} - self._refused
        refused = isinstance(error, RequestRefusedError) or PICTURE_WORDS.search(error.message)
        if not found or not refused:
            return False
        self._refused |= found
        return True

    def leave_out(self, messages: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
        """The messages with a word in place of each picture that was refused."""
        if not self._refused or not any(message.images for message in messages):
            return messages
        return tuple(self._leave_out_of(message) for message in messages)

    def _leave_out_of(self, message: PromptMessage) -> PromptMessage:
        kept = tuple(image for image in message.images if hash(image.data) not in self._refused)
        if not (missing := len(message.images) - len(kept)):
            return message
        word = f"[{missing} {'picture' if missing == 1 else 'pictures'} left out: the model server refused it]"
        return replace(message, images=kept, content=f"{message.content}\n{word}".strip())

    def take_news(self) -> str:
        """What a person should know of it, once in a conversation."""
        if not self._refused or self._told:
            return ""
        self._told = True
        return "the server refused a picture, so the model is only told that there was one."
