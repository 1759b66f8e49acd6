"""The names of files that steer tools, editors, agents, git and CI: one list for policy and for the box."""

from __future__ import annotations

from ollm.system.file_names import SHELL_START_UP_FILES, normalize_name

STEERING_NAMES = (
    frozenset(
        # agents
        ".ollm .claude .cursor .codex .gemini .windsurf .continue .roo .cline .clinerules .kiro .aider.conf.yml "
        ".mcp.json mcp.json .cursorrules .windsurfrules .roorules .goosehints agents.md agent.md claude.md "
        "claude.local.md gemini.md codex.md .opencode opencode.json .qwen qwen.md .amazonq .kilocode .junie .trae "
        ".augment .crush .crush.json crush.json crush.md warp.md .rules .agents .claude-plugin "
        # editors and what they run by themselves
        ".vscode .idea .zed .fleet .vs .nova .devcontainer .devcontainer.json .envrc .direnv .mise.toml mise.toml "
        ".vimrc .exrc .nvimrc .nvim.lua .ideavimrc .dir-locals.el .gdbinit .lldbinit .run "
        # interpreters and build tools that run such a file when they start
        ".irbrc .pryrc .pdbrc .mvn "
        # package managers that run a program, or send a token, where such a file says so
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs "
        # git and hooks
        ".gitmodules .gitattributes .lfsconfig .hg .jj .husky .githooks .overcommit.yml .pre-commit-config.yaml "
        ".lefthook.yml lefthook.yml .huskyrc .lintstagedrc "
        # continuous integration
        ".gitlab-ci.yml .circleci .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite .tekton .forgejo "
        ".gitea jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .appveyor.yml "
        "cloudbuild.yaml".split()
    )
    | SHELL_START_UP_FILES
)
STEERING_ENDINGS = (".code-workspace",)
STEERING_STEMS = (".huskyrc.", ".lintstagedrc.")  # also as .json, .yaml or a program
GITHUB_STEERING_NAMES = frozenset(
    {"workflows", "actions", "copilot-instructions.md", "instructions", "agents", "chatmodes"}
)
GIT_STEERING_NAMES = frozenset(
    {"config", "config.worktree", "hooks", "commondir", "gitdir", "rebase-merge", "rebase-apply"}
)
GIT_STEERING_PATHS = frozenset({("info", "attributes"), ("info", "grafts"), ("objects", "info", "alternates")})
GIT_NESTED = frozenset({"modules", "worktrees"})


def steers_by_name(part: str) -> bool:
    return part in STEERING_NAMES or part.endswith(STEERING_ENDINGS) or part.startswith(STEERING_STEMS)


def find_steering_name(path: str) -> str | None:
    """The part of an absolute, resolved path that makes it one that steers tools or agents, or None."""
    parts = [normalize_name(part) for part in path.split("/") if part]
    for position, part in enumerate(parts):
        if steers_by_name(part):
            return part
        if part == ".github" and parts[position + 1 : position + 2] and parts[position + 1] in GITHUB_STEERING_NAMES:
            return f"{part}/{parts[position + 1]}"
        if part == ".git" and (found := _find_git_steering_name(parts[position + 1 :])) is not None:
            return found
    return None


def _find_git_steering_name(below: list[str]) -> str | None:
    """`.git` itself, what git runs or takes its settings from, and the same of submodules and worktrees."""
    if not below:
        return ".git"
    if below[0] in GIT_STEERING_NAMES:
        return f".git/{below[0]}"
    if found := next((path for path in GIT_STEERING_PATHS if tuple(below[: len(path)]) == path), None):
        return "/".join((".git", *found))
    if below[0] in GIT_NESTED:
        steering = next((part for part in below[1:] if part in GIT_STEERING_NAMES), None)
        return steering and f".git/{below[0]}/…/{steering}"
    return None
