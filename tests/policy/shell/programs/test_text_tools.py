"""Programs that show files: their files are read, and the options that do more ask."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
allow: cat -n a
lock: cat ~/.ssh/id
lock: cat a .env
allow: tac a
allow: nl -b a a
allow: rev a
allow: paste -d , a b
allow: strings -n 4 a
ask: strings @a
lock: strings @/etc/passwd
allow: zcat a
allow: readlink -f a
allow: realpath --relative-to=src a
lock: realpath --relative-to=/etc a
allow: cmp a b
allow: cksum a
ask: cksum -c a
allow: sha256sum a
ask: md5sum --check a
allow: sum a
allow: ls -la src
lock: ls /etc
lock: ls -L src
allow: ls -l src
allow: head -n 5 a
allow: head -5 a
allow: tail -n +3 a
allow: wc -l a
ask: wc --files0-from=a
allow: sort -u a
lock: sort -o .git/x a
ask: sort -o new a
ask: sort --compress-program=x a
lock: sort --random-source=/etc/passwd a
allow: uniq -c a
ask: uniq a new
lock: uniq a .git/x
allow: cut -d: -f1 a
allow: fold -w 9 a
allow: fmt a
allow: expand a
allow: unexpand -a a
allow: column -t a
allow: join a b
allow: comm -12 a b
allow: diff a b
ask: diff -l a b
lock: diff --from-file=/etc/passwd a
lock: diff -r src .
allow: stat a
allow: file a
ask: file -C a
ask: file -f a
lock: file -f /etc/x
allow: du -sh .
lock: du -L src
lock: du -X /etc/x .
ask: du --files0-from=a
allow: df -h
ask: df --sync
allow: tree -L 2
ask: tree -o new
lock: tree -o .git/x
lock: tree -l
allow: od -c a
allow: hexdump -C a
lock: hexdump -f /etc/x a
allow: xxd a
allow: xxd -l 16 a
ask: xxd -r a
ask: xxd a new
allow: base64 a
ask: base64 -o new a
lock: base64 -o .git/x a
lock: xxd -c .env
lock: xxd -l 8 .env
allow: xxd -c 8 a
allow: xxd -s 0x10 -l 4 a
ask: xxd -r a
ask: xxd a b
allow: head -5 a
lock: head -5 .env
allow: tail -5 a
allow: fold -80 a
allow: fmt -60 a
allow: expand -4 a
allow: unexpand -4 a
allow: od -v a
allow: diff -3 a b
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_an_option_that_does_more_asks(place: Place, row: Row) -> None:
    check_row(place, row)
