"""The tuning half, small: one to three steps in files of up to 40 lines."""

from __future__ import annotations

from bench.tasks.task import (
    Task,
    check_all,
    check_command,
    check_compact,
    check_contains,
    check_equals,
    check_few_changes,
    check_gone,
    check_json,
    check_kept,
    check_lacks,
    check_python,
    check_says,
)

SERVER = {"server.ini": "[server]\nhost = localhost\nport = 8471\n\n[log]\nlevel = info\n"}
GREETING = {
    "greeting.py": 'def greet(name):\n    return "Hello, " + name\n',
    "main.py": 'from greeting import greet\n\nprint(greet("Ann"))\n',
}
TAX = {
    "tax.py": "RATE = 20\n\n\ndef with_tax(price):\n    return price - price * RATE / 100\n",
    "test_tax.py": "from tax import with_tax\n\nassert with_tax(100) == 120, with_tax(100)\nprint('ok')\n",
}
PROJECT = {
    "pyproject.toml": '[project]\nname = "sample"\nversion = "0.3.1"\ndependencies = ["rich"]\n',
    "src/app.py": 'print("sample")\n',
}
SHAPES = {
    "shapes.py": "import math\n\n\ndef circle(r):\n    return math.pi * r * r\n\n\ndef square(a):\n    return a * a\n"
}
LIMITS = {
    "limits.py": "MAX_USERS = 50\nMAX_FILES = 9\n",
    "config.py": "DEBUG = False\n",
    "app.py": "from limits import MAX_USERS\n\nprint(MAX_USERS)\n",
}
PACKAGE = {"package.json": '{\n  "name": "shop",\n  "version": "1.2.0",\n  "private": true\n}\n'}
NUMBERS = {"numbers.txt": "12\n30\n7\n51\n"}
AVERAGE = {"average.py": "values = []\n\nmean = sum(values) / len(values)\nprint('mean', mean)\n"}
NOTES = {"notes.md": "# Notes\n\nYou will recieve a mail.\n\nThen answer it.\n", "todo.md": "- write\n"}
BROKEN = {"hello.py": "def hello(name)\n    print('hello', name)\n\n\nhello('world')\n"}
MARKS = {
    "one.py": "# TODO: name it\na = 1\n",
    "two.py": "b = 2\n# TODO: test it\n# TODO: ship it\n",
    "three.py": "c = 3\n# TODO: remove\n",
}

TASKS = (
    Task("read a value", "Which port does server.ini set?", SERVER, check_says("8471")),
    Task(
        "find the file with a text",
        "Which file here contains the text CACHE_LIMIT?",
        {"alpha.py": "x = 1\n", "beta.py": "y = 2\nCACHE_LIMIT = 7\n", "gamma.py": "z = 3\n"},
        check_says("beta.py"),
    ),
    Task(
        "create a text file",
        "Create a file hello.txt that contains the text good morning.",
        {"a.py": "a = 1\n"},
        check_contains("hello.txt", "good morning"),
    ),
    Task(
        "write a script and run it",
        "Write a script fib.py that prints the first ten Fibonacci numbers starting with 0, one per line, and run it.",
        {"README.md": "# numbers\n"},
        check_command("python fib.py", "0 1 1 2 3 5 8 13 21 34"),
        2,
    ),
    Task(
        "change the version",
        "Change the version in pyproject.toml to 0.4.0.",
        PROJECT,
        check_all(check_contains("pyproject.toml", 'version = "0.4.0"', 'name = "sample"', "rich")),
    ),
    Task(
        "add a line at the end",
        "Add the line CACHE=on at the end of the file app.conf.",
        {"app.conf": "MODE=dev\nPORT=80\n"},
        check_equals("app.conf", "MODE=dev\nPORT=80\nCACHE=on"),
    ),
    Task(
        "rename a function in two files",
        "Rename the function greet to welcome in greeting.py and main.py.",
        GREETING,
        check_all(check_command("python main.py", "Hello, Ann"), check_contains("greeting.py", "def welcome(")),
        2,
    ),
    Task(
        "fix a failing test",
        "python test_tax.py fails. Fix tax.py so that it passes.",
        TAX,
        check_all(check_command("python test_tax.py"), check_kept(TAX, "test_tax.py")),
        2,
    ),
    Task(
        "run and report",
        "Run python calc.py and tell me what it prints.",
        {"calc.py": "print(sum(n * n for n in range(40)))\n"},
        check_says("20540"),
    ),
    Task("count the marks", "How many TODO comments are there in the Python files here?", MARKS, check_says("4")),
    Task(
        "delete a file",
        "Delete the file old_report.txt.",
        {"old_report.txt": "old\n", "report.txt": "new\n"},
        check_all(check_gone("old_report.txt"), check_contains("report.txt", "new")),
    ),
    Task(
        "rename a file",
        "Rename data.txt to input.txt.",
        {"data.txt": "1 2 3\n", "read.py": "print(1)\n"},
        check_all(check_gone("data.txt"), check_equals("input.txt", "1 2 3")),
    ),
    Task(
        "move a constant",
        "Move the constant MAX_USERS from limits.py to config.py and fix the import in app.py.",
        LIMITS,
        check_all(
            check_contains("config.py", "MAX_USERS = 50", "DEBUG"),
            check_lacks("limits.py", "MAX_USERS"),
            check_contains("limits.py", "MAX_FILES = 9"),
            check_command("python app.py", "50"),
        ),
        3,
    ),
    Task(
        "fix a typo",
        "Fix the spelling mistake recieve in notes.md.",
        NOTES,
        check_all(check_contains("notes.md", "receive", "Then answer it."), check_few_changes(NOTES, "notes.md", 2)),
    ),
    Task(
        "change a value in JSON",
        "Set private to false in package.json.",
        PACKAGE,
        check_all(
            check_json("package.json", lambda data: data["private"], False),
            check_json("package.json", lambda data: data["name"], "shop"),
        ),
    ),
    Task(
        "add a function",
        "Add a function rectangle(a, b) to shapes.py that returns the area of a rectangle.",
        SHAPES,
        check_python(
            "import shapes; print(shapes.rectangle(3, 4), shapes.square(2), round(shapes.circle(1), 2))", "12 4 3.14"
        ),
    ),
    Task(
        "add a default",
        'Give the parameter name of greet in greeting.py the default value "you".',
        GREETING,
        check_python("import greeting; print(greeting.greet(), greeting.greet('Bo'))", "Hello, you Hello, Bo"),
    ),
    Task(
        "count the files",
        "How many Python files are in the folder pkg?",
        {"pkg/a.py": "", "pkg/b.py": "", "pkg/c.txt": "", "pkg/d.py": "", "pkg/e.py": "", "f.py": ""},
        check_says("4"),
    ),
    Task(
        "fix a syntax error",
        "hello.py does not run. Find the syntax error and fix it.",
        BROKEN,
        check_command("python hello.py", "hello world"),
        2,
    ),
    Task(
        "mend a crash",
        "average.py crashes when values is empty. Change it so that it prints mean 0 in that case.",
        AVERAGE,
        check_all(
            check_command("python average.py", "mean 0"),
            check_command("sed 's/^values = \\[\\]/values = [2, 4]/' average.py > w.py && python w.py", "mean 3.0"),
        ),
    ),
    Task(
        "make a folder and move a file",
        "Make a folder docs and move guide.md into it.",
        {"guide.md": "# Guide\n", "main.py": "print(1)\n"},
        check_all(check_gone("guide.md"), check_equals("docs/guide.md", "# Guide")),
        2,
    ),
    Task(
        "add numbers and write the sum",
        "Add up the numbers in numbers.txt and write the sum into sum.txt.",
        NUMBERS,
        check_equals("sum.txt", "100"),
        2,
    ),
    Task(
        "mend a shell script",
        "build.sh should print the word built, but it fails. Run it, find out why and fix it.",
        {"build.sh": "#!/bin/sh\nset -e\ncd out\necho built\n"},
        check_command("sh build.sh", "built"),
        3,
    ),
    Task(
        "add a key to YAML",
        "Add the key timeout with the value 30 under server in app.yaml.",
        {"app.yaml": "server:\n  host: localhost\n  port: 80\nlog:\n  level: info\n"},
        check_all(
            check_compact("app.yaml", "server:host:localhost", "timeout:30", "log:level:info"),
            check_command(
                "python -c \"t=open('app.yaml').read(); s=t.split('log:')[0]; assert '\\n  timeout: 30' in s, t\""
            ),
        ),
    ),
)
