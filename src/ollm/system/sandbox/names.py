"""Which names a box holds back: files that steer tools and agents, and the places where a home keeps its secrets."""

from __future__ import annotations

import os

from ollm.system.file_names import SHELL_START_UP_FILES, normalize_name

STEERING_NAMES = (
    frozenset(
        # agents
        ".ollm .claude .cursor .codex .gemini .windsurf .continue .roo .cline .clinerules .kiro .aider.conf.yml "
        ".mcp.json mcp.json .cursorrules .windsurfrules .roorules .goosehints agents.md agent.md claude.md "
        "claude.local.md gemini.md codex.md "
        # editors and what they run by themselves
        ".vscode .idea .zed .fleet .devcontainer .devcontainer.json .envrc "
        # git and hooks
        ".gitmodules .gitattributes .husky .pre-commit-config.yaml .lefthook.yml lefthook.yml "
        # continuous integration
        ".gitlab-ci.yml .circleci .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite .forgejo .gitea "
        "jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .appveyor.yml cloudbuild.yaml".split()
    )
    | SHELL_START_UP_FILES
)
GITHUB_STEERING_NAMES = frozenset(
    {"workflows", "actions", "copilot-instructions.md", "instructions", "agents", "chatmodes"}
)
GIT_STEERING_NAMES = frozenset({"config", "config.worktree", "hooks", "commondir", "gitdir"})
GIT_NESTED = frozenset({"modules", "worktrees"})

HOME_SECRETS = (
    ".ssh .aws .azure .gnupg .docker .kube .netrc _netrc .authinfo .authinfo.gpg .ollm .git-credentials .npmrc "
    ".yarnrc.yml .pypirc .pgpass .my.cnf .mylogin.cnf .vault-token .boto .s3cfg .password-store .oci "
    ".terraform.d/credentials.tfrc.json .terraformrc .cargo/credentials .cargo/credentials.toml .gem/credentials "
    ".m2/settings.xml .gradle/gradle.properties .fly .heroku .netlify .bash_history .zsh_history .python_history "
    ".node_repl_history .psql_history .mysql_history .sqlite_history .lesshst .local/share/keyrings "
    ".local/share/kwalletd .local/share/fish/fish_history .pki .thunderbird .mozilla .keychain .electrum .bitcoin "
    ".config/gh .config/hub .config/glab-cli .config/gcloud .config/git/credentials .config/op .config/1Password "
    ".config/rclone .config/sops .config/age .config/doctl .config/google-chrome .config/chromium "
    ".config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera .config/Bitwarden .config/Signal "
    ".config/keepassxc .config/containers/auth.json .config/github-copilot .var/app .claude/.credentials.json "
    ".codex/auth.json .gemini/oauth_creds.json .cache/mozilla .cache/google-chrome .cache/chromium "
    "Library/Keychains"
).split()
SYSTEM_SECRETS = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/root/.ssh",
)


def find_steering_name(path: str) -> str | None:
    """The part of an absolute, resolved path that makes it one that steers tools or agents, or None."""
    parts = [normalize_name(part) for part in path.split("/") if part]
    for position, part in enumerate(parts):
        if part in STEERING_NAMES:
            return part
        if part == ".github" and parts[position + 1 : position + 2] and parts[position + 1] in GITHUB_STEERING_NAMES:
            return f"{part}/{parts[position + 1]}"
        if part == ".git" and (found := _git_steering_name(parts[position + 1 :])) is not None:
            return found
    return None


def _git_steering_name(below: list[str]) -> str | None:
    """`.git` itself, what git runs or takes its settings from, and the same of submodules and worktrees."""
    if not below:
        return ".git"
    if below[0] in GIT_STEERING_NAMES:
        return f".git/{below[0]}"
    if below[:2] == ["info", "attributes"]:
        return ".git/info/attributes"
    if below[0] in GIT_NESTED:
        steering = next((part for part in below[1:] if part in GIT_STEERING_NAMES), None)
        return steering and f".git/{below[0]}/…/{steering}"
    return None


def is_moved_as_a_whole(path: str) -> bool:
    """Whether a directory must not come to stand at this path or leave it in one piece, whatever is inside it: a moved
    directory brings its contents along."""
    parts = [normalize_name(part) for part in path.split("/") if part]
    if parts[-1:] == [".github"]:
        return True
    return any(
        part == ".git" and parts[at + 1 : at + 2] and parts[at + 1] in GIT_NESTED for at, part in enumerate(parts)
    )


def secret_places(home: str) -> list[str]:
    """Where this home, and the system, keep what no boxed process is to see."""
    return [*(os.path.join(home, name) for name in HOME_SECRETS), *SYSTEM_SECRETS]
