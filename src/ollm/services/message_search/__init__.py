"""Search in one conversation, for people and models who do not remember the exact words (T9)."""

from ollm.services.message_search.search import MessageMatch, find_similar_words, search_messages

__all__ = ["MessageMatch", "find_similar_words", "search_messages"]
