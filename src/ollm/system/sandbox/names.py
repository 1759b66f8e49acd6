"""Which names a box holds back: files that steer tools and agents, and the places where a home keeps its secrets."""

from __future__ import annotations

import os
from functools import cache

from ollm.system.file_names import SHELL_START_UP_FILES, normalize_name

STEERING_NAMES = (
    frozenset(
        # agents
        ".ollm .claude .cursor .codex .gemini .windsurf .continue .roo .cline .clinerules .kiro .aider.conf.yml "
        ".mcp.json mcp.json .cursorrules .windsurfrules .roorules .goosehints agents.md agent.md claude.md "
        "claude.local.md gemini.md codex.md .opencode opencode.json .qwen qwen.md .amazonq .kilocode .junie .trae "
        ".augment .crush .crush.json crush.json crush.md warp.md .rules "
        # editors and what they run by themselves
        ".vscode .idea .zed .fleet .vs .nova .devcontainer .devcontainer.json .envrc .direnv .mise.toml mise.toml "
        ".vimrc .exrc .nvimrc .nvim.lua .dir-locals.el .gdbinit .lldbinit "
        # package managers that run a program, or send a token, where such a file says so
        ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs "
        # git and hooks
        ".gitmodules .gitattributes .lfsconfig .hg .jj .husky .githooks .overcommit.yml .pre-commit-config.yaml "
        ".lefthook.yml lefthook.yml "
        # continuous integration
        ".gitlab-ci.yml .circleci .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite .tekton .forgejo "
        ".gitea jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .appveyor.yml "
        "cloudbuild.yaml".split()
    )
    | SHELL_START_UP_FILES
)
GITHUB_STEERING_NAMES = frozenset(
    {"workflows", "actions", "copilot-instructions.md", "instructions", "agents", "chatmodes"}
)
GIT_STEERING_NAMES = frozenset({"config", "config.worktree", "hooks", "commondir", "gitdir"})
GIT_NESTED = frozenset({"modules", "worktrees"})
GIT_MOVED_AS_A_WHOLE = GIT_NESTED | {"info"}

HOME_SECRETS = (
    ".ssh .env .aws .azure .gnupg .docker .kube .netrc _netrc .authinfo .authinfo.gpg .ollm .git-credentials .npmrc "
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
    "Library/Keychains "
    # tokens of model hubs, clouds, registries and mail, and what chats and wallets keep
    ".huggingface .cache/huggingface/token .cache/huggingface/stored_tokens .kaggle .config/kaggle .config/openai "
    ".databrickscfg .snowflake .pulumi/credentials.json .config/pypoetry/auth.toml .composer/auth.json .bundle/config "
    ".config/composer/auth.json .sentryclirc .ngrok2 .config/ngrok .config/stripe .config/configstore .wrangler "
    ".config/.wrangler .local/share/com.vercel.cli .config/netlify .config/helm/registry .config/heroku .tsh .step "
    ".minikube .subversion/auth .msmtprc .config/msmtp .fetchmailrc .getmail .mbsyncrc .offlineimaprc .muttrc .mutt "
    ".config/neomutt .irssi .purple .weechat .lastpass .local/share/lpass .config/Slack .config/discord "
    ".local/share/TelegramDesktop .filezilla .config/filezilla .ethereum .config/solana .config/gh-copilot "
    ".config/Code/User/globalStorage snap/firefox snap/chromium snap/thunderbird"
).split()
_FIRST_PARTS = {name: name.partition("/")[0] for name in HOME_SECRETS}
HOME_KEPT = (
    ".gitconfig .config/git .terminfo .local/bin .local/lib .pyenv .rbenv .nvm .asdf .local/share/mise .cargo/bin "
    ".rustup .volta .bun .deno .sdkman .nix-profile .nix-defexpr .local/state/nix"
).split()
SYSTEM_SECRETS = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers.d",
    "/etc/ssl/private",
)
HOMES, ROOT_HOME = "/home", "/root"


def find_steering_name(path: str) -> str | None:
    """The part of an absolute, resolved path that makes it one that steers tools or agents, or None."""
    parts = [normalize_name(part) for part in path.split("/") if part]
    for position, part in enumerate(parts):
        if part in STEERING_NAMES:
            return part
        if part == ".github" and parts[position + 1 : position + 2] and parts[position + 1] in GITHUB_STEERING_NAMES:
            return f"{part}/{parts[position + 1]}"
        if part == ".git" and (found := _find_git_steering_name(parts[position + 1 :])) is not None:
            return found
    return None


def is_near_steering_name(directory: str) -> bool:
    """Whether what a file is called does not tell alone if it steers, because of the directory it is in."""
    parts = [normalize_name(part) for part in directory.split("/") if part]
    return any(part in STEERING_NAMES or part in (".git", ".github") for part in parts)


def is_plain_name(name: str) -> bool:
    """Whether a file of this name steers nothing in a directory that is not near anything that does."""
    plain = normalize_name(name)
    return plain not in STEERING_NAMES and plain != ".git"


def _find_git_steering_name(below: list[str]) -> str | None:
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
    """Whether a directory must not come to be at this path or leave it in one piece, whatever is inside it: a moved
    directory brings its contents along."""
    parts = [normalize_name(part) for part in path.split("/") if part]
    if parts[-1:] == [".github"]:
        return True
    return any(
        part == ".git" and parts[at + 1 : at + 2] and parts[at + 1] in GIT_MOVED_AS_A_WHOLE
        for at, part in enumerate(parts)
    )


def list_covered_places(home: str) -> list[str]:
    """What a reading box does not show at all: the homes of all people, and where programs keep temporary files."""
    homes = [place for place in (home, find_account_home()) if place != "/"]
    return list(dict.fromkeys([*homes, *list_other_homes(home), "/tmp", "/var/tmp"]))


def list_kept_places(home: str) -> list[str]:
    """What it does show of the homes: programs, and how git is set up."""
    homes = dict.fromkeys((home, find_account_home()))
    return [path for one in homes for name in HOME_KEPT if os.path.exists(path := os.path.join(one, name))]


@cache
def list_other_homes(home: str) -> tuple[str, ...]:
    """The homes of other people that this user can enter; root can enter all."""
    own = (home, find_account_home())
    try:
        found = [os.path.join(HOMES, name) for name in sorted(os.listdir(HOMES))]
    except OSError:
        found = []
    places = [os.path.realpath(place) for place in (ROOT_HOME, *found) if os.access(place, os.X_OK)]
    return tuple(
        place
        for place in dict.fromkeys(places)
        if os.path.isdir(place) and not any(one == place or one.startswith(f"{place}/") for one in (*own, "/tmp"))
    )


@cache
def find_account_home() -> str:
    """The home of the account, whatever HOME says."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return "/"


def list_secret_places(home: str) -> list[str]:
    """Where this home, and the system, keep what no boxed process is to see, whether it is there or not."""
    homes = dict.fromkeys((home, find_account_home()))
    own = [os.path.join(one, name) for one in homes for name in HOME_SECRETS]
    others = [place for one in list_other_homes(home) for place in _find_secrets(one)]
    return [*own, *others, *SYSTEM_SECRETS]


def list_present_secrets(home: str) -> list[str]:
    """Those of them that may be there: a look at the names in each home instead of one at every place."""
    homes = dict.fromkeys((home, find_account_home(), *list_other_homes(home)))
    return [*(place for one in homes for place in _find_secrets(one)), *SYSTEM_SECRETS]


def _find_secrets(home: str) -> list[str]:
    """Not remembered: in one box these are to be seen, in another not."""
    try:
        present = set(os.listdir(home))
    except FileNotFoundError:
        return []
    except OSError:
        return [os.path.join(home, name) for name in HOME_SECRETS]
    return [os.path.join(home, name) for name in HOME_SECRETS if _FIRST_PARTS[name] in present]
