"""A solution for each of the guests' second tasks, in the form of the first."""

from __future__ import annotations

from bench.tasks import guests_second_programs as programs
from bench.tasks import guests_second_projects as data

from tests.house.guest_solutions import Solution

COUNT_OF = (
    "\n    def count_of(self, agent):\n"
    "        return sum(ticket.agent == agent for ticket in self.tickets.values())\n\n\ndef sample():"
)
FOOD = (
    "import csv\n\nwith open('expenses.csv') as file:\n"
    "    print(sum(int(row['amount']) for row in csv.DictReader(file) if row['kind'] == 'food'))\n"
)

SECOND_SOLUTIONS: dict[str, Solution] = {
    "g token minutes": ("45 minutes.", {}),
    "g who opens the device": ("logger/device.py does, at 9600.", {}),
    "g json files": ("There are 4.", {}),
    "g how many primes": ("It found 125.", {}),
    "g what is for lunch": ("It prints: pea soup and rye bread", {}),
    "g robots": ("Added.", {"robots.txt": "User-agent: *\nDisallow: /private\n"}),
    "g strict": ("On.", {"tsconfig.json": ('"strict": false', '"strict": true')}),
    "g backup time": ("Changed.", {"backup.yml": ("02:15", "04:30")}),
    "g add a variable": ("Added.", {".env.example": ("", "DEBUG=0\n")}),
    "g rename a class": (
        "Renamed.",
        {
            "pump.py": ("class Pump", "class WaterPump"),
            "plant.py": ("import Pump", "import WaterPump", "Pump(", "WaterPump("),
        },
    ),
    "g pages needed": ("Fixed.", {"pages.py": ("items // per_page", "-(-items // per_page)")}),
    "g move the timeout": (
        "Moved.",
        {
            "client.py": ("import BASE_URL", "import BASE_URL, TIMEOUT_S", "TIMEOUT_S = 12\n", ""),
            "settings.py": ("", "TIMEOUT_S = 12\n"),
        },
    ),
    "g currency": (
        "Done.",
        {"money.py": ("price(amount)", 'price(amount, currency="EUR")', ".2f} EUR", ".2f} {currency}")},
    ),
    "g temporary files": ("Deleted.", {path: None for path in data.CACHE if path.endswith(".tmp")}),
    "g new person": ("Added.", {"people.csv": ("", "Nora,34,Bergen\n")}),
    "g publish folder": ("Changed.", {"publish.sh": ("FOLDER=public", "FOLDER=build")}),
    "g long: assign": ("The tests pass.", {"tickets.py": ("give_to", "assign")}),
    "g long: tickets of an agent": (
        "Added.",
        {"tickets.py": ("\n\ndef sample():", COUNT_OF), "overview.py": ("", "print('Ida', desk.count_of('Ida'))\n")},
    ),
    "g long: miscount": (
        "Fixed.",
        {"tickets.py": ("state] = 1", "state] += 1"), "result.txt": "tickets: all tests pass\n"},
    ),
    "g long: note on a closed one": ("A ClosedTicketError.", {}),
    "g long: food": ("Saved.", {"food.py": FOOD, "food.txt": f"{programs.FOOD_TOTAL}\n"}),
    "g long: dashboard": (
        "Changed.",
        {
            "dashboard.js": (
                "'Music',\n    enabled: true",
                "'Music',\n    enabled: false",
                "Seconds: 75",
                "Seconds: 300",
            )
        },
    ),
    "g long: https": (
        "It prints https://fjord.example/docs",
        dict.fromkeys(data.LINKS, ("http://fjord", "https://fjord")),
    ),
    "g long: as json": (
        "Added.",
        {
            "textstats.py": (
                "import argparse\n",
                "import argparse\nimport json\n",
                '("file")\n',
                '("file")\n    parser.add_argument("--json", action="store_true")\n',
                "    for name, number",
                "    if args.json:\n        print(json.dumps(found))\n        return\n    for name, number",
            ),
            "poem.json": '{"lines": 4, "words": 10, "letters": 31}\n',
        },
    ),
}
