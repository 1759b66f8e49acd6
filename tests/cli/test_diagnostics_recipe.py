"""The hook in docs/extending.md that tells the model what a linter says, run as the page says."""

import os
import re
import sys
from pathlib import Path

from tests.cli.running import running
from tests.servers.answers import Answer

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


async def test_the_model_is_told_what_the_linter_says(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("### Diagnostics after an edit")[2].partition("### Hooks")[0]
    script = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    settings = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    write = Answer(calls=[("write_file", {"path": "a.py", "content": "import os\n"})])
    async with running(tmp_path, [write, "Done."]) as runner:
        hook = tmp_path / "hooks" / "diagnose.py"
        hook.parent.mkdir()
        hook.write_text(script)
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text(settings.replace("~/.ollm/hooks/diagnose.py", str(hook)))

        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = await runner.run("-p", "write it", "--yes", PATH=path)

        assert done.code == 0, done.err
        told = runner.server.chats[1]["messages"][-1]["content"]
        assert "ruff says:" in told
        assert "F401" in told
