"""Paths and what must become of reading and writing them. Data only: `test_protection.py` reads it.

Each row: the path as a model would give it, the verdict on reading it, the verdict on writing it, where reading and
writing are allowed by rule.
"""

FREE = ("allow", "allow")
GUARDED = ("allow", "ask")
SECRET = ("ask", "ask")
OUTSIDE = ("ask", "deny")

PATHS = [
    *((path, *FREE) for path in ("a", "src/a.py", "./src/a.py", "src/../README.md", "new/deep/file.txt", "src", ".")),
    *(
        (path, *FREE)
        for path in ("a b.txt", "~", "~/x", "$HOME/x", "-rf", "env", "environment.py", "git/config", ".gitignore")
    ),
    *((path, *FREE) for path in (".github/CODEOWNERS", "x.env", "src/my.env.py", "profile", "gitattributes")),
    *((path, *GUARDED) for path in (".git", ".git/config", ".git/hooks/pre-commit", "sub/.git/config", ".GIT/config")),
    *(
        (path, *FREE)
        for path in (
            ".vscode/settings.json",
            ".github/workflows/ci.yml",
            "a/.gitattributes",
            "AGENTS.md",
            "src/.claude/x",
            ".mcp.json",
            ".npmrc",
            ".husky/x",
        )
    ),
    *((path, *GUARDED) for path in ("./.git/config", "src/../.git/config")),
    *((path, *GUARDED) for path in (".ollm/config.yaml", ".ollm/commands/x.md", ".OLLM/config.yaml")),
    *(
        (path, *GUARDED)
        for path in (".bashrc", ".zshrc", ".profile", ".bash_profile", ".zshenv", ".inputrc", ".BASHRC")
    ),
    *((path, *FREE) for path in (".env.example", ".env.sample", ".env.template", "src/.env.example")),
    *((path, "ask", "allow") for path in (".env.local", ".ENV", ".Env.Local", ".envrc", "src/.env", ".env.", ".env ")),
    *((path, *SECRET) for path in (".env", "./.env", "src/../.env")),
    *(
        (path, *OUTSIDE)
        for path in ("/etc/passwd", "..", "../secret", "../../etc/passwd", "src/../../secret", "/", "/tmp/x")
    ),
    *((path, *OUTSIDE) for path in ("src/link-out", "src/dir-out/passwd", "out/passwd", "out", "src/dir-out/new")),
    *(
        (path, *OUTSIDE)
        for path in ("../workspace2/a", "../workspace-x", "/proc/self/environ", "./../secret", "a/../../secret")
    ),
]
