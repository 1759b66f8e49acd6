"""Which box a command runs in, and that nothing runs where one is required and missing."""

from pathlib import Path

import msgspec
import pytest

from ollm.domain.errors import ToolFailure
from ollm.system.sandbox.sandbox import Sandbox
from ollm.tools.framework.base import ToolContext
from ollm.tools.shell import Shell


async def test_where_a_sandbox_is_required_and_missing_nothing_runs(context: ToolContext, tmp_path: Path) -> None:
    missing = Sandbox(tmp_path, tmp_path / "home", mode="require")
    boxed = msgspec.structs.replace(context, sandbox=missing)

    with pytest.raises(ToolFailure) as caught:
        await Shell(command="touch made").run(boxed, None)  # type: ignore[arg-type]
    assert caught.value.kind == "Denied"
    assert caught.value.message.startswith("Not run: the settings require a sandbox (sandbox.mode), and there is ")
    assert not (context.workspace / "made").exists()


@pytest.mark.parametrize(("unasked", "kind"), [(True, "reading"), (False, "working")])
def test_what_nobody_was_asked_about_runs_in_the_reading_box(
    context: ToolContext, tmp_path: Path, unasked: bool, kind: str
) -> None:
    sandbox = Sandbox(context.workspace, tmp_path / "home")
    boxed = msgspec.structs.replace(context, sandbox=sandbox, unasked=unasked)

    box = Shell(command="true")._make_box(boxed)

    assert (box is None) is (sandbox.level == "none")
    assert box is None or box.kind == kind
    assert Shell(command="true", outside=True)._make_box(boxed) is None
    assert Shell(command="true")._make_box(context) is None
