"""Programs that write: a protected or outside target locks, another one asks."""

import pytest

from tests.policy.conftest import Place
from tests.policy.verdict_table import Row, check_row, rows

LINES = r"""
ask: cp a b
lock: cp a .git/config
lock: cp a /etc
lock: cp -t .git a
lock: cp .env b
lock: cp -r x .ollm
ask: mv a b
lock: mv .git x
lock: mv a .vscode
lock: ln -s a .git/hooks
lock: install a .git/x
lock: rsync a .git/
ask: rsync -e x a b
ask: scp -S x a b:
ask: sftp x
lock: tee .git/config
ask: tee x
lock: rm -r .
lock: rm -rf .git
ask: rm a
lock: touch .env
ask: mkdir x
lock: mkdir .ollm
ask: chmod 1 a
lock: chmod -R 1 .
lock: chmod 600 .git/config
lock: dd of=.git/config
lock: dd if=.env
ask: dd if=a of=b
lock: patch -o .git/x a
lock: curl -o .git/x y
ask: curl x
lock: wget -O .env x
lock: tar -C .git -xf a
lock: tar -f .git/x -c a
ask: tar -xf a
lock: unzip a -d .git
lock: zip .git/x a
lock: openssl rand -out .git/x 5
lock: openssl rand -out ../x 5
ask: openssl rand -out x 5
lock: truncate -s 0 .git/index
lock: shred .git/index
"""


@pytest.mark.parametrize("row", rows(LINES), ids=lambda row: row.line)
def test_a_protected_target_locks(place: Place, row: Row) -> None:
    check_row(place, row)
