"""Git commands that write a repository, and the options with which they start no program and write no other place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from ollm.policy.shell.words import ShellWord
from ollm.system.sandbox.git_settings import is_harmless_setting

# `x` is a flag, `x=` takes a value, `x?` may have one joined to it, `x*` takes a text. `--no-NAME` goes with `NAME`.
_COMMON = "q quiet v verbose n dry-run f force progress color? abbrev?"
_SELECT = "pathspec-from-file= pathspec-file-nul recurse-submodules? p patch U= unified= i interactive"
_MERGE = "s= strategy= X= strategy-option= stat n no-stat log? ff ff-only squash edit e signoff verify autostash"
_MERGE += (
    " allow-unrelated-histories rerere-autoupdate cleanup= abort quit continue skip into-name= m* message* F* file*"
)
_COMMIT = (
    "a all m* message* F* file* amend allow-empty allow-empty-message s signoff no-edit e edit author* date* C= c="
)
_COMMIT += (
    " reuse-message= reedit-message= fixup= squash= reset-author trailer* n verify cleanup= only o include i short"
)
_COMMIT += " branch porcelain long z null u? untracked-files? no-post-rewrite status template= t= " + _SELECT
_FETCH = "all a append atomic depth= deepen= shallow-since= shallow-exclude= unshallow update-shallow k keep p prune P"
_FETCH += " prune-tags t tags n multiple j= jobs= set-upstream o= server-option= 4 ipv4 6 ipv6 u update-head-ok refmap="
_FETCH += " negotiation-tip= filter= refetch recurse-submodules? porcelain write-fetch-head show-forced-updates auto-gc"
_LIST = "l list a r remotes merged? no-merged? contains? no-contains? points-at= sort= format= i ignore-case column?"
_REPACK = (
    "a A d f F l n q b k K i g= geometric= window= window-memory= depth= threads= max-pack-size= write-bitmap-index"
)
LINE_VERBS = {
    "add": "A all u update e edit N intent-to-add refresh ignore-errors ignore-missing ignore-removal renormalize "
    "chmod= sparse warn-embedded-repo " + _SELECT,
    "commit": _COMMIT,
    "switch": "c= C= create= force-create= d detach guess t? track? orphan= m merge conflict= discard-changes "
    "ignore-other-worktrees overwrite-ignore " + _SELECT,
    "checkout": "b= B= l d detach guess t? track? orphan= m merge conflict= ours theirs 2 3 overlay "
    "ignore-other-worktrees overwrite-ignore ignore-skip-worktree-bits " + _SELECT,
    "restore": "s= source= S staged W worktree ours theirs 2 3 m merge conflict= overlay ignore-unmerged "
    "ignore-skip-worktree-bits " + _SELECT,
    "reset": "soft mixed hard merge keep N intent-to-add refresh " + _SELECT,
    "branch": "c C copy d D delete m M move u= set-upstream-to= unset-upstream t? track? edit-description "
    "create-reflog show-current vv " + _LIST,
    "tag": "a annotate m* message* F* file* d delete cleanup= e edit create-reflog trailer* " + _LIST,
    "stash": "u include-untracked a all k keep-index S staged m* message* index only-untracked stat " + _SELECT,
    "merge": _MERGE,
    "rebase": "i interactive onto= r? rebase-merges? keep-base root autosquash fork-point reapply-cherry-picks k "
    "keep-empty empty= update-refs committer-date-is-author-date reset-author-date ignore-date ignore-whitespace "
    "whitespace= C= show-current-patch m merge apply edit-todo reschedule-failed-exec " + _MERGE,
    "cherry-pick": "x r e edit cleanup= m= mainline= n no-commit s= signoff ff allow-empty allow-empty-message empty= "
    "keep-redundant-commits strategy= X= strategy-option= rerere-autoupdate abort quit continue skip",
    "revert": "e edit cleanup= m= mainline= n no-commit s signoff reference strategy= X= strategy-option= "
    "rerere-autoupdate abort quit continue skip",
    "rm": "r cached ignore-unmatch sparse pathspec-from-file= pathspec-file-nul",
    "mv": "k sparse",
    "am": "s signoff k keep keep-non-patch keep-cr c scissors message-id 3 3way ignore-space-change ignore-whitespace "
    "whitespace= C= p= exclude= include= reject patch-format= r resolved continue skip abort quit show-current-patch? "
    "allow-empty empty= committer-date-is-author-date ignore-date quoted-cr= rerere-autoupdate",
    "notes": "ref= m* message* F* file* C= c= allow-empty stdin s= strategy= commit abort for-rewrite= separator?",
    "worktree": "b= B= d detach checkout lock reason* orphan guess-remote track relative-paths porcelain z expire=",
    "fetch": _FETCH,
    "pull": _FETCH + " r? rebase? " + _MERGE,
    "push": "all branches mirror tags follow-tags atomic d delete prune porcelain u set-upstream thin "
    "force-with-lease? force-if-includes o= push-option= verify 4 ipv4 6 ipv6 recurse-submodules? repo=",
    "remote": "t= m= f master= tags mirror? push add delete all p prune",
    "gc": "aggressive auto prune? keep-largest-pack cruft",
    "bisect": "term-good= term-bad= term-old= term-new= no-checkout first-parent",
    "submodule": "b= branch= name= reference= depth= init recursive remote merge rebase checkout recommend-shallow "
    "single-branch j= jobs= filter= cached files all N no-fetch d default",
    "lfs": "all include= I= exclude= X= json l long s size lockable not-lockable filename verbose recent prune "
    "verify-remote object-id stdin above= everything no-rewrite yes",
    "sparse-checkout": "cone sparse-index stdin skip-checks z",
    "apply": "index cached 3way 3 R reverse p= C= reject unidiff-zero whitespace= ignore-whitespace directory= "
    "exclude= include= recount N intent-to-add allow-empty stat numstat summary check allow-binary-replacement binary "
    "z",
    "update-index": "add remove refresh ignore-missing really-refresh ignore-submodules unmerged cacheinfo index-info "
    "chmod= assume-unchanged skip-worktree stdin z force-remove again g unresolve info-only replace split-index "
    "untracked-cache index-version=",
    "update-ref": "m* d stdin z create-reflog deref",
    "symbolic-ref": "m* d delete short recurse",
    "reflog": "all expire= expire-unreachable= updateref rewrite stale-fix single-worktree date= oneline",
    "repack": _REPACK + " keep-unreachable unpack-unreachable= pack-kept-objects keep-pack= cruft",
    "prune": "expire=",
    "pack-refs": "all prune include= exclude= auto",
    "maintenance": "task= auto schedule=",
    "rerere": "rerere-autoupdate",
    "config": "local replace-all add unset unset-all type= bool int bool-or-int fixed-value append all value= get-all",
    "init": "b= initial-branch=",
    "commit-tree": "p= m* F*",
    "write-tree": "missing-ok",
    "read-tree": "m reset u i aggressive trivial empty prefix= recurse-submodules sparse-checkout",
    "hash-object": "w t= stdin path= filters literally",
    "replace": "d delete l list g graft edit format=",
}
# Actions of a verb that start a program that the line names, install hooks, or write elsewhere
_FORBIDDEN_ACTIONS = {
    "bisect": {"run", "visualize", "view"},
    "submodule": {"foreach"},
    "lfs": {"install", "update", "uninstall", "env", "smudge", "clean", "filter-process", "dedup", "completion"},
    "maintenance": {"start", "stop", "register", "unregister"},
    "notes": {"edit"},
    "stash": {"create", "store"},
}
_REQUIRED = {"apply": {"--index", "--cached"}, "hash-object": {"-w"}, "init": set[str]()}
# Verbs whose options all are harmless, so that a name that a pattern matches cannot be one that does harm
_GLOBBING = frozenset({"add", "rm", "mv", "restore", "checkout", "commit", "reset", "stash"})
OptionKind = Literal["flag", "value", "optional", "text"]
_MARKS: dict[str, OptionKind] = {"=": "value", "?": "optional", "*": "text"}
GLOBAL_FLAGS = frozenset(
    [
        "--no-pager",
        "-P",
        "--no-optional-locks",
        "--literal-pathspecs",
        "--no-replace-objects",
        "--icase-pathspecs",
        "--glob-pathspecs",
        "--noglob-pathspecs",
        "--no-advice",
        "--no-lazy-fetch",
    ]
)


class GitVerb(NamedTuple):
    """A git command that writes a repository: its verb, and the folder that `-C` names."""

    name: str
    folder: str


@cache
def _list_options(verb: str) -> dict[str, OptionKind]:
    words = f"{LINE_VERBS[verb]} {_COMMON}".split()
    return {word.rstrip("=?*"): _MARKS.get(word[-1], "flag") for word in reversed(words)}


def read_git_verb(words: Sequence[ShellWord]) -> GitVerb | None:
    """Return the verb of a git command that may write the repository in a sandbox, or None. Every word counts: an
    option that is not listed, or might be one at run time, is not accepted."""
    folder, index = "", 1
    while index < len(words) and words[index].text.startswith("-"):
        option = words[index].text
        value = words[index + 1] if index + 1 < len(words) else None
        if option in ("-C", "-c"):
            if value is None or not value.static:
                return None
            if option == "-C":
                folder = value.text if value.text.startswith("/") or not folder else f"{folder}/{value.text}"
            elif not is_harmless_setting(*_split_setting(value.text)):
                return None
            index += 2
        elif option in GLOBAL_FLAGS:
            index += 1
        else:
            return None
    verb = words[index].text if index < len(words) and words[index].static else ""
    if verb not in LINE_VERBS:
        return None
    operands = _read_operands(verb, words[index + 1 :])
    if operands is None or not _may_act(verb, operands, {word.text for word in words[index + 1 :]}):
        return None
    return GitVerb(verb, folder)


def _split_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "true"


def _may_act(verb: str, operands: list[str], words: set[str]) -> bool:
    required = _REQUIRED.get(verb)
    if required and required.isdisjoint(words):
        return False
    if operands and operands[0] in _FORBIDDEN_ACTIONS.get(verb, ()):
        return False
    if verb == "init":
        return all(operand == "." for operand in operands)
    if verb == "config":
        return _sets_harmless_key(operands, words)
    return not any("::" in operand for operand in operands if verb in ("fetch", "pull", "push", "remote", "submodule"))


def _sets_harmless_key(operands: list[str], words: set[str]) -> bool:
    """Return True for `git config KEY VALUE` and `--unset KEY` of a key that names no program and no path."""
    if operands[:1] in (["set"], ["unset"]):
        operands = operands[1:] if operands[0] == "set" else [*operands[1:2], ""]
    elif words & {"--unset", "--unset-all"}:
        operands = [*operands[:1], ""]
    return len(operands) == 2 and is_harmless_setting(operands[0], operands[1] or "false")


def _read_operands(verb: str, words: Sequence[ShellWord]) -> list[str] | None:
    """Return the operands of a command, or None if one of its options is not accepted."""
    known, operands, waiting, ended = _list_options(verb), list[str](), iter(words), False
    for word in waiting:
        text = word.text
        if ended or not word.might_be_option:
            certain = ended or verb in _GLOBBING or (word.known[:1] and word.known[0] not in "*?[")
            if (word.glob or not word.static) and (not certain or word.several):
                return None
            operands.append(text)
        elif word.static and text == "--":
            ended = True
        elif text == "-" or (word.static and text[1:].isdecimal() and verb in ("stash", "reflog", "notes")):
            operands.append(text)
        elif not _take_option(word, known, waiting):
            return None
    return operands


def _take_option(word: ShellWord, known: dict[str, OptionKind], following: Iterator[ShellWord]) -> bool:
    """Check one word of options, and take its value from the following word if it has one."""
    text = word.known
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        kind = known.get(name) or known.get(name.removeprefix("no-"))
        if kind is None or len(name) < 2 or (not word.static and not (equals and kind == "text" and not word.several)):
            return False
        return bool(equals) or kind not in ("value", "text") or _is_value(next(following, None), kind)
    for position, letter in enumerate(text[1:], 2):
        kind = known.get(letter)
        if kind is None:
            return letter.isdecimal() and position > 2
        if kind != "flag":
            joined = text[position:] or not word.static
            if joined or kind == "optional":
                return word.static or (kind == "text" and not word.several)
            return _is_value(next(following, None), kind)
    return word.static and len(text) > 1


def _is_value(word: ShellWord | None, kind: OptionKind) -> bool:
    """Return True for the value of an option: static, or a text in quotes whatever it says."""
    return word is not None and (word.static or (kind == "text" and word.quoted and not word.several))
