"""The archive as the settings have it: where it is, as whom, and which sessions go there."""

import pytest

from ollm.app.team_archive import TeamArchiveScope, find_url
from ollm.domain.errors import UsageError
from tests.servers.archive_machine import MakeMachine


def test_the_url_may_stand_in_a_variable(machine: MakeMachine, archive_url: str) -> None:
    laptop = machine("laptop", url=None, urlEnv="TEAM_ARCHIVE")
    with pytest.raises(UsageError, match="TEAM_ARCHIVE"):
        find_url(laptop.process)

    laptop.environment["TEAM_ARCHIVE"] = archive_url
    session = laptop.record("By the variable")
    laptop.run("push")

    assert [row["sessionId"] for row in laptop.json("list")] == [session]
    assert archive_url not in laptop.ollm("config", "show")


@pytest.mark.parametrize(
    ("glob", "workspace", "wanted"),
    [
        ("/srv/team/*", "/srv/team/shop", True),
        ("/srv/team", "/srv/team/shop/inner", True),
        ("/srv/team", "/srv/teammate", False),
        ("/srv/*/shop", "/srv/team/shop", True),
        ("~/work", "/somewhere/else", False),
    ],
)
def test_globs_choose_workspaces(machine: MakeMachine, glob: str, workspace: str, wanted: bool) -> None:
    archive = TeamArchiveScope(machine("laptop", workspaces=[glob]).process)

    assert archive.is_wanted(workspace) is wanted
    assert not archive.is_wanted(None)


def test_a_workspaces_own_file_cannot_set_an_archive(machine: MakeMachine) -> None:
    laptop = machine("laptop", url=None)
    project = laptop.home / "project"
    (project / ".ollm").mkdir(parents=True)
    (project / ".ollm" / "config.yaml").write_text("archive: {url: 'postgresql://evil/db', push: live}\n")
    laptop.ollm("trust", str(project))

    laptop.ollm("config", "check", "--workspace", str(project), code=2)

    assert "can only be set in your own config file" in laptop.said + laptop.warned


@pytest.mark.parametrize("mistake", [{"workspace": ["/srv/*"]}, {"workspaces": "/srv/*"}, {"redact": "maybe"}])
def test_a_mistake_in_the_section_turns_the_archive_off(machine: MakeMachine, mistake: dict[str, object]) -> None:
    laptop = machine("laptop", **mistake)
    laptop.record("Stay here")

    laptop.run("push", code=2)

    assert "nothing is sent" in laptop.warned
    assert str(next(iter(mistake))) in laptop.warned


def test_a_password_is_shown_in_neither_form_of_the_url(machine: MakeMachine) -> None:
    for url in ("host=db dbname=team password=hunter2 user=me", "postgresql://me:hunter2@db/team"):
        assert "hunter2" not in machine("laptop", url=url).ollm("config", "show")
