"""Lines of an output that answer a question."""

import pytest

from ollm.domain.messages import ToolCall
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.calls.output_facts import describe_output, find_extreme_line

THROWS = "throw 1 116\nthrow 2 938\nthrow 3 640\n"
STATIONS = "airport: 12.1 C, 53.8 F, mild\ncastle: 17.8 C, 64.0 F, mild\nforest: 10.1 C, 50.2 F, mild\n"


def describe(request: str, command: str, output: str, code: int = 0) -> str:
    arguments = {"command": command}
    result = RecordedResult(llm_content=output, exit_code=code)
    record = ToolCallRecord(id="c1", name="shell", args=arguments, timestamp="", result=result)
    return describe_output(request, [ToolCall(id="c1", name="shell", arguments=arguments)], [record])


@pytest.mark.parametrize(
    ("request_", "command", "output", "told"),
    [
        ("run dice.py and tell me what the last throw was", "python dice.py", THROWS, "The last line is: throw 3 640"),
        ("Run it. What is the final number?", "./dice.sh", THROWS, "The last line is: throw 3 640"),
        ("Which throw was the highest?", "python dice.py", THROWS, "Highest: throw 2 938"),
        (
            "run weather.py: which is the warmest?",
            "python weather.py",
            STATIONS,
            "Highest: castle: 17.8 C, 64.0 F, mild",
        ),
        ("Where is the average lowest?", "cat report.txt", STATIONS, "Lowest: forest: 10.1 C, 50.2 F, mild"),
        ("What was the last commit?", "git log --oneline", "a b\nc d\n", ""),
        ("What is the last line of the log?", "tail -3 log", "a\nb\n", ""),
        ("Tell me the last change", "python log.py", "a\nb\n", ""),
        ("Run dice.py.", "python dice.py", THROWS, ""),
        ("What is the last throw?", "python dice.py", "throw 1 116\n", ""),
        ("Which is the highest and which the lowest?", "python weather.py", STATIONS, ""),
        ("At most three stations, please", "python weather.py", STATIONS, ""),
    ],
)
def test_the_line_that_is_asked_for_is_told(request_: str, command: str, output: str, told: str) -> None:
    assert describe(request_, command, output) == told
    assert describe(request_, command, output, 1) == "", "it failed"


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["name,price", "saw,12.5", "axe,30"], "axe,30"),
        (["  37 a.py", "  99 b.py", " 136 total"], "99 b.py"),
        (["1. saw 3", "2. axe 9", "3. nail 1"], "2. axe 9"),
        (["a 1 9", "b 2 8"], ""),
        (["a 5", "b 5"], ""),
        (["a 5", "b"], ""),
        (["5", "6"], ""),
        (["a 1.2.3", "b 1.10.0"], ""),
        (["a 2026-03-02", "b 2026-04-01"], ""),
        (["a 12%", "b 3%"], "a 12%"),
        (["a=-3", "b=-5"], "a=-3"),
        (["a", "b"], ""),
        (["a 5"], ""),
    ],
)
def test_a_line_is_the_highest_where_all_its_numbers_are(lines: list[str], line: str) -> None:
    assert find_extreme_line(lines, highest=True) == line
