"""Comparison of file names, and lists of names that several packages use. Standard library only."""

from __future__ import annotations

from functools import lru_cache

from ollm.domain.lazy import compile_late

_BASH = frozenset({".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"})
_ZSH = frozenset({".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"})
_OTHER_SHELLS = frozenset(
    {".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", "config.fish", ".pam_environment"}
)
_X_SESSION = frozenset({".xprofile", ".xinitrc", ".xsession", ".xsessionrc"})
SHELL_START_UP_FILES = _BASH | _ZSH | _OTHER_SHELLS | _X_SESSION
EXAMPLE_ENDINGS = (".example", ".sample", ".template")
_INVISIBLE = compile_late("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """A file's name as the most forgiving file system would compare it."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    import unicodedata

    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", name))
    return visible.casefold().rstrip(". ") or name


def is_environment_file(name: str) -> bool:
    """Return True for `.env*` except examples: recursive reads skip such files and report how many."""
    plain = normalize_name(name)
    return plain.startswith(".env") and not plain.endswith(EXAMPLE_ENDINGS)
