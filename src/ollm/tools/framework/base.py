"""The Tool class (T1, T10): the class is the tool, its fields are the parameters, an instance is one invocation."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Meta

from ollm.config.settings import ToolSettings
from ollm.domain.context import ModeName
from ollm.domain.lazy import Lazy
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.text import suggest_names
from ollm.domain.tools import (
    ConfirmationDetails,
    FileChange,
    Location,
    Risk,
    ToolCategory,
    ToolResult,
    ToolSchema,
    Verdict,
)

if TYPE_CHECKING:
    from ollm.services.diagnostics.service import DiagnosticsService
    from ollm.system.paths import Boundary
    from ollm.system.sandbox.sandbox import Sandbox

Needs = TypeVar("Needs")
Keep = Literal["head", "ends"]
Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
WIDE_WINDOW_TOKENS = 32_000  # Smaller windows have no room for some tools.
PATH_ALIASES = {"file_path": "path", "filePath": "path", "file": "path", "filename": "path"}


async def _discard_change(_path: Path, _before: bytes, _after: bytes) -> None:
    """Ignore a change."""


async def _cannot_see_pictures() -> bool:
    """Return False, for a model that reads text only."""
    return False


class EditorFiles(Protocol):
    """The buffers of an editor. Paths are resolved and approved by the boundary."""

    @property
    def writes(self) -> bool:
        """True if the editor accepts changes; otherwise its files are read-only."""
        ...

    def withholds(self, path: Path) -> bool:
        """Return True if the editor provided this file before but does not answer now, so its text is unknown."""
        ...

    async def read(self, path: Path) -> str | None:
        """Read the editor's text of a file, or None if it has none."""
        ...

    async def write(self, path: Path, text: str) -> bool:
        """Replace the text of a file. Returns False if the editor did not."""
        ...


CheckEdit = Callable[[Path, bool], Awaitable[str]]


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of a call. Files are accessed only through `boundary`; `emit` streams output on arrival (T9.4).

    `sees` returns whether the model can see images; it may have to query a server. A command runs in a box of
    `sandbox`: the reading one if it runs `unasked` because it only reads. `approved` paths are open to this call, and
    `outside` lets it run without a box. `side_by_side`: other calls of the same tool run in parallel.
    `buffers` are the files of this call that `editor` has open: their text if it is unsaved, else None.
    `changed_in_editor` is called after a change in the editor. `find_diagnostics` returns the language servers if one
    is installed for this file; `take_late_errors` what they found since the last result. `check_edit` runs the
    configured checks for a changed file, unless an editor has it open, and returns their failures.
    """

    boundary: Boundary
    lazy_environment: Lazy[Mapping[str, str]] = Lazy(dict)
    emit: Callable[[str], None] = lambda _text: None
    settings: ToolSettings = ToolSettings()
    sees: Callable[[], Awaitable[bool]] = _cannot_see_pictures
    lazy_sandbox: Lazy[Sandbox | None] = Lazy(lambda: None)
    unasked: bool = False
    approved: tuple[str, ...] = ()
    outside: bool = False
    call_id: str = ""
    side_by_side: bool = False
    editor: EditorFiles | None = None
    buffers: Mapping[Path, bytes | None] = {}
    changed_in_editor: Callable[[Path, bytes, bytes], Awaitable[None]] = _discard_change
    find_diagnostics: Callable[[Path], DiagnosticsService | None] = lambda _path: None
    take_late_errors: Callable[[], str] = lambda: ""
    check_edit: CheckEdit | None = None

    def open_file(self, given: str) -> BinaryIO:
        """Open a file for reading: the editor's version if it is open there, else the one on disk. Close it."""
        file = self.boundary.open_file(given)
        unsaved = self.buffers.get(Path(file.name)) if self.buffers else None
        if unsaved is None:
            return file
        file.close()
        return open_bytes(unsaved, file.name)

    @property
    def workspace(self) -> Path:
        return self.boundary.workspace

    @property
    def environment(self) -> Mapping[str, str]:
        return self.lazy_environment.get()

    @property
    def sandbox(self) -> Sandbox | None:
        return self.lazy_sandbox.get()


def open_bytes(content: bytes, name: str) -> BinaryIO:
    """Write bytes to a temporary file, with a name, a size and a descriptor like any other."""
    from tempfile import TemporaryFile

    file = TemporaryFile()  # noqa: SIM115 - whoever asked closes it
    file.raw.name = name  # type: ignore[attr-defined]
    file.write(content)
    file.seek(0)
    return file


def build_confirmation(
    tool: str, description: str, locations: Sequence[Location], verdict: Verdict
) -> ConfirmationDetails | None:
    """Build the question to the person about a call, or None if the policy has decided."""
    if verdict.decision != "ask":
        return None
    return ConfirmationDetails(
        call_id="",
        tool=tool,
        description=description,
        risk=verdict.risk,
        reason=verdict.reason,
        locations=tuple(location.target for location in locations),
        parts=verdict.parts,
        grant=None if verdict.locked else verdict.grant,
        prefix=None if verdict.locked else verdict.prefix,
        locked=verdict.locked,
        rule=verdict.rule,
    )


class SmallForm(Data, frozen=True):
    """The short form of a tool. Required parameters are always shown; `parameters` are the essential optional ones,
    `useful_parameters` are added in larger windows. With `clear_name` the description can be omitted.
    """

    description: str
    parameters: tuple[str, ...] = ()
    useful_parameters: tuple[str, ...] = ()
    schema: JsonObject | None = None  # Replaces the full schema; the tool accepts this form too.
    clear_name: bool = True


class ToolMeta(msgspec.StructMeta, ABCMeta):
    """A metaclass for structs whose subclasses must define `summary` and `run`."""


class Tool(
    msgspec.Struct,
    Generic[Needs],
    metaclass=ToolMeta,
    frozen=True,
    rename="camel",
    kw_only=True,
    forbid_unknown_fields=True,
):
    """Base of all tools. The docstring of a subclass is the description the model reads.

    All facts about a tool are on its class: policy, modes and the selection of tools follow from it. `category`
    determines which tools run without confirmation and which modes show them. `priority` is the rank among the tools
    of each mode, the most needed first; small windows omit the last ones. Tools that need only the context are
    `Tool[None]`.
    """

    name: ClassVar[str]
    category: ClassVar[ToolCategory | None] = None  # Tools of extensions have no category.
    risk: ClassVar[Risk] = Risk.LOW
    reads_only: ClassVar[bool | None] = None  # By default the category decides.
    side_by_side: ClassVar[bool] = False  # Calls in a row run in parallel, though they may write.
    priority: ClassVar[Mapping[ModeName, int]] = {}
    keep: ClassVar[Keep] = "head"  # This part survives if the output is too long.
    aliases: ClassVar[Mapping[str, str]] = {}  # Other names that models use for a parameter.
    exclusive: ClassVar[tuple[str, ...]] = ()  # Only one of these parameters may be given.
    strict: ClassVar[bool] = False  # Arguments must fit the schema exactly: "true" is not a boolean.
    small: ClassVar[SmallForm | None] = None
    min_window: ClassVar[int] = 0  # In a smaller window the tool is hidden but can still be called.

    @classmethod
    def reshape(cls, arguments: JsonObject) -> JsonObject:
        """Convert arguments of another form, as a last attempt before mistakes are reported."""
        return arguments

    @abstractmethod
    def summary(self) -> str:
        """Describe this call in one line for the person (T10.2)."""

    def locations(self) -> list[Location]:
        """List the resources the call uses (T10.3), as the model named them: by default its `path` or `paths`."""
        path = getattr(self, "path", None)
        return [Location(target=path) for path in ([path] if path else getattr(self, "paths", ()))]

    def list_parameters(self) -> JsonObject:
        """List all parameters with a value, including defaults, for policy and hooks, by their (camelCase) names."""
        names = zip(self.__struct_encode_fields__, self.__struct_fields__, strict=True)
        values = ((outside, getattr(self, name)) for outside, name in names)
        return {name: msgspec.to_builtins(value) for name, value in values if value is not None and value is not UNSET}

    def confirmation(self, verdict: Verdict) -> ConfirmationDetails | None:
        """Build the question to the person, or None if the policy has decided (T10.4)."""
        return build_confirmation(self.name, self.summary(), self.locations(), verdict)

    async def list_changes(self, context: ToolContext, needs: Needs) -> tuple[FileChange, ...]:
        """List the changes this call would make, for the confirmation. Raises ToolFailure if the call would fail
        anyway, so that the person is not asked in vain."""
        return ()

    @abstractmethod
    async def run(self, context: ToolContext, needs: Needs) -> ToolResult:
        """Run the call. Raises ToolFailure. May be cancelled at any await and then leaves no partial changes."""


class Invocation(msgspec.Struct, frozen=True):
    """A validated call, ready to run: an instance of a tool, with the dependencies its class was registered with."""

    tool: Tool[Any]
    needs: Any

    async def list_changes(self, context: ToolContext) -> tuple[FileChange, ...]:
        return await self.tool.list_changes(context, self.needs)

    async def run(self, context: ToolContext) -> ToolResult:
        return await self.tool.run(context, self.needs)


class ToolDescription(Data, frozen=True):
    """A tool as described to models, policy and dispatch before it is imported."""

    name: str
    description: str
    parameters: JsonObject
    category: ToolCategory | None = None
    risk: Risk = Risk.MEDIUM
    reads_only: bool = False
    side_by_side: bool = False
    priority: Mapping[ModeName, int] = {}
    keep: Keep = "head"
    small: SmallForm | None = None
    min_window: int = 0
    identity: str = ""

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(name=self.name, description=self.description, parameters=self.parameters)


class ToolSpec(ToolDescription, frozen=True, kw_only=True):
    """A tool in the registry: one of ours, an extension's or an MCP server's.

    `parse` raises ToolFailure("ValidationError") with one line per mistake.
    """

    parse: Callable[[Any], Invocation]


def describe_class(tool: type[Tool[Any]]) -> ToolDescription:
    from ollm.tools.framework.arguments import build_parameters, describe_tool

    facts: dict[str, Any] = {name: getattr(tool, name, "") for name in ToolDescription.__struct_fields__}
    facts |= {"description": describe_tool(tool), "parameters": build_parameters(tool)}
    if tool.reads_only is None:
        facts["reads_only"] = tool.category in ("read", "web")
    return ToolDescription(**facts)


def add_parser(
    description: ToolDescription, load: Callable[[], type[Tool[Any]]], get_needs: Callable[[], Any] = lambda: None
) -> ToolSpec:
    """Add the parser of a class that is loaded on the first call. Its calls get what `get_needs` returns."""
    facts = msgspec.structs.asdict(description)
    return ToolSpec(**facts, parse=lambda given: _parse_call(load(), given, get_needs()))


def _parse_call(tool: type[Tool[Any]], arguments: Any, needs: Any) -> Invocation:
    from ollm.tools.framework.arguments import parse_arguments

    return Invocation(parse_arguments(tool, arguments), needs)


def make_spec(tool: type[Tool[Needs]], needs: Needs) -> ToolSpec:
    return add_parser(describe_class(tool), lambda: tool, lambda: needs)


class ToolRegistry:
    """A registry of `ToolSpec`s. A tool class is registered with the dependencies of its `run`."""

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}

    def register(self, tool: ToolSpec | type[Tool[Any]], needs: Any = None) -> None:
        """Add a tool, replacing any tool of the same name (T1.2)."""
        spec = tool if isinstance(tool, ToolSpec) else make_spec(tool, needs)
        self._specs[spec.name] = spec

    def unregister(self, name: str) -> bool:
        """Remove a tool. Returns False if no tool has that name."""
        return self._specs.pop(name, None) is not None

    def get(self, name: str) -> ToolSpec | None:
        return self._specs.get(name)

    def list(self) -> list[ToolSpec]:
        return [self._specs[name] for name in sorted(self._specs)]

    def get_function_schemas(self, names: tuple[str, ...] | None = None) -> tuple[ToolSchema, ...]:
        """Return the tool schemas for models, sorted by name; `names` restricts them to a mode's set."""
        return tuple(spec.schema for spec in self.list() if names is None or spec.name in names)

    def find_nearest(self, name: str) -> tuple[str, ...]:
        """Find up to three tools with similar names. A tool of an MCP server is compared with that server's tools."""
        server, separator, _ = name.partition("__")
        prefix = server + separator if separator else ""
        beside = {one.removeprefix(prefix): one for one in sorted(self._specs) if one.startswith(prefix)}
        return tuple(beside[one] for one in suggest_names(name.removeprefix(prefix), list(beside), 3))
