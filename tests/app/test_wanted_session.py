"""Which session is gone on with."""

import pytest

from ollm.app.conversation import ConversationScope
from ollm.app.wanted_session import find_wanted_session
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import OllmError
from ollm.runtime.conversation_options import ConversationOptions
from tests.app.places import AppPlace


def scope(place: AppPlace, **more: object) -> ConversationScope:
    from contextlib import AsyncExitStack

    options = ConversationOptions(workspace=place.workspace, **more)  # type: ignore[arg-type]
    return ConversationScope(WorkspaceScope(place.process(), place.workspace), options, AsyncExitStack())


def test_a_new_one_is_begun_unless_one_is_asked_for(place: AppPlace) -> None:
    opened = scope(place)
    assert find_wanted_session(opened.storage, opened.workspace_sessions) is None
    assert opened.storage.notices == []


def test_where_there_is_none_yet_that_is_said(place: AppPlace) -> None:
    opened = scope(place, newest=True)
    assert find_wanted_session(opened.storage, opened.workspace_sessions) is None
    assert opened.storage.notices == ["No session in this workspace yet; starting a new one."]
    opened.scope.close()


def test_one_that_is_not_there_is_named(place: AppPlace) -> None:
    opened = scope(place, session="abcd")
    with pytest.raises(OllmError, match="abcd"):
        find_wanted_session(opened.storage, opened.workspace_sessions)
