"""The values of files of settings and styles, by their names."""

import pytest

from ollm.services.request_reading.setting_values import list_values

JSON = """\
{"default": "east", "regions": {"east": {"port": 1, "disks": ["a:b", {"x": 2}]}, "west": {"port": -1.5}},
 "users": [{"name": "Al", "age": 3}, {"id": "bo", "age": null}], "empty": {}, "last": true}
"""
CSS = """\
/* body { color: red } */
body { margin: 0; background: white }
.card,
.tile {
  background: url("a;b}c");
}
a:hover { color: red; }
@media (max-width: 3px) {
  body { background: black; }
}
"""
YAML = """\
# top: no
services:
  web:
    image: nginx:1.27  # the server
    ports:
      - "80:80"
    depends_on: [db]
  "db":
    image: 'post # gres'
steps:
- name: build
  run: make
- run: |
    make test
  env:
    A: 1
last: 3
"""
TOML = """\
top = 1
[servers.alpha] # first
ip = "1.2" # its address
[servers."b.c"]
ip = "1.3"
[[part]]
name = "x"
size = 1
[[part]]
size = 2
list = [1]
"""


@pytest.mark.parametrize(
    ("path", "text", "values"),
    [
        (
            "a.json",
            JSON,
            {
                ("default",): '"east"',
                ("regions", "east", "port"): "1",
                ("regions", "east", "disks", "[1]", "x"): "2",
                ("regions", "west", "port"): "-1.5",
                ("users", "Al", "name"): '"Al"',
                ("users", "Al", "age"): "3",
                ("users", "bo", "id"): '"bo"',
                ("users", "bo", "age"): "null",
                ("last",): "true",
            },
        ),
        (
            "a.css",
            CSS,
            {
                ("body", "margin"): "0",
                ("body", "background"): "white",
                (".card, .tile", "background"): 'url("a;b}c")',
                ("a:hover", "color"): "red",
                ("@media (max-width: 3px)", "body", "background"): "black",
            },
        ),
        (
            "a.yml",
            YAML,
            {
                ("services", "web", "image"): "nginx:1.27",
                ("services", "db", "image"): "'post # gres'",
                ("steps", "build", "name"): "build",
                ("steps", "build", "run"): "make",
                ("steps", "[1]", "env", "A"): "1",
                ("last",): "3",
            },
        ),
        (
            "a.toml",
            TOML,
            {
                ("top",): "1",
                ("servers", "alpha", "ip"): '"1.2"',
                ("servers", "b.c", "ip"): '"1.3"',
                ("part", "x", "name"): '"x"',
                ("part", "x", "size"): "1",
                ("part", "[1]", "size"): "2",
            },
        ),
        (
            "a.ini",
            '[remote "origin"]\r\nurl: x\r\n[mail]\r\n; port = 1\r\nport=80 ; of it\r\n',
            {("remote", "origin", "url"): "x", ("mail", "port"): "80"},
        ),
        ("a.json", '{"a": 1, "a": 2, "b": 3}', {("b",): "3"}),
        ("a.json", "}]{", {}),
        ("a.py", "[mail]\nport = 1\n", {}),
    ],
)
def test_values_are_found_by_the_names_that_lead_to_them(
    path: str, text: str, values: dict[tuple[str, ...], str]
) -> None:
    found = list_values(path, text)

    assert {names: value.text for names, value in found.items()} == values
    assert all(text[value.start : value.end] == value.text for value in found.values())
