"""All settings with their types, defaults and bounds (S8). YAML keys are the camelCase names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from ollm.domain.context import Approval, ReplayThinking, Strategy
from ollm.domain.struct import Data

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(ge=0)]

BUILTIN_IGNORES = ("node_modules", ".git", "dist", "build", ".next", ".cache")
CORE_ALLOW = ("PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "LC_*")
CORE_DENY = ("*_KEY", "*_SECRET", "*_TOKEN", "*_PASSWORD", "*_CREDENTIAL", "AWS_*", "GITHUB_*")


class SessionSettings(Data, frozen=True):
    data_dir: Annotated[str, Meta(description="Directory for sessions.")] = "~/.ollm/sessions"
    max_sessions: Annotated[Count, Meta(description="Maximum number of sessions; 0: no limit.")] = 100
    auto_save: Annotated[bool, Meta(description="Save every record immediately; false saves at the end of a turn.")] = (
        True
    )
    trash_days: Annotated[
        Count, Meta(description="Days to keep sessions removed by maxSessions in the trash; 0: deleted at once.")
    ] = 30


class SnapshotSettings(Data, frozen=True):
    enabled: Annotated[bool, Meta(description="Take snapshots.")] = True
    max_count: Annotated[Positive, Meta(description="Snapshots kept per session.")] = 5
    auto_create: Annotated[bool, Meta(description="Take snapshots automatically; false means only on request.")] = True
    auto_threshold: Annotated[Share, Meta(description="Fraction of the limit at which a snapshot is taken.")] = 0.85


class CompressionSettings(Data, frozen=True):
    enabled: Annotated[bool, Meta(description="Compact old messages when the context window fills.")] = True
    strategy: Annotated[Strategy, Meta(description="summarize, truncate or hybrid.")] = "hybrid"
    threshold: Annotated[Share, Meta(description="Fraction of the budget at which compaction starts.")] = 0.80
    preserve_recent: Annotated[Count, Meta(description="Newest tokens that are never compacted.")] = 4096
    summary_max_tokens: Annotated[
        Positive, Meta(description="Maximum tokens of a summary (fewer in small windows).")
    ] = 1024
    timeout: Annotated[Positive, Meta(description="Seconds a summary may take; then an automatic one is used.")] = 60
    idle: Annotated[
        Literal["auto", "off"],
        Meta(description="auto: prepare the next summary while the server (llama.cpp, embedded) has nothing to do."),
    ] = "auto"


class LoopSettings(Data, frozen=True):
    enabled: Annotated[bool, Meta(description="Stop loops.")] = True
    max_turns: Annotated[Positive, Meta(description="Maximum model requests per user message.")] = 50
    repeat_threshold: Annotated[int, Meta(ge=2, description="Repetitions that count as a loop.")] = 3


class FileDiscoverySettings(Data, frozen=True):
    max_depth: Annotated[Count | None, Meta(description="Maximum depth; files in the root are 0. Unset: no limit.")] = (
        None
    )
    follow_symlinks: Annotated[bool, Meta(description="Follow links to directories.")] = False
    builtin_ignores: Annotated[tuple[str, ...], Meta(description="Names to always ignore.")] = BUILTIN_IGNORES


class CodeMapSettings(Data, frozen=True):
    """Outlines and maps of code; see docs/files.md."""

    max_tokens: Annotated[Positive, Meta(description="Maximum tokens of an outline or a map.")] = 1000
    max_files: Annotated[Positive, Meta(description="Maximum files read for a map.")] = 20_000


class EnvironmentSettings(Data, frozen=True):
    """Additions to the built-in lists, which they never replace."""

    allow_list: Annotated[tuple[str, ...], Meta(description="Variables always passed to tools (globs allowed).")] = ()
    deny_patterns: Annotated[tuple[str, ...], Meta(description="Variables never passed to tools (globs).")] = ()


class PolicySettings(Data, frozen=True):
    default_action: Annotated[Literal["allow", "ask", "deny"], Meta(description="Decision when no rule matches.")] = (
        "ask"
    )
    rules: Annotated[tuple[dict[str, Any], ...], Meta(description="Rules; see docs/security.md.")] = ()
    approval: Annotated[Approval, Meta(description="read-only, ask, accept-edits or yolo.")] = "ask"
    confirmation_timeout: Annotated[Seconds, Meta(description="Seconds to wait for an answer; 0: no limit.")] = 0


class SandboxSettings(Data, frozen=True):
    """Limits of the sandbox around commands, hooks and MCP servers; see docs/security.md."""

    mode: Annotated[
        Literal["auto", "require", "off"], Meta(description="auto: the best there is; require: or nothing runs.")
    ] = "auto"
    network: Annotated[
        Literal["none", "loopback", "all"] | None,
        Meta(description="For commands that may change files; unset: all, with autoApprove none."),
    ] = None
    readable: Annotated[
        tuple[str, ...], Meta(description="Files and directories of your home that commands may read.")
    ] = ()
    writable: Annotated[
        tuple[str, ...], Meta(description="Directories that commands may write to; relative ones are in the workspace.")
    ] = ()
    hidden: Annotated[tuple[str, ...], Meta(description="Files and directories no command is to see.")] = ()
    auto_approve: Annotated[
        bool, Meta(description="Run shell commands unasked where the box holds them (level full).")
    ] = False


class ModeSettings(Data, frozen=True):
    default: Annotated[Literal["assistant", "plan", "code", "debug"], Meta(description="Mode of a new session.")] = (
        "code"
    )
    auto_switch: Annotated[
        Literal["off", "propose", "on"],
        Meta(description="What to do when a model finds another mode fitter for a message."),
    ] = "off"


class OutputSettings(Data, frozen=True):
    max_chars: Annotated[Positive, Meta(description="Maximum characters of tool output.")] = 30_000
    max_lines: Annotated[Positive, Meta(description="Maximum lines of tool output.")] = 1_000


class ReadFileSettings(Data, frozen=True):
    max_bytes: Annotated[Positive, Meta(description="Maximum bytes of a file.")] = 10 * 1024 * 1024


class ShellSettings(Data, frozen=True):
    timeout: Annotated[float, Meta(gt=0, description="Timeout of a command in seconds.")] = 120
    idle_timeout: Annotated[
        Seconds, Meta(description="Seconds without output before a command is stopped; 0: no limit.")
    ] = 0
    max_background: Annotated[Positive, Meta(description="Maximum background commands.")] = 16


class WebFetchSettings(Data, frozen=True):
    timeout: Annotated[float, Meta(gt=0, description="Timeout of a fetch in seconds.")] = 30
    max_bytes: Annotated[Positive, Meta(description="Maximum bytes to download.")] = 5_000_000
    max_length: Annotated[Positive, Meta(description="Maximum characters given to the model.")] = 20_000
    allow_private: Annotated[tuple[str, ...], Meta(description="Private host:port addresses that may be fetched.")] = ()


class WebSearchSettings(Data, frozen=True):
    backend: Annotated[
        str | None,
        Meta(description="searxng, brave, tavily, ddgs, or one an extension adds. Default: ddgs if installed."),
    ] = None
    base_url: Annotated[str | None, Meta(description="URL of a SearXNG server.")] = None
    api_key_env: Annotated[str | None, Meta(description="Environment variable with the API key.")] = None
    num_results: Annotated[Positive, Meta(description="Number of results.")] = 5


class TaskSettings(Data, frozen=True):
    max_steps: Annotated[Positive, Meta(description="Maximum model requests of a task.")] = 15
    max_seconds: Annotated[float, Meta(gt=0, description="Timeout of a task in seconds.")] = 300
    report_tokens: Annotated[Positive, Meta(description="Maximum tokens of a task's report.")] = 800
    parallel: Annotated[
        Annotated[int, Meta(ge=1, le=4)] | None,
        Meta(description="Tasks at a time, at most 4. Unset: what the server runs at a time if known, else 1."),
    ] = None


class DiagnosticsSettings(Data, frozen=True):
    """Errors that language servers find after an edit; see docs/diagnostics.md."""

    enabled: Annotated[bool, Meta(description="Use installed language servers.")] = True
    timeout: Annotated[float, Meta(gt=0, le=30, description="Seconds an edit waits for new errors.")] = 1.5
    languages: Annotated[
        dict[str, Any], Meta(description="Per language: off, or {command, suffixes, settings} of its server.")
    ] = field(default_factory=dict)


class ToolSettings(Data, frozen=True):
    output: OutputSettings = OutputSettings()
    read_file: ReadFileSettings = ReadFileSettings()
    shell: ShellSettings = ShellSettings()
    web_fetch: WebFetchSettings = WebFetchSettings()
    web_search: WebSearchSettings = WebSearchSettings()
    task: TaskSettings = TaskSettings()
    diagnostics: DiagnosticsSettings = DiagnosticsSettings()
    max_results: Annotated[Positive, Meta(description="Maximum results of glob and grep.")] = 100
    max_depth: Annotated[Positive, Meta(description="Maximum depth of ls.")] = 3
    allowed_roots: Annotated[
        tuple[str, ...], Meta(description="Directories outside the workspace that tools may use.")
    ] = ()


class ProviderTimeouts(Data, frozen=True):
    connect: Annotated[float, Meta(gt=0, description="Seconds to connect.")] = 5
    first_token: Annotated[float, Meta(gt=0, description="Seconds until the first token.")] = 600
    stall: Annotated[float, Meta(gt=0, description="Seconds without a new token.")] = 120


ServerType = Literal[
    "ollama",
    "openai",
    "embedded",
    "llamacpp",
    "llama.cpp",
    "vllm",
    "lmstudio",
    "sglang",
    "litellm",
    "localai",
    "koboldcpp",
    "jan",
    "openrouter",
]


class TokenPrice(Data, frozen=True):
    """Price of a million tokens, in any currency."""

    prompt: Annotated[float, Meta(ge=0, description="Price of a million tokens of the prompt.")] = 0
    completion: Annotated[float, Meta(ge=0, description="Price of a million tokens of answers.")] = 0
    reused: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Price of a million tokens of the prompt that the server had read before; unset: as prompt."),
    ] = None


class ProviderSettings(Data, frozen=True):
    type: Annotated[
        ServerType | None,
        Meta(description="ollama, openai, embedded, or a server's name; unset: the first that answers."),
    ] = None
    extension: Annotated[str | None, Meta(description="A provider from an enabled extension, instead of type.")] = None
    base_url: Annotated[str | None, Meta(description="URL of the server; unset: the usual local port.")] = None
    model: Annotated[str | None, Meta(description="Model name; unset: the server's first.")] = None
    api_key: Annotated[str | None, Meta(description="The API key; apiKeyEnv keeps it out of the file.")] = None
    api_key_env: Annotated[str | None, Meta(description="Environment variable with the API key.")] = None
    context_window: Annotated[
        Annotated[int, Meta(ge=512)] | None,
        Meta(description="Context window in tokens; unset: what the server reports."),
    ] = None
    call_form: Annotated[
        Literal["auto", "native", "blocks", "text"],
        Meta(description="How the model calls tools; auto: what is known or found out about it."),
    ] = "auto"
    slot_save_path: Annotated[str, Meta(description="llama.cpp's --slot-save-path: keeps sessions it read.")] = ""
    slot_save_gigabytes: Annotated[float, Meta(gt=0, description="Size of that; the oldest sessions go first.")] = 10
    parallel: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Requests the server runs at a time; more wait. Unset: llama.cpp's slots if known, else any."),
    ] = None
    price: TokenPrice = TokenPrice()
    timeouts: ProviderTimeouts = ProviderTimeouts()


class ModelSettings(Data, frozen=True):
    """Values sent to a model with each request. Unset fields are left out: the server's own apply."""

    temperature: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="Randomness; 0: the likeliest.")] = (
        None
    )
    top_p: Annotated[Share | None, Meta(description="Share of probability to choose from.")] = None
    top_k: Annotated[Count | None, Meta(description="Number of tokens to choose from; 0: all.")] = None
    min_p: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Least probability, as a fraction of the likeliest token's."),
    ] = None
    repeat_penalty: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Penalty for repetitions; 1: none.")
    ] = None
    seed: Annotated[int | None, Meta(description="Start of the random numbers, to get the same answer again.")] = None
    stop: Annotated[tuple[str, ...], Meta(description="Texts at which an answer ends.")] = ()
    thinking: Annotated[
        Literal["on", "off", "/no_think"] | None,
        Meta(description="on, off, or /no_think: off by that word in the prompt, for templates that read it."),
    ] = None
    replay_thinking: Annotated[
        ReplayThinking | None,
        Meta(description="Thinking sent back: of the whole session (the template decides), of the turn, or off."),
    ] = None
    thinking_budget: Annotated[Count | None, Meta(description="Maximum tokens of thinking.")] = None
    reasoning_effort: Annotated[
        str | None, Meta(description="low, medium, high, or another word that the model knows.")
    ] = None
    extra: Annotated[dict[str, Any], Meta(description="More fields of the request, sent as they are.")] = field(
        default_factory=dict
    )
    headers: Annotated[
        dict[str, str], Meta(description="HTTP headers; ${NAME} stands for an environment variable.")
    ] = field(default_factory=dict)

    @property
    def differs_by_server(self) -> bool:
        """Return True if a setting is sent as another field to each kind of server."""
        return any((self.repeat_penalty, self.thinking in ("on", "off"), self.reasoning_effort)) or (
            self.thinking_budget is not None
        )


OWN_FIELDS = ("model", "messages", "tools", "stream", "stream_options")
MODEL_URLS = Annotated[
    dict[str, str], Meta(description="Download URLs of catalogue models by name; checksums are verified.")
]


class ResumeSettings(Data, frozen=True):
    messages: Annotated[Positive, Meta(description="Number of messages kept for resume.")] = 40
    message_chars: Annotated[Positive, Meta(description="Maximum characters of a kept message.")] = 8_000
    tool_output_chars: Annotated[Positive, Meta(description="Maximum characters of a kept tool output.")] = 4_000
    total_chars: Annotated[Positive, Meta(description="Maximum characters in total.")] = 80_000
    summary_chars: Annotated[Positive, Meta(description="Maximum characters of the rolling summary.")] = 4_000


class TlsSettings(Data, frozen=True):
    cert: Annotated[str, Meta(description="Certificate for daemon.listen, with its chain (PEM file).")] = ""
    key: Annotated[str, Meta(description="Its private key, without a password (PEM file).")] = ""


class DaemonSettings(Data, frozen=True):
    public_url: Annotated[
        str | None, Meta(description="https:// address at which other devices reach the page, such as that of a proxy.")
    ] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="Port on 127.0.0.1; unset: any that is free.")
    ] = None
    listen: Annotated[
        str | None, Meta(description="HOST:PORT to listen on with TLS, for daemon.publicUrl; unset: 127.0.0.1 only.")
    ] = None
    tls: TlsSettings = TlsSettings()
    max_clients: Annotated[Positive, Meta(description="Maximum clients.")] = 64
    drain_seconds: Annotated[
        Seconds, Meta(description="Seconds running turns get to finish when the daemon stops.")
    ] = 10
    idle_minutes: Annotated[
        float, Meta(gt=0, description="Minutes before an unused session is closed; it can be resumed.")
    ] = 30

    @property
    def opens_port(self) -> bool:
        """Return True if a setting needs the port on 127.0.0.1, as `--tcp` does."""
        return bool(self.public_url or self.port or self.listen)


class NotifySettings(Data, frozen=True):
    """A command that the daemon runs when a session asks or a turn ends; see docs/remote.md."""

    command: Annotated[
        tuple[str, ...], Meta(description="Program and arguments; it reads JSON. No shell runs it.")
    ] = ()
    contents: Annotated[bool, Meta(description="Tell it the question and the command, or the error, too.")] = False


class ExtensionSettings(Data, frozen=True):
    enabled: Annotated[tuple[str, ...], Meta(description="Enabled extensions.")] = ()


class ScreenSettings(Data, frozen=True):
    keys: Annotated[Literal["emacs", "vi"], Meta(description="Key bindings of the input line.")] = "emacs"
    bell: Annotated[bool, Meta(description="Ring and notify for questions and when a long turn ends.")] = True
    plain: Annotated[bool, Meta(description="Plain line output, for screen readers.")] = False
    theme: Annotated[
        Literal["auto", "dark", "light", "plain"],
        Meta(description="Colours; auto: as the terminal's ground, else dark."),
    ] = "auto"


class CheckpointSettings(Data, frozen=True):
    """Copies of the workspace's files, to go back to with /rewind; see docs/chat.md."""

    enabled: Annotated[bool, Meta(description="Save the files before and after each turn that may change some.")] = True
    max_files: Annotated[Positive, Meta(description="Files in a workspace above which none are saved.")] = 50_000
    max_file_bytes: Annotated[Positive, Meta(description="Maximum bytes of a saved file; larger ones are not.")] = (
        2 * 1024 * 1024
    )
    max_total: Annotated[
        Positive, Meta(description="Maximum bytes of all saved files of a workspace; the oldest go first.")
    ] = 1024 * 1024 * 1024
    keep_days: Annotated[Positive, Meta(description="Days to keep checkpoints.")] = 7


class Check(Data, frozen=True, forbid_unknown_fields=True):
    """A command to run after edits of matching files, or at the end of a turn that changed some."""

    files: str | tuple[str, ...]
    run: Annotated[str, Meta(pattern=r"\S")]
    when: Literal["edit", "turn"] = "turn"
    max_rounds: Annotated[int, Meta(ge=0, le=20)] = 3
    timeout: Annotated[float, Meta(gt=0, le=3600)] | None = None


class WorkspaceSettings(Data, frozen=True):
    sessions: Annotated[
        Literal["one", "many"], Meta(description="one: a second chat in a workspace asks first; many: it just opens.")
    ] = "one"


class WorktreeSettings(Data, frozen=True):
    """Git worktrees for `ollm -w NAME`; see docs/workspaces.md."""

    dir: Annotated[
        str, Meta(description="Directory for worktrees, from the repository's; {repo} is the name of that.")
    ] = "../{repo}.worktrees"
    copy: Annotated[
        tuple[str, ...], Meta(description="Files that git does not track and a new worktree needs (globs).")
    ] = ()
    setup: Annotated[tuple[str, ...], Meta(description="Commands to run in a new worktree, in the sandbox.")] = ()


class ArchiveSettings(Data, frozen=True):
    """The team archive in PostgreSQL; nothing is sent until `url` or `urlEnv` is set. See docs/team-archive.md."""

    url: Annotated[str | None, Meta(description="postgresql://USER@HOST/DATABASE; unset: no archive.")] = None
    url_env: Annotated[str | None, Meta(description="Environment variable with the URL, instead of url.")] = None
    push: Annotated[
        Literal["off", "on-close", "live"],
        Meta(description="off: only `ollm archive push`; on-close: when a session closes; live: after every turn."),
    ] = "off"
    workspaces: Annotated[
        tuple[str, ...], Meta(description="Only sessions of these directories (globs); empty: all.")
    ] = ()
    redact: Annotated[bool, Meta(description="Take secrets out before anything is sent.")] = True
    owner: Annotated[str | None, Meta(description="Role to act as; unset: the one that logs in.")] = None
    deletes: Annotated[
        Literal["mirror", "keep"],
        Meta(description="mirror: a session deleted here is deleted there too; keep: it stays there."),
    ] = "mirror"

    @property
    def is_set(self) -> bool:
        """Return True if an archive is set."""
        return bool(self.url or self.url_env)

    @property
    def is_pushed(self) -> bool:
        """Return True if sessions are sent automatically."""
        return self.push != "off" and self.is_set


Role = str | dict[str, Any] | None


class RoleSettings(Data, frozen=True):
    """Models for kinds of work: `SERVER/MODEL`, or a mapping with the keys of `provider`; see docs/providers.md."""

    main: Annotated[Role, Meta(description="Answers you; the same as provider.")] = None
    small: Annotated[Role, Meta(description="Titles, mode proposals, and what the next two do not set.")] = None
    summary: Annotated[Role, Meta(description="Summaries of old messages; unset: small, else main.")] = None
    tasks: Annotated[Role, Meta(description="Tasks and agents; unset: small, else main.")] = None
    embedding: Annotated[Role, Meta(description="Embeddings, to search by meaning; unset: words only.")] = None

    @property
    def key_variables(self) -> list[str]:
        """Environment variables with the keys of these servers."""
        roles = (self.main, self.small, self.summary, self.tasks, self.embedding)
        return [role["apiKeyEnv"] for role in roles if isinstance(role, dict) and role.get("apiKeyEnv")]


class Settings(Data, frozen=True):
    """All settings."""

    sessions: SessionSettings = SessionSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    compression: CompressionSettings = CompressionSettings()
    loop_detection: LoopSettings = LoopSettings()
    file_discovery: FileDiscoverySettings = FileDiscoverySettings()
    code_map: CodeMapSettings = CodeMapSettings()
    environment: EnvironmentSettings = EnvironmentSettings()
    policy: PolicySettings = PolicySettings()
    sandbox: SandboxSettings = SandboxSettings()
    modes: ModeSettings = ModeSettings()
    tools: ToolSettings = ToolSettings()
    provider: ProviderSettings = ProviderSettings()
    models: Annotated[
        dict[str, Any], Meta(description="Request settings by the name of the model, a glob, or default.")
    ] = field(default_factory=dict)
    roles: RoleSettings = RoleSettings()
    resume: ResumeSettings = ResumeSettings()
    daemon: DaemonSettings = DaemonSettings()
    notify: NotifySettings = NotifySettings()
    screen: ScreenSettings = ScreenSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    worktree: WorktreeSettings = WorktreeSettings()
    archive: ArchiveSettings = ArchiveSettings()
    extensions: ExtensionSettings = ExtensionSettings()
    hooks: Annotated[dict[str, Any], Meta(description="Commands to run on events; see docs/extending.md.")] = field(
        default_factory=dict
    )
    checks: Annotated[
        tuple[Check, ...], Meta(description="Formatters and tests for changed files; see docs/extending.md.")
    ] = ()
    mcp_servers: Annotated[dict[str, Any], Meta(description="MCP servers by name.")] = field(default_factory=dict)
