"""What is assigned to a name that says secret, in every way people assign."""

import pytest

from ollm.services.redaction import MARK
from ollm.services.redaction.assignments import redact_assignments
from tests.deadline import limit_seconds


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("password: |\n  hunter2\nuser: bob", f"password: |\n  {MARK}\nuser: bob"),
        ("password: |\n  hunter2", f"password: |\n  {MARK}"),
        ("  token: >-\n    abc\n\n    def \n  user: bob", f"  token: >-\n    {MARK} \n  user: bob"),
        (
            "a:\n- password: |2+ # old\r\n    one\r\n    two\r\n  user: b",
            f"a:\n- password: |2+ # old\r\n    {MARK}\r\n  user: b",
        ),
        ('"password": |\n  hunter2\n', f'"password": |\n  {MARK}\n'),
        ("+password: |\n+  hunter2\n+user: bob", f"+password: |\n+  {MARK}\n+user: bob"),
        ("password: |\n  one\n\ttwo\n three", f"password: |\n  {MARK}"),
        ("password: |\n\n\n  one\n\n\nuser: b", f"password: |\n\n\n  {MARK}\n\n\nuser: b"),
        ("password: |\nuser: bob", "password: |\nuser: bob"),
        ("  password: |\n  user: bob", "  password: |\n  user: bob"),
        ("password: |\n  ${PASSWORD}\n", "password: |\n  ${PASSWORD}\n"),
        ("password: |\n  is sent by mail\n", "password: |\n  is sent by mail\n"),
        ("credentials: |\n  {\n    'a': 1\n  }\nb: 2", f"credentials: |\n  {MARK}\nb: 2"),
        ("cookie: |\n  hunter2x\n", "cookie: |\n  hunter2x\n"),
        ("max_tokens: |\n  hunter2x\n", "max_tokens: |\n  hunter2x\n"),
        (f"password: |\n  {MARK}\n", f"password: |\n  {MARK}\n"),
    ],
)
def test_the_lines_of_a_block_of_yaml_are_hidden_as_far_as_it_goes(text: str, clean: str) -> None:
    assert redact_assignments(text) == clean


def test_a_block_of_many_lines_is_read_in_time() -> None:
    blank = " " * 200 + "\n"

    with limit_seconds(20):
        assert redact_assignments("password: |\n" + blank * 1_000 + "end") == "password: |\n" + blank * 1_000 + "end"
        assert redact_assignments("password: |\n" * 5_000) == "password: |\n" * 5_000
        assert redact_assignments("password: |\n" + "  x1\n" * 10_000) == f"password: |\n  {MARK}\n"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", ""),
        ("nothing here", "nothing here"),
        ("--session 478dd06a-48ea-4091-b324-adf0a3cc0fa6", "--session 478dd06a-48ea-4091-b324-adf0a3cc0fa6"),
        ("--session 9fXq2LmZ7tRw4KpB", f"--session {MARK}"),
        ("--token 478dd06a-48ea-4091-b324-adf0a3cc0fa6", f"--token {MARK}"),
        ("session=478dd06a-48ea-4091-b324-adf0a3cc0fa6", f"session={MARK}"),
        ("password=hunter2", f"password={MARK}"),
        ("a password=hunter2 b token=abc123 c", f"a password={MARK} b token={MARK} c"),
        ('{"password": "a b", "user": "bob"}', f'{{"password": "{MARK}", "user": "bob"}}'),
        ('password="a\\"b" rest', f'password="{MARK}" rest'),
        ("password='unfinished", f"password='{MARK}"),
        ("token => 'abc1'", f"token => '{MARK}'"),
        ("token := 'abc1'", f"token := '{MARK}'"),
        ("token == 'abc1'", "token == 'abc1'"),
        ("token::abc1", "token::abc1"),
        ('os.environ["TOKEN"] = "x1y2"', f'os.environ["TOKEN"] = "{MARK}"'),
        ('api_key: str = "abc123"', f'api_key: str = "{MARK}"'),
        ("<password>pw here</password>", f"<password>{MARK}</password>"),
        ("<password></password>", "<password></password>"),
        ("--password hunter2 --verbose", f"--password {MARK} --verbose"),
        ("--token 'a b'", "--token 'a b'"),
        ("ENV DB_PASS hunter2", f"ENV DB_PASS {MARK}"),
        ("say password hunter2", "say password hunter2"),
        ("PASSWORD 'hunter2'", f"PASSWORD '{MARK}'"),
        ("PASSWORD ' hunter2'", "PASSWORD ' hunter2'"),
        ("the password is hunter2.", f"the password is {MARK}."),
        ("the password was hunter2!", f"the password was {MARK}!"),
        ("the password is wrong", "the password is wrong"),
        ("the password is a1", "the password is a1"),
        ("secret key: abcdef12", f"secret key: {MARK}"),
        ("sort key: abcdef12", "sort key: abcdef12"),
        ('input("Password: ")', 'input("Password: ")'),
        ("f(password=hunter2)", f"f(password={MARK})"),
        ("password=get(1)", "password=get(1)"),
        ("password=self.pw", "password=self.pw"),
        ("?password=self.pw", f"?password={MARK}"),
        ("API_KEY=self.pw", f"API_KEY={MARK}"),
        ("API_KEY=$OTHER", "API_KEY=$OTHER"),
        ("PWD=/home", "PWD=/home"),
        ("x token=abc123,next", f"x token={MARK},next"),
        ("  password: plain", f"  password: {MARK}"),
        ("define password: plain", "define password: plain"),
        ("x, password: plain", f"x, password: {MARK}"),
        ("say 'a' 'b' password: 'abc1x'", f"say 'a' 'b' password: '{MARK}'"),
        ("say 'a' 'b password: 'abc1x'", "say 'a' 'b password: 'abc1x'"),
        ("<password>self.pw</password>", f"<password>{MARK}</password>"),
        ("<token>none</token>", "<token>none</token>"),
        ('PASSWORD "h"', f'PASSWORD "{MARK}"'),
        ("token 'abc123'", "token 'abc123'"),
        ("ARG TOKEN abc123", f"ARG TOKEN {MARK}"),
        ("f(token=abc123).", f"f(token={MARK})."),
        ("x token=abc1!?", f"x token={MARK}!?"),
        ("token=...", "token=..."),
        ("the password is hunter2).", f"the password is {MARK})."),
        ("my api key: abcdef12", f"my api key: {MARK}"),
        ("password=[1]", "password=[1]"),
        ("url?token=abc.def&x=1", f"url?token={MARK}&x=1"),
        (f"x{' ' * 80}password: plain", f"x{' ' * 80}password: {MARK}"),
        (f"x{' ' * 79}password: plain", f"x{' ' * 79}password: plain"),
        (f"-{'x' * 62}_password hunter2", f"-{'x' * 62}_password {MARK}"),
        (f"-{'x' * 63}_password hunter2", f"-{'x' * 63}_password hunter2"),
        ("<password>hunter</password>", f"<password>{MARK}</password>"),
        ("password=ab,cd1&e", f"password={MARK}"),
        ("password: ab;cd1|e", f"password: {MARK}"),
        ("x password=ab,cd1", f"x password={MARK},cd1"),
        ("x password=get(1)", "x password=get(1)"),
        ("x password=items[0]", "x password=items[0]"),
        ("password=!!!!", f"password={MARK}"),
        ("password: two words", f"password: {MARK}"),
        ("  Password: correct horse  staple \r\nuser: bob", f"  Password: {MARK} \r\nuser: bob"),
        ("password: two words # the old one", f"password: {MARK} # the old one"),
        ("password: hunter2 was given to root", f"password: {MARK} was given to root"),
        ("password: is told", "password: is told"),
        ("password: hunter2, user: bob", f"password: {MARK}, user: bob"),
        ("password: hunter2 user=bob", f"password: {MARK} user=bob"),
        ("PASSWORD=hunter2 ./run", f"PASSWORD={MARK} ./run"),
        ("x, password: two words", f"x, password: {MARK} words"),
        ("GITHUB_TOKEN: two words", f"GITHUB_TOKEN: {MARK} words"),
        (f"{'x' * 79}\npassword: plain", f"{'x' * 79}\npassword: {MARK}"),
        (f"{'x' * 90} password: plain", f"{'x' * 90} password: plain"),
    ],
)
def test_only_the_value_goes(text: str, clean: str) -> None:
    assert redact_assignments(text) == clean


def test_lines_do_not_run_into_each_other() -> None:
    assert redact_assignments("password:\nhunter2") == "password:\nhunter2"
    assert redact_assignments("a\npassword: pw1\nb") == f"a\npassword: {MARK}\nb"


def test_a_name_is_read_outwards_only_so_far() -> None:
    long = "x" * 70 + "_password=hunter2"

    assert redact_assignments(long) == f"{long[: -len('hunter2')]}{MARK}"
