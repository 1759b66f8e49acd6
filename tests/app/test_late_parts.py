"""Parts that are imported when a call first needs them."""

from ollm.app.late_parts import create_answer_log, create_page_cache


def test_each_conversation_gets_its_own() -> None:
    assert create_answer_log() is not create_answer_log()
    assert create_page_cache() is not create_page_cache()
