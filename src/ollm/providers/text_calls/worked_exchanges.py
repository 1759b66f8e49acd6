"""The exchanges a model that writes blocks is shown before its own: very small ones do what they see done."""

from __future__ import annotations

import re

SHOWN = r"""
>>> user
Which file uses LIMIT?

Files here: app.py, conf.py
>>> assistant
```bash
grep -rn LIMIT .
```
>>> user
./conf.py:2:LIMIT = 12
[exit code 0]
>>> assistant
conf.py uses LIMIT.
>>> user
Rename load to fetch in a.py and b.py.

Files here: a.py, b.py, notes.md, old.txt
>>> assistant
```bash
sed -i 's/\bload\b/fetch/g' a.py b.py
```
>>> user
[no output]
[exit code 0]
Changed lines of a.py:
-def load(x):
+def fetch(x):
Changed lines of b.py:
-print(load(1))
+print(fetch(1))
>>> assistant
load is fetch now in a.py and b.py.
>>> user
Move notes.md into docs and delete old.txt.

Files here: a.py, b.py, notes.md, old.txt
>>> assistant
```bash
mkdir -p docs && mv notes.md docs/ && rm old.txt
```
>>> user
[no output]
[exit code 0]
Deleted notes.md.
Deleted old.txt.
Created docs/notes.md (4 lines).
>>> assistant
notes.md is in docs, and old.txt is deleted.
>>> user
How many users in users.csv are from Rome? Write the number into rome.txt.

Files here: app.py, users.csv

users.csv is long (840 lines). It begins:
```
name,city,age
Ann,Paris,31
```
Columns: $1 name, $2 city, $3 age
>>> assistant
```bash
awk -F, 'NR > 1 && $2 == "Rome"' users.csv | wc -l > rome.txt; cat rome.txt
```
>>> user
23
[exit code 0]
Created rome.txt (1 line).
>>> assistant
23 users are from Rome; the number is in rome.txt.
>>> user
python check.py fails. Fix half.py.

Files here: check.py, half.py

half.py:
```
def half(n):
    return n * 2
```
>>> assistant
```bash
python check.py
```
>>> user
AssertionError: half(4) is 8
[exit code 1]
>>> assistant
half.py
```
def half(n):
    return n / 2
```
>>> user
Edited half.py: 1 edit made.

Changed lines of half.py:
-    return n * 2
+    return n / 2
>>> assistant
```bash
python check.py
```
>>> user
ok
[exit code 0]
>>> assistant
half in half.py divides by 2 now, and check.py passes.
>>> user
Change LIMIT in conf.py to 20.

Files here: app.py, conf.py

conf.py:
```
DEBUG = False
NAME = "x"
LIMIT = 12
```
>>> assistant
conf.py
```
DEBUG = False
NAME = "x"
LIMIT = 20
```
>>> user
Replaced conf.py: 3 lines, 36 bytes.

Changed lines of conf.py:
-LIMIT = 12
+LIMIT = 20
>>> assistant
LIMIT in conf.py is now 20.
>>> user
Let area in shapes.py return 0 for a negative size, run python app.py and write its output into out.txt.

Files here: app.py, shapes.py

shapes.py is long (210 lines). Parts of it:
```
def area(size):
    return size * size
```
>>> assistant
shapes.py
```
def area(size):
    if size < 0:
        return 0
    return size * size
```
>>> user
Edited shapes.py: 1 edit made.

Changed lines of shapes.py:
+    if size < 0:
+        return 0
>>> assistant
```bash
python app.py > out.txt; cat out.txt
```
>>> user
area 16
[exit code 0]
Created out.txt (1 line).
>>> assistant
area in shapes.py returns 0 for a negative size now, and out.txt holds the output of app.py: area 16.
"""
READING = """
>>> user
Which file uses LIMIT?

Files here: app.py, conf.py
>>> assistant
```bash
grep -rn LIMIT .
```
>>> user
./conf.py:2:LIMIT = 12
>>> assistant
conf.py uses LIMIT.
"""


def parse_exchanges(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of role and content."""
    parts = re.split(r"^>>> (user|assistant)\n", text, flags=re.MULTILINE)[1:]
    return tuple((role, content.rstrip("\n")) for role, content in zip(parts[::2], parts[1::2], strict=True))


EXCHANGES = parse_exchanges(SHOWN)
READING_EXCHANGES = parse_exchanges(READING)
