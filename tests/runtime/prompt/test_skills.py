"""Finding skills, and the lines that tell of them."""

from pathlib import Path

from ollm.runtime.prompt.project_context import Skill, build_skills_entry, find_skills


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
