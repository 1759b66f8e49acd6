"""Where something is defined, found by a command."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.definition_search import find_definition_command

FILES = {
    "billing/reader.py": "LIMIT = 3\n\n\nclass Invoice:\n    async def load_all(self):\n        pass\n\n\ndef parse_invoice(line):\n    return line\n",
    "billing/report.py": "from billing.reader import parse_invoice, Invoice, LIMIT\n\nprint(parse_invoice('A'), Invoice, LIMIT == 3)\n",
    "web/app.js": "export function showCart(items) {}\nconst TAX_RATE = 3;\nshowCart(TAX_RATE);\n",
    "main.go": "func (s *Store) Load(x int) {}\n\nfunc main() { s.Load(1) }\n",
    "lib.sh": "say_it() {\n  echo 1\n}\nsay_it\n",
}


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ("Which file defines the function parse_invoice?", "billing/reader.py"),
        ("Where is parse_invoice defined?", "billing/reader.py"),
        ("where is `parse_invoice` implemented", "billing/reader.py"),
        ("In which file is the class Invoice declared?", "billing/reader.py"),
        ("which module has the class Invoice?", "billing/reader.py"),
        ("Tell me where the constant LIMIT is defined.", "billing/reader.py"),
        ("Find out which file implements load_all().", "billing/reader.py"),
        ("What file contains the definition of parse_invoice?", "billing/reader.py"),
        ("In which file is showCart defined?", "web/app.js"),
        ("Where do we define TAX_RATE?", "web/app.js"),
        ("Where is the method Load defined?", "main.go"),
        ("Show me the file that defines the function say_it.", "lib.sh"),
        ("Where is the Invoice class defined?", "billing/reader.py"),
    ],
)
def test_the_definition_is_found_and_no_use_of_it(tmp_path: Path, request_: str, path: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = subprocess.run(
        ["bash", "-c", find_definition_command(request_)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert [line.split(":")[0] for line in found.stdout.splitlines()] == [f"./{path}"]


@pytest.mark.parametrize(
    "request_",
    [
        "Which file uses the function parse_invoice?",
        "Where is parse_invoice called?",
        "Where is parse_invoice defined and where is it used?",
        "Which file has the most lines?",
        "Which file contains the word total?",
        "Which file has parse errors?",
        "Where is the timeout written?",
        "In which line of a.py is the function f defined?",
        "Where should the function f be defined?",
        "Find where parse_invoice is defined and rename it to read_invoice.",
        "Why is parse_invoice defined twice?",
        "Which file defines how pages look?",
        "",
    ],
)
def test_other_questions_are_left_to_the_model(request_: str) -> None:
    assert find_definition_command(request_) == ""
