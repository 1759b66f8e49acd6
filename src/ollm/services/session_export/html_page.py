"""The head of an exported page: its style for light and dark screens, and a policy that lets it load nothing."""

from __future__ import annotations

PAGE_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --quiet: #656d76; --line: #d0d7de; --ground: #f6f8fa;
  --user: #1a7f37; --model: #0969da; --bad: #cf222e; --add: #dafbe1; --del: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --quiet: #8d96a0; --line: #30363d;
  --ground: #161b22; --user: #3fb950; --model: #58a6ff; --bad: #f85149; --add: #12361f; --del: #4a1a1d; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--paper); display: flex; flex-direction: column; }
header { order: 0; } nav { order: 1; } main { order: 2; min-width: 0; }
h1 { font-size: 1.5rem; margin: 0; } nav h2, section > h2 { font-size: .95rem; margin: 0; }
time, .meta { color: var(--quiet); font-size: .85rem; font-weight: normal; }
nav { border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; max-height: 40vh; overflow: auto; }
nav ol { margin: .3rem 0 0; padding-left: 1.6rem; } a { color: var(--model); }
section { border-left: 4px solid var(--line); padding-left: 1rem; margin: 1.4rem 0; }
section.user { border-color: var(--user); } section.assistant { border-color: var(--model); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; background: var(--ground); border-radius: 6px;
  padding: .6rem .8rem; font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, monospace; }
pre.said { font: inherit; background: none; padding: 0; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, monospace; background: var(--ground); border-radius: 4px;
  padding: .1em .3em; } pre code { padding: 0; font: inherit; }
.text > :first-child { margin-top: .3rem; } .text h1, .text h2, .text h3 { font-size: 1.1rem; }
table { border-collapse: collapse; } th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; }
blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); color: var(--quiet); }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--quiet); }
details.call summary b { color: var(--ink); font-weight: 600; } details.failed summary { color: var(--bad); }
.diff { padding: .4rem 0; } .diff span { display: block; padding: 0 .8rem; } .diff .add { background: var(--add); }
.diff .del { background: var(--del); } .diff .hunk, .diff .head { color: var(--quiet); }
img { max-width: 100%; }
@media print { nav { max-height: none; } }
</style>
</head>
<body>
"""
