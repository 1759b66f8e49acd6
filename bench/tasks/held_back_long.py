"""The half that is never looked at while tuning, longer: files of 100 to 400 lines and up to six steps."""

from __future__ import annotations

from bench.tasks.sources import (
    log_lines,
    page_text,
    python_class,
    python_module,
    script_module,
    settings_module,
    style_sheet,
    table_rows,
    table_total,
    yaml_config,
)
from bench.tasks.task import (
    Task,
    check_all,
    check_command,
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

FLEET = python_module("Tickets of a line of ships.", ("ferry", "cabin", "meal", "tour", "car", "crate"), "FEE = 4\n")
HARBOUR = {
    "harbour.py": FLEET,
    "report.py": "import harbour\n\nprint(harbour.describe_tour(harbour.make_tour('Isle', 12.5, 2)))\n",
}
LEAK = {
    "harbour.py": FLEET.replace(
        'def find_cabin(items, name):\n    """The first cabin of that name, or None."""\n    for item in items:\n'
        '        if item["name"] == name:',
        'def find_cabin(items, name):\n    """The first cabin of that name, or None."""\n    for item in items:\n'
        '        if item["name"] != name:',
    ),
    "check.py": "from harbour import find_cabin, make_cabin\n\ncabins = [make_cabin('low', 1), "
    "make_cabin('high', 2)]\n"
    "assert find_cabin(cabins, 'high')['price'] == 2\nprint('cabins are fine')\n",
}
OPTIONS = {
    "options.py": settings_module(("disk", "print", "scan", "mount", "sound", "video", "input", "power", "radio"))
}
ROBOT = {
    "robot.py": python_class("Robot", "robot", ("wheel", "sensor", "arm", "lamp", "job", "fault")),
    "drive.py": "from robot import Robot\n\nrobot = "
    "Robot('R2')\nrobot.add_wheel('left')\nprint(robot.count_wheels())\n",
}
CLUSTER = {
    "cluster.yaml": yaml_config(
        ("edge", "feed", "index", "store", "batch", "relay", "guard", "audit", "queue", "media", "stats", "vault")
    )
}
TRACE = {"trace.log": log_lines(380, "relay", 19)}
TRIPS = {"trips.csv": table_rows(260, ("bus", "tram", "train"), 17)}
FORMS = {"forms.js": script_module(("field", "label", "button", "panel", "dialog", "menu", "slider"))}
SKIN = {"skin.css": style_sheet([f"card{n}" for n in range(30)], "#aa0000")}
MANUAL = {"MANUAL.md": page_text("Pump", ("Setup", "Start", "Stop", "Clean", "Repair", "Parts", "Safety", "Contact"))}
RELEASE = {
    "setup.cfg": "[metadata]\nname = pump\nversion = 3.0.2\n",
    "pump/version.py": 'VERSION = "3.0.2"\n',
    "package.json": '{\n  "name": "pump",\n  "version": "3.0.2"\n}\n',
    "tell.py": "from pump.version import VERSION\n\nprint(VERSION)\n",
}
GRAVITY = {
    "physics.py": python_module("Loads.", ("beam", "bolt", "plate", "cable"))
    + "\n\ndef weight(mass):\n    return mass * 9.81\n\n\ndef fall(seconds):\n    return 9.81 * seconds * seconds / 2\n"
}
CHAIN = {
    "README.md": page_text("Chain", ("First", "Second")) + "\nThe settings are in conf/main.ini.\n",
    "conf/main.ini": "".join(f"[part{n}]\nsize = {n}\n\n" for n in range(40)) + "[secret]\nfile = keys/key.txt\n",
    "keys/key.txt": "kx-5512\n",
}
REPORT = {
    "report.py": '"""Prints a report."""\n\nimport sys\n\n\n'
    + "".join(f"def column_{n}(row):\n    return row[{n}]\n\n\n" for n in range(28))
    + "def main():\n"
    "    rows = [(1, 2), (3, 4)]\n    for row in rows:\n        print(column_0(row) + column_1(row))\n\n\n"
    "if __name__ == '__main__':\n    main()\n"
}

TASKS = (
    Task(
        "change an option",
        "In options.py set VIDEO_MAX_ITEMS to 12.",
        OPTIONS,
        check_python("import options; print(options.VIDEO_MAX_ITEMS, options.POWER_RETRIES)", "12 3"),
        kind="long",
    ),
    Task(
        "change three options",
        "In options.py change DISK_RETRIES to 7, SOUND_ENABLED to False and RADIO_PREFIX to fm.",
        OPTIONS,
        check_all(
            check_python(
                "import options as o; print(o.DISK_RETRIES, o.SOUND_ENABLED, o.RADIO_PREFIX, o.SCAN_RETRIES)",
                "7 False fm 3",
            ),
            check_few_changes(OPTIONS, "options.py", 6),
        ),
        3,
        "long",
    ),
    Task("say an option", "Which port does options.py set for MOUNT?", OPTIONS, check_says("1150"), kind="long"),
    Task(
        "fix a search in a long module",
        "python check.py fails. Find the mistake in harbour.py and correct it.",
        LEAK,
        check_all(
            check_command("python check.py", "cabins are fine"),
            check_kept(LEAK, "check.py"),
            check_few_changes(LEAK, "harbour.py", 4),
        ),
        3,
        "long",
    ),
    Task(
        "fix, check and note",
        "find_cabin in harbour.py returns the wrong cabin: it must compare with == and not with !=. "
        "Correct it, run python check.py "
        "and save its output in check.txt.",
        LEAK,
        check_all(
            check_command("python check.py", "cabins are fine"),
            check_few_changes(LEAK, "harbour.py", 4),
            check_contains("check.txt", "cabins are fine"),
        ),
        3,
        "long",
    ),
    Task(
        "rename a function used elsewhere",
        "Rename describe_tour to label_tour in harbour.py and report.py, and run report.py.",
        HARBOUR,
        check_all(
            check_command("python report.py", "Tour Isle: 2 x 12.50"),
            check_contains("harbour.py", "def label_tour("),
            check_few_changes(HARBOUR, "harbour.py", 2),
        ),
        3,
        "long",
    ),
    Task(
        "round a result",
        "Let total_meals in harbour.py return the total rounded to two digits.",
        HARBOUR,
        check_all(
            check_python("from harbour import *; print(total_meals([make_meal('a', 0.333, 1)]))", "0.33"),
            check_few_changes(HARBOUR, "harbour.py", 4),
        ),
        kind="long",
    ),
    Task(
        "add a method to a class",
        "Add a method is_ready(self) to the class Robot in robot.py that returns True when it has at least two wheels.",
        ROBOT,
        check_all(
            check_python(
                "from robot import Robot; r = Robot('x'); r.add_wheel(1); a = r.is_ready(); r.add_wheel(2);"
                " print(a, r.is_ready(), r.count_faults())",
                "False True 0",
            ),
            check_few_changes(ROBOT, "robot.py", 6),
        ),
        kind="long",
    ),
    Task(
        "rename an attribute",
        "Rename the method count_wheels to wheel_count in robot.py and drive.py.",
        ROBOT,
        check_all(
            check_command("python drive.py", "1"),
            check_contains("robot.py", "def wheel_count("),
            check_lacks("drive.py", "count_wheels"),
        ),
        2,
        "long",
    ),
    Task(
        "change a limit",
        "In cluster.yaml change the memory limit of the service relay to 2048m.",
        CLUSTER,
        check_all(
            check_command("grep -A8 '^  relay:' cluster.yaml | grep -q 'memory: 2048m'"),
            check_few_changes(CLUSTER, "cluster.yaml", 2),
        ),
        kind="long",
    ),
    Task(
        "keep only the errors",
        "Write all lines of trace.log that contain ERROR into errors.log and say how many they are.",
        TRACE,
        check_all(check_command("test $(wc -l < errors.log) = 20 && ! grep -qv ERROR errors.log"), check_says("20")),
        2,
        "long",
    ),
    Task(
        "say the last warning",
        "What is the time of the last WARN line in trace.log?",
        TRACE,
        check_says("10:14"),
        kind="long",
    ),
    Task(
        "raise a release",
        "Change the version 3.0.2 to 3.1.0 in setup.cfg, pump/version.py and package.json. Then run python tell.py.",
        RELEASE,
        check_all(
            check_contains("setup.cfg", "version = 3.1.0", "pump"),
            check_json("package.json", lambda data: data["version"], "3.1.0"),
            check_command("python tell.py", "3.1.0"),
        ),
        4,
        "long",
    ),
    Task(
        "drop a function",
        "Delete the function find_crate from harbour.py.",
        HARBOUR,
        check_all(
            check_python(
                "import harbour as h; print(hasattr(h, 'find_crate'), hasattr(h, 'describe_crate'))", "False True"
            ),
            check_few_changes(HARBOUR, "harbour.py", 7),
        ),
        kind="long",
    ),
    Task(
        "name a constant",
        "In physics.py add a constant GRAVITY = 9.81 near the top and use it in weight and fall instead of the number.",
        GRAVITY,
        check_all(
            check_python("import physics as p; print(p.GRAVITY, p.weight(2), p.fall(2))", "9.81 19.62 19.62"),
            check_command("test $(grep -c '9\\.81' physics.py) = 1"),
            check_few_changes(GRAVITY, "physics.py", 6),
        ),
        2,
        "long",
    ),
    Task(
        "follow a chain",
        "README.md says where the settings are. In them the section secret names a file. What does that file contain?",
        CHAIN,
        check_says("kx-5512"),
        3,
        "long",
    ),
    Task(
        "change a colour in a sheet",
        "Change every #aa0000 in skin.css to #00aa00.",
        SKIN,
        check_all(
            check_lacks("skin.css", "#aa0000"),
            check_command("test $(grep -c '#00aa00' skin.css) = 10"),
            check_contains("skin.css", "#222222"),
        ),
        kind="long",
    ),
    Task(
        "change a message",
        'In forms.js let loadDialog throw the message "No such dialog: " in front of the id.',
        FORMS,
        check_all(
            check_contains("forms.js", "No such dialog: ", "Panel not found: "), check_few_changes(FORMS, "forms.js", 4)
        ),
        kind="long",
    ),
    Task(
        "add an option",
        "Let report.py accept an option --sum that prints only the total of all printed numbers, and "
        "run python report.py --sum.",
        REPORT,
        check_all(check_command("python report.py --sum", "10"), check_command("python report.py", "3 7")),
        2,
        "long",
    ),
    Task(
        "largest of a column",
        "Find the largest amount in trips.csv and write it into largest.txt.",
        TRIPS,
        check_equals("largest.txt", "96"),
        2,
        "long",
    ),
    Task(
        "write, run and save",
        "Write a script trams.py that prints the sum of amount for the rows of trips.csv with the "
        "name tram. Run it and save the "
        "output in trams.txt.",
        TRIPS,
        check_all(
            check_command("python trams.py", str(table_total(TRIPS["trips.csv"], "tram"))),
            check_equals("trams.txt", str(table_total(TRIPS["trips.csv"], "tram"))),
        ),
        3,
        "long",
    ),
    Task(
        "rename a section",
        "In MANUAL.md rename the section Repair to Maintenance and leave the rest as it is.",
        MANUAL,
        check_all(
            check_contains("MANUAL.md", "## Maintenance\n", "## Parts\n"),
            check_lacks("MANUAL.md", "## Repair\n"),
            check_few_changes(MANUAL, "MANUAL.md", 6),
        ),
        kind="long",
    ),
    Task(
        "sort files into folders",
        "Make the folders images and texts, move the .png files into images and the .txt files into "
        "texts, and delete junk.tmp.",
        {
            "a.png": "1\n",
            "b.png": "2\n",
            "c.txt": "3\n",
            "d.txt": "4\n",
            "junk.tmp": "",
            "trace.log": TRACE["trace.log"],
        },
        check_all(
            check_equals("images/a.png", "1"),
            check_equals("images/b.png", "2"),
            check_equals("texts/d.txt", "4"),
            check_gone("junk.tmp"),
            check_gone("c.txt"),
        ),
        4,
        "long",
    ),
    Task(
        "write a test",
        "Write test_harbour.py that asserts that total_ferrys of harbour.py gives 20 for two ferries "
        "of price 10 each, and run it.",
        HARBOUR,
        check_all(
            check_command("python test_harbour.py"),
            check_contains("test_harbour.py", "total_ferrys", "assert", "20"),
            check_kept(HARBOUR, "harbour.py"),
        ),
        2,
        "long",
    ),
)
