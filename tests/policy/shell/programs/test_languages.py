"""Commands in little programs of other languages."""

import pytest

from ollm.policy.shell.programs.languages import find_called_commands

CODE = [
    ('os.system("rm x")', ["rm x"]), ("subprocess.run(['rm', 'x'])", ["rm x"]), ("exec('rm', 'x')", ["rm x"]),
    ("`rm x`", ["rm x"]), ("qx(rm x)", ["rm x"]), ("%x{rm x}", ["rm x"]), ("print('rm x')", []), ("run('rm x')", ["rm x"]),
    ("run_it('rm x')", []), ("popen('rm x'); system('ls')", ["rm x", "ls"]), ('shell_exec("rm x")', ["rm x"]),
    ("spawnSync('rm', ['x'])", ["rm x"]), ("system 'rm x', 'y'", ["rm x"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "commands"), CODE)
def test_the_commands_in_calls_that_start_programs(code: str, commands: list[str]) -> None:
    assert list(find_called_commands(code)) == commands
