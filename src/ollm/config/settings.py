"""Every setting there is: its type, its default and its bounds (S8). YAML keys are the camelCase names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from ollm.domain.context import Approval, Strategy
from ollm.domain.struct import Data

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(ge=0)]

BUILTIN_IGNORES = ("node_modules", ".git", "dist", "build", ".next", ".cache")
CORE_ALLOW = ("PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "LC_*")
CORE_DENY = ("*_KEY", "*_SECRET", "*_TOKEN", "*_PASSWORD", "*_CREDENTIAL", "AWS_*", "GITHUB_*")


class SessionSettings(Data, frozen=True):
    data_dir: Annotated[str, Meta(description="Where sessions are kept.")] = "~/.ollm/sessions"
    max_sessions: Annotated[Count, Meta(description="Keep at most this many; 0 keeps all.")] = 100
    auto_save: Annotated[bool, Meta(description="Write every record at once; false waits for the end of the turn.")] = (
        True
    )
    trash_days: Annotated[
        Count, Meta(description="Days a session that maxSessions removed can be restored; 0 = none.")
    ] = 30


class SnapshotSettings(Data, frozen=True):
    enabled: Annotated[bool, Meta(description="Whether snapshots are taken at all.")] = True
    max_count: Annotated[Positive, Meta(description="Snapshots kept per session.")] = 5
    auto_create: Annotated[bool, Meta(description="Take them by themselves; false leaves manual ones only.")] = True
    auto_threshold: Annotated[Share, Meta(description="Share of the limit at which one is taken.")] = 0.85


class CompressionSettings(Data, frozen=True):
    enabled: Annotated[bool, Meta(description="Whether old messages are compressed when the window fills.")] = True
    strategy: Annotated[Strategy, Meta(description="summarize, truncate or hybrid.")] = "hybrid"
    threshold: Annotated[Share, Meta(description="Share of the available budget at which compression starts.")] = 0.80
    preserve_recent: Annotated[Count, Meta(description="Newest tokens that are never touched.")] = 4096
    summary_max_tokens: Annotated[Positive, Meta(description="Longest summary.")] = 1024


class LoopSettings(Data, frozen=True):
    enabled: Annotated[bool, Meta(description="Whether loops are stopped.")] = True
    max_turns: Annotated[Positive, Meta(description="Requests to the model for one message of yours.")] = 50
    repeat_threshold: Annotated[int, Meta(ge=2, description="Repetitions that make a loop.")] = 3


class FileDiscoverySettings(Data, frozen=True):
    max_depth: Annotated[Count | None, Meta(description="Deepest level; files of the root are 0. Unset: no limit.")] = (
        None
    )
    follow_symlinks: Annotated[bool, Meta(description="Whether links to directories are followed.")] = False
    builtin_ignores: Annotated[tuple[str, ...], Meta(description="Names always left out.")] = BUILTIN_IGNORES
    project_map: Annotated[
        Count, Meta(description="Tokens a map of a trusted workspace may take in the prompt; 0: none.")
    ] = 0


class EnvironmentSettings(Data, frozen=True):
    """Added to the built-in lists, never in place of them."""

    allow_list: Annotated[tuple[str, ...], Meta(description="Variables always passed to tools (globs allowed).")] = ()
    deny_patterns: Annotated[tuple[str, ...], Meta(description="Variables never passed to tools (globs).")] = ()


class PolicySettings(Data, frozen=True):
    default_action: Annotated[Literal["allow", "ask", "deny"], Meta(description="When no rule matches.")] = "ask"
    rules: Annotated[tuple[dict[str, Any], ...], Meta(description="Rules; see docs/security.md.")] = ()
    approval: Annotated[Approval, Meta(description="read-only, ask, accept-edits or yolo.")] = "ask"
    confirmation_timeout: Annotated[
        Seconds, Meta(description="Seconds a question waits; 0 waits while a front end is attached, else 600.")
    ] = 0


class ModeSettings(Data, frozen=True):
    default: Annotated[Literal["assistant", "plan", "code", "debug"], Meta(description="Mode of a new session.")] = (
        "code"
    )
    auto_switch: Annotated[
        Literal["off", "propose", "on"], Meta(description="What happens when a message fits another mode.")
    ] = "propose"


class OutputSettings(Data, frozen=True):
    max_chars: Annotated[Positive, Meta(description="Longest output of a tool, in characters.")] = 30_000
    max_lines: Annotated[Positive, Meta(description="Longest output of a tool, in lines.")] = 1_000


class ReadFileSettings(Data, frozen=True):
    max_bytes: Annotated[Positive, Meta(description="Largest file that is read.")] = 10 * 1024 * 1024


class ShellSettings(Data, frozen=True):
    timeout: Annotated[float, Meta(gt=0, description="Seconds a command may take.")] = 120
    idle_timeout: Annotated[Seconds, Meta(description="Seconds a command may be silent; 0 = off.")] = 0
    max_background: Annotated[Positive, Meta(description="Commands in the background at once.")] = 16


class WebFetchSettings(Data, frozen=True):
    timeout: Annotated[float, Meta(gt=0, description="Seconds a fetch may take.")] = 30
    max_bytes: Annotated[Positive, Meta(description="Most bytes that are read of a page.")] = 5_000_000
    max_length: Annotated[Positive, Meta(description="Longest text given to the model.")] = 20_000
    allow_private: Annotated[tuple[str, ...], Meta(description="host:port places that may be private.")] = ()


class WebSearchSettings(Data, frozen=True):
    backend: Annotated[
        str | None,
        Meta(description="searxng, brave, tavily, ddgs, or one an extension adds. Default: ddgs if installed."),
    ] = None
    base_url: Annotated[str | None, Meta(description="Address of a searxng server.")] = None
    api_key_env: Annotated[str | None, Meta(description="Name of the variable that holds the key.")] = None
    num_results: Annotated[Positive, Meta(description="Results of a search.")] = 5


class ToolSettings(Data, frozen=True):
    output: OutputSettings = OutputSettings()
    read_file: ReadFileSettings = ReadFileSettings()
    shell: ShellSettings = ShellSettings()
    web_fetch: WebFetchSettings = WebFetchSettings()
    web_search: WebSearchSettings = WebSearchSettings()
    max_results: Annotated[Positive, Meta(description="Results of glob and grep.")] = 100
    max_depth: Annotated[Positive, Meta(description="Depth of a recursive ls.")] = 3
    allowed_roots: Annotated[
        tuple[str, ...], Meta(description="Directories outside the workspace that tools may use.")
    ] = ()


class ProviderTimeouts(Data, frozen=True):
    connect: Annotated[float, Meta(gt=0, description="Seconds to reach the server.")] = 5
    first_token: Annotated[float, Meta(gt=0, description="Seconds to load the model and read the prompt.")] = 600
    stall: Annotated[float, Meta(gt=0, description="Seconds a begun answer may stand still.")] = 120


class ProviderSettings(Data, frozen=True):
    type: Annotated[
        Literal["ollama", "openai", "embedded"] | None, Meta(description="Unset: the first that answers.")
    ] = None
    extension: Annotated[
        str | None, Meta(description="A kind of server that an enabled extension brings, in place of type.")
    ] = None
    base_url: Annotated[str | None, Meta(description="Address of the server; unset: its usual port here.")] = None
    model: Annotated[str | None, Meta(description="Name of the model; unset: one the server has.")] = None
    api_key: Annotated[str | None, Meta(description="The key itself; apiKeyEnv keeps it out of the file.")] = None
    api_key_env: Annotated[str | None, Meta(description="Name of the variable that holds the key.")] = None
    context_window: Annotated[
        Annotated[int, Meta(ge=512)] | None, Meta(description="Window to ask for; unset: what the server says.")
    ] = None
    timeouts: ProviderTimeouts = ProviderTimeouts()


class ModelFileSettings(Data, frozen=True):
    urls: Annotated[
        dict[str, str], Meta(description="Where a model of the catalogue is fetched from, by name; its hash decides.")
    ] = field(default_factory=dict)


class ResumeSettings(Data, frozen=True):
    messages: Annotated[Positive, Meta(description="Messages kept for a resume.")] = 40
    message_chars: Annotated[Positive, Meta(description="Longest of them.")] = 8_000
    tool_output_chars: Annotated[Positive, Meta(description="Longest tool output among them.")] = 4_000
    total_chars: Annotated[Positive, Meta(description="All of them together.")] = 80_000
    summary_chars: Annotated[Positive, Meta(description="Longest rolling summary.")] = 4_000


class DaemonSettings(Data, frozen=True):
    max_clients: Annotated[Positive, Meta(description="Clients at once.")] = 64
    drain_seconds: Annotated[Seconds, Meta(description="Seconds running turns get when the daemon stops.")] = 10


class ExtensionSettings(Data, frozen=True):
    enabled: Annotated[tuple[str, ...], Meta(description="Names of the extensions in use.")] = ()


class ScreenSettings(Data, frozen=True):
    keys: Annotated[Literal["emacs", "vi"], Meta(description="Keys of the input line.")] = "emacs"
    bell: Annotated[bool, Meta(description="Ring for questions, and when a long turn ends.")] = True
    plain: Annotated[bool, Meta(description="Plain lines instead of the screen, for screen readers.")] = False


class Settings(Data, frozen=True):
    """All of them."""

    sessions: SessionSettings = SessionSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    compression: CompressionSettings = CompressionSettings()
    loop_detection: LoopSettings = LoopSettings()
    file_discovery: FileDiscoverySettings = FileDiscoverySettings()
    environment: EnvironmentSettings = EnvironmentSettings()
    policy: PolicySettings = PolicySettings()
    modes: ModeSettings = ModeSettings()
    tools: ToolSettings = ToolSettings()
    provider: ProviderSettings = ProviderSettings()
    models: ModelFileSettings = ModelFileSettings()
    resume: ResumeSettings = ResumeSettings()
    daemon: DaemonSettings = DaemonSettings()
    screen: ScreenSettings = ScreenSettings()
    extensions: ExtensionSettings = ExtensionSettings()
    hooks: Annotated[dict[str, Any], Meta(description="Commands run at events; see docs/extending.md.")] = field(
        default_factory=dict
    )
    mcp_servers: Annotated[dict[str, Any], Meta(description="MCP servers by name.")] = field(default_factory=dict)


def make_default_settings() -> Settings:
    return Settings()


def as_document(settings: Settings) -> dict[str, Any]:
    """The settings with their YAML names."""
    document: dict[str, Any] = msgspec.to_builtins(settings)
    return document
