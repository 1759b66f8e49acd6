"""Finding skills, and the lines that tell of them."""

from pathlib import Path

from ollm.runtime.prompt.skills import Skill, build_skills_entry, find_skills


def plant(directory: Path, name: str, text: str) -> None:
    (directory / name).mkdir(parents=True)
    (directory / name / "SKILL.md").write_text(text)


def test_the_workspace_comes_before_the_home_and_odd_folders_are_left_out(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "home", tmp_path / "project" / ".ollm" / "skills"
    plant(mine, "review", "---\ndescription: mine\n---\n")
    plant(mine, "other", "# What it is for\n")
    plant(theirs, "review", "---\nname: review\ndescription: theirs\x07\n---\n")
    plant(theirs, "Odd Name", "# no\n")
    plant(theirs, "wordy", f"---\ndescription: {'d' * 500}\n---\n")
    plant(theirs, "named", "---\nname: ../../etc\ndescription: d\n---\n")
    (theirs / "empty").mkdir()
    (theirs / "linked").symlink_to(mine / "other")

    found = find_skills([theirs, mine], tmp_path / "project")

    assert [(skill.name, skill.description) for skill in found] == [
        ("named", "d"),
        ("other", "What it is for"),
        ("review", "theirs"),
        ("wordy", "d" * 200),
    ]
    assert found[2].path == ".ollm/skills/review/SKILL.md"
    assert found[1].path == str(mine / "other" / "SKILL.md")


def test_a_small_window_gets_few_lines_and_a_tiny_one_none() -> None:
    skills = [Skill(name=f"skill-{number}", description="d" * 60, path=f"p{number}") for number in range(50)]

    large, small = build_skills_entry(skills, 32_768), build_skills_entry(skills, 4096)

    assert large is not None
    assert small is not None
    assert 0 < small.content.count("\n- ") < large.content.count("\n- ") <= 50
    assert len(small.content) <= 420
    assert build_skills_entry(skills, 1024) is None
    assert build_skills_entry([], 32_768) is None


def test_how_many_skills_are_found_and_how_much_of_a_file_is_read(tmp_path: Path) -> None:
    for number in range(66):
        plant(tmp_path, f"s{number:02}", "# x\n")
    (tmp_path / "s00" / "SKILL.md").write_text(f"---\r\ndescription: a  b\r\n---\r\n{'y' * 9000}")
    (tmp_path / "s01" / "SKILL.md").write_text("\n" * 8_180 + "# first\nlate")
    (tmp_path / "s02" / "SKILL.md").write_text("\n" * 8_192 + "# late")
    (tmp_path / "s03" / "SKILL.md").unlink()
    (tmp_path / "s03" / "SKILL.md").symlink_to(tmp_path / "s00" / "SKILL.md")
    plant(tmp_path, "a" * 64, "---\nname: short\n---\n\n\t## With a head #\n")
    plant(tmp_path, "a" * 65, "# no\n")

    found = find_skills([tmp_path / "missing", tmp_path], tmp_path)

    assert len(found) == 64
    assert [(skill.name, skill.description) for skill in found[:4]] == [
        *(("s00", "a b"), ("s01", "first"), ("s02", ""), ("s04", "x"))
    ]
    assert (found[-1].name, found[-1].description) == ("s64", "x")
    (tmp_path / "s64" / "SKILL.md").unlink()
    (tmp_path / "s65" / "SKILL.md").unlink()
    assert [skill.name for skill in find_skills([tmp_path], tmp_path)[-2:]] == ["s63", "short"]
    assert find_skills([tmp_path], tmp_path)[-1].description == "With a head"


def test_the_lines_in_full() -> None:
    head = "Skills: when one fits the request, read its file first and follow it."  # 70 characters of 360
    skills = [Skill(name=f"s{number}", description="d" * 100, path="p") for number in range(9)]
    line = "d" * 72

    entry = build_skills_entry(skills, 3_000)

    assert entry is not None
    assert entry.content == f"{head}\n- s0: {line} (p)\n- s1: {line} (p)\n- s2: {line} (p)\n(6 more in .ollm/skills)"
    assert (entry.key, entry.source) == ("skills", "system")
    assert build_skills_entry(skills, 2_999) is None
    assert build_skills_entry(skills[:1], 3_000) is not None
    assert build_skills_entry(skills[:1], 3_000).content == f"{head}\n- s0: {line} (p)"  # type: ignore[union-attr]
    long = [Skill(name="n" * 60, description="", path="p" * length) for length in (223, 224)]
    assert [build_skills_entry([skill], 3_000) is None for skill in long] == [False, True]
    for window, count in ((8_000, 5), (16_000, 11), (40_000, 11)):
        told = build_skills_entry([Skill(name="s", description="d" * 90, path="p")] * 30, window)
        assert told is not None
        assert told.content.count("\n- s") == count
