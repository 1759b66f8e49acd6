"""A home with one recorded session of a workspace, and the command run on it in this process."""

import asyncio
from pathlib import Path

import pytest

from ollm.app.process import ProcessScope
from ollm.cli.entry import main
from ollm.domain.messages import Message, TextPart


class RecordedPlace:
    """A home with one session of a workspace in it."""

    def __init__(self, root: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.captured = captured
        self.home = root / "home"
        self.workspace = root / "project"
        self.workspace.mkdir()
        self.session = asyncio.run(self._talk())

    async def _talk(self) -> str:
        recording = ProcessScope({"OLLM_HOME": str(self.home)}).create_recording_service(lambda event: None)
        session = await recording.create_session("llama3", "ollama", workspace=str(self.workspace.resolve()))
        await recording.update_metadata(session, {"contextWindow": 8192})
        for text in ("Hello", "Build it", "Test it"):
            await recording.record_message(session, Message(role="user", parts=(TextPart(text),), timestamp=""))
            await recording.record_message(
                session, Message(role="assistant", parts=(TextPart("Yes. " * 9),), timestamp="")
            )
        await recording.close_session(session)
        return session

    def run(self, *arguments: str, code: int = 0) -> str:
        """Standard output, or standard error when the command is to fail."""
        self.captured.readouterr()
        assert main(list(arguments)) == code
        out, err = self.captured.readouterr()
        return out if code == 0 else err
