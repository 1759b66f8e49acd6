"""One record per program: nothing about one stands in two places, and what is known of none is empty."""

from ollm.policy.shell.programs import FAMILIES, PROGRAMS, UNKNOWN_PROGRAM, get_program
from ollm.policy.shell.programs.record import (
    Program,
    launch_command,
    list_options,
    read_files,
    read_text,
    share_record,
    wrap_command,
    write_files,
)


def test_a_program_stands_in_one_family_only() -> None:
    names = [name for family in FAMILIES for name in family]

    assert len(names) == len(set(names)) == len(PROGRAMS)
    assert get_program("frob") is UNKNOWN_PROGRAM
    assert get_program("ls").reads is not None


def test_options_are_written_in_three_forms() -> None:
    options = list_options("ab", "c", "plain value= maybe?", "i")

    assert (options.flags, options.values, options.joined) == ("ab", "c", "i")
    assert (options.known, options.long_values, options.optional) == (
        ("plain", "help", "version"),
        ("value",),
        ("maybe",),
    )


def test_a_record_is_made_of_facts_about_the_program_and_about_its_parts() -> None:
    reader = read_files("a", exact=True, versioned=True)
    assert (reader.reads is not None and reader.reads.exact, reader.reads is not None and reader.reads.paths) == (
        True,
        True,
    )
    assert (reader.versioned, reader.options.flags) == (True, "a")
    text = read_text()
    assert text.reads is not None
    assert not text.reads.paths
    writer = write_files("last", "t", "to", moves=True, commands="-x")
    assert writer.writes is not None
    assert (writer.writes.shape, writer.writes.moves, writer.commands) == ("last", True, "-x")
    assert (writer.options.values, writer.options.long_values, writer.options.stops) == ("t", ("to",), False)
    wrapper = wrap_command("n", operands=1, harmless=True)
    assert wrapper.wraps is not None
    assert (wrapper.wraps.operands, wrapper.wraps.harmless, wrapper.options.stops) == (1, True, True)
    launcher = launch_command("run exec", own=1)
    assert launcher.launches is not None
    assert (launcher.launches.after, launcher.launches.own) == (("run", "exec"), 1)


def test_who_runs_others() -> None:
    running = [
        name for name in ("env", "docker", "git", "sort", "python3", "bash", "find") if PROGRAMS[name].runs_others
    ]
    assert len(running) == 7
    assert not any(PROGRAMS[name].runs_others for name in ("ls", "rm", "pytest", "export"))
    assert share_record("a b", UNKNOWN_PROGRAM) == {"a": Program(), "b": Program()}
