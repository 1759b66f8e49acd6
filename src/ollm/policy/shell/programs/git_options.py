"""The long options of git commands that only read, by which they neither write nor run anything."""

from __future__ import annotations

from ollm.policy.shell.programs.record import split_names

GIT_LONG_OPTIONS = frozenset(
    split_names(
        "abbrev abbrev-commit abbrev-ref absolute-git-dir after after-context ahead-behind algorithm all all-match "
        "allow- always ancestry-path anchored and author author-date-order basic-regexp batch batch-all-objects "
        "batch-check before before-context binary bisect bool boundary branch branches break buffer cached candidates "
        "cc check cherry cherry-mark cherry-pick children color color-moved color-moved-ws color-words column "
        "combined combined-all-paths committer compact-summary contains context count create-reflog date date-order "
        "dd decorate decorate-refs decorate-refs-exclude deduplicate default delete deleted dense dereference diff- "
        "diff-filter diff-merges directory dirstat dirty dst-prefix email empty-directory encoding eol error-unmatch "
        "exact-match exclude exclude-existing exclude-first-parent-only exclude-standard exit-code expand-tabs "
        "extended-regexp files-with-matches files-without-match find- find-copies find-copies-harder first-parent "
        "fixed-strings flags follow fork-point format full- full-diff full-history full-index function-context get "
        "get-all get-regexp git-common-dir git-dir git-path glob global graph grep group hash head heading heads help "
        "histogram human-readable ignore-all-space ignore-blank-lines ignore-case ignore-cr-at-eol "
        "ignore-matching-lines ignore-missing ignore-rev ignore-space-at-eol ignore-space-change ignore-submodules "
        "ignored includes incremental independent index int inter-hunk-context invert-grep irreversible-delete "
        "is-ancestor is-bare-repository is-inside-git-dir is-inside-work-tree is-shallow- killed left-only left-right "
        "line-number line-porcelain line-prefix list local log-size long mailmap match max-count max-depth "
        "max-parents merge-base merged merges min-parents minimal modified name name- name-only name-status no-walk "
        "not notes null numbered numstat objects objects-edge octopus oneline only only-matching or others "
        "output-indicator-context output-indicator-new output-indicator-old parents patch path path-format patience "
        "perl-regexp pickaxe-all pickaxe-regex points-at porcelain prefix pretty quiet raw recurse-submodules "
        "regexp-ignore-case relative relative-date remerge-diff remotes renames repository reverse revs-only "
        "right-only root score-debug short shortstat show- show-cdup show-current show-email show-function show-name "
        "show-number show-origin show-prefix show-pulls show-scope show-stats show-toplevel simplify-by-decoration "
        "simplify-merges since skip sort source sparse src-prefix stage staged stat stdin submodule summary "
        "superproject-working-tree symbolic symbolic-full-name system tags text topo-order tree type unified "
        "unknown-type unmerged unordered until untracked untracked-files use-mailmap verbose verify version "
        "walk-reflogs width word-diff word-diff-regex word-regexp worktree "
    )
)
