"""The line that what went wrong points at."""

import pytest

from ollm.services.request_reading.suspect_lines import find_suspect_line

AVERAGE = "values = []\n\nmean = sum(values) / len(values)\nprint('mean', mean)\n"
TAX = "RATE = 20\n\n\ndef with_tax(price):\n    return price - price * RATE / 100\n\n\ndef other():\n    return 1\n"
FRAME = 'Traceback:\n  File "/tmp/p/run.py", line 1, in <module>\n  File "/tmp/p/average.py", line 3, in <module>\n'


@pytest.mark.parametrize(
    ("path", "text", "output", "line"),
    [
        ("average.py", AVERAGE, FRAME, "mean = sum(values) / len(values)"),
        ("src/average.py", AVERAGE, FRAME, "mean = sum(values) / len(values)"),
        ("build.sh", "set -e\ncd out\n", "build.sh: 2: cd: can't cd to out", "cd out"),
        ("average.py", AVERAGE, FRAME.replace("3", "99"), ""),
        ("tax.py", TAX, "assert with_tax(100) == 120, with_tax(100)", "    return price - price * RATE / 100"),
        ("tax.py", TAX, "with_tax and other", ""),
        ("tax.py", "x = 1\nx = 1\n", 'File "tax.py", line 1', ""),
        ("tax.py", "", "", ""),
        ("words.py", "def longest(words):\n    best = max(words)\n    return best\n", "assert longest([]) == 1", ""),
        ("on.py", "def is_on():\n    return False\n", "assert is_on()", "    return False"),
    ],
)
def test_the_line_is_the_one_the_output_names_or_the_only_one_returned(
    path: str, text: str, output: str, line: str
) -> None:
    assert find_suspect_line(path, text, output, "Fix it.") == line
