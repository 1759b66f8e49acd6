"""`sessions check` and its repair."""

import pytest

from tests.cli.command import ollm
from tests.cli.inside import Inside
from tests.cli.sessions.samples import json_of
from tests.covers import covers
from tests.store.sessions.support import Home


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


@covers("S10.2", "S10.6", "H705", "D606", "H709")
def test_damage_is_named_with_the_way_out_and_mended_by_check(home):
    healthy, hurt = home.recorded("well"), home.recorded("one", "two")
    home.document(hurt).write_bytes(home.document(hurt).read_bytes()[:-12])
    done = ollm("sessions", "list", home=home.root)
    assert (done.returncode, healthy[:4] in done.stdout, hurt[:4] in done.stderr) == (0, True, True)
    viewed = ollm("sessions", "view", hurt, home=home.root)
    assert (viewed.returncode, "two" in viewed.stdout, "some data could not be read" in viewed.stderr) == (
        0,
        True,
        True,
    )
    checked = ollm("sessions", "check", home=home.root)
    assert (checked.returncode, hurt in checked.stdout) == (1, True)
    assert ollm("sessions", "check", "--repair", home=home.root).returncode == 0
    assert ollm("sessions", "check", home=home.root).returncode == 0
    assert json_of("sessions", "list", "--json", home=home)[0]["damaged"] is None


def test_whole_sessions_are_counted(inside: Inside) -> None:
    stored = Home(inside.home)
    assert inside.read("sessions", "check") == "0 sessions OK.\n"
    stored.recorded("a")
    assert inside.read("sessions", "check") == "1 session OK.\n"
    stored.recorded("b")
    assert inside.read("sessions", "check") == "2 sessions OK.\n"
    assert inside.read_json("sessions", "check") == []
