"""Things a person asks of a coding agent, and the tools that would be right for each.

`PROMPTS` were there while the ladder was improved. `HELD` were written before any result of it was seen, are asked once
of what was finished, and nothing is changed because of them.
"""

from __future__ import annotations

READ, SEARCH, RUN = ("read_file",), ("grep", "shell"), ("shell",)
WRITE, EDIT = ("write_file",), ("edit_file", "read_file")

PROMPTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What does src/app.py hold?", READ),
    ("Show me README.md.", READ),
    ("Read lines 10 to 20 of main.py.", READ),
    ("What is the version in pyproject.toml?", READ),
    ("Open config.yaml and tell me the port.", READ),
    ("Look at tests/test_math.py and explain the first test.", READ),
    ("What licence is in the file LICENSE?", READ),
    ("Print the file notes.txt.", READ),
    ("Which functions are in utils.py?", READ),
    ("Read .gitignore.", READ),
    ("Find where DEBUG_LEVEL is used.", SEARCH),
    ("Search for the word timeout in src.", SEARCH),
    ("In which file is the class Parser?", SEARCH),
    ("Where is load_config called?", SEARCH),
    ("Find all TODO comments.", SEARCH),
    ("Which files mention sqlite3?", SEARCH),
    ("Search the code for print(.", SEARCH),
    ("Find the definition of add_user.", SEARCH),
    ("Does any file import requests?", SEARCH),
    ("Find the text 'out of range' in the project.", SEARCH),
    ("Run the tests with pytest.", RUN),
    ("Run git status.", RUN),
    ("How many lines has main.py? Use wc.", RUN),
    ("Run python --version.", RUN),
    ("Execute ./build.sh.", RUN),
    ("Show the last commit with git log.", RUN),
    ("Install the package in this folder with pip.", RUN),
    ("Run main.py with python.", RUN),
    ("Create the directory build.", RUN),
    ("What is the current date? Use the shell.", RUN),
    ("Create notes.txt with the text hello.", WRITE),
    ("Write a file hello.py that prints hello.", WRITE),
    ("Make a new file todo.md with one line: buy milk.", WRITE),
    ("Create config.json that holds an empty object.", WRITE),
    ("Write an empty file named __init__.py.", WRITE),
    ("In main.py replace foo with bar.", EDIT),
    ("Change the port from 80 to 8080 in config.yaml.", EDIT),
    ("Rename the variable x to count in utils.py.", EDIT),
    ("Fix the typo 'recieve' in README.md; it should be 'receive'.", EDIT),
    ("In setup.py change version 1.0 to 1.1.", EDIT),
)
HELD: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Summarise docs/install.md for me.", READ),
    ("What is on the first line of CHANGELOG.md?", READ),
    ("Which packages are in requirements.txt?", READ),
    ("Explain what server.go does.", READ),
    ("Does the Dockerfile expose a port?", (*READ, *SEARCH)),
    ("Who calls send_mail?", SEARCH),
    ("List every file that contains the word deprecated.", SEARCH),
    ("Where do we set the variable MAX_RETRIES?", SEARCH),
    ("Is there any use of eval( in this code?", SEARCH),
    ("Find the error message 'connection refused' in the sources.", SEARCH),
    ("Which branch am I on? Ask git.", RUN),
    ("Build the project with make.", RUN),
    ("Delete the folder tmp.", RUN),
    ("How big is the file data.csv? Use ls -l.", RUN),
    ("Start node index.js and show me what it prints.", RUN),
    ("Save the text 'done' in status.txt.", WRITE),
    ("Create a Python module shapes.py with a class Circle.", WRITE),
    ("Make an empty CSS file named style.css.", WRITE),
    ("Correct 'teh' to 'the' in index.html.", EDIT),
    ("Set DEBUG to False in settings.py.", EDIT),
)
SETS = {"usual": PROMPTS, "held": HELD}
