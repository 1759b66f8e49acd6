"""Facts written after the table of meanings was finished: nothing was tuned on them."""

from __future__ import annotations

from bench.recall.facts import ToldFact

FRESH = tuple(
    ToldFact(*row)
    for row in (
        (
            "The robot arm must not turn faster than 40 degrees a second.",
            "40 degrees",
            "How fast may the robot arm turn?",
            "What is the maximum rotation speed of the manipulator?",
        ),
        (
            "Patients are anonymised by the script scrub.R before any export.",
            "scrub.R",
            "Which script anonymises patients?",
            "What removes personal data of sick people?",
        ),
        (
            "The physics engine runs at 120 ticks.",
            "120 ticks",
            "At how many ticks does the physics engine run?",
            "What is the simulation frequency?",
        ),
        (
            "Weather data comes from the feed dwd-open.",
            "dwd-open",
            "Where does weather data come from?",
            "What is the source of the forecast?",
        ),
        (
            "Grades are final after the ninth week.",
            "ninth",
            "When are grades final?",
            "From which point can marks of students no longer be changed?",
        ),
        (
            "Hanna reviews everything that concerns encryption.",
            "Hanna",
            "Who reviews everything that concerns encryption?",
            "Which colleague must look at crypto code?",
        ),
        (
            "The irrigation valve opens for 7 minutes.",
            "7 minutes",
            "For how long does the irrigation valve open?",
            "What is the duration of watering?",
        ),
        (
            "Level files are compressed with zstd.",
            "zstd",
            "What are level files compressed with?",
            "Which algorithm shrinks the maps of the game?",
        ),
        (
            "The tokenizer treats underscores as letters.",
            "underscores",
            "What does the tokenizer treat as letters?",
            "Which sign is part of a word for the lexer?",
        ),
        (
            "Build artifacts are deleted after 10 days.",
            "10 days",
            "After how many days are build artifacts deleted?",
            "How long do compiled binaries stay?",
        ),
        (
            "The train timetable is updated by the operator at midnight.",
            "midnight",
            "When is the train timetable updated?",
            "At what hour does the railway schedule get refreshed?",
        ),
        (
            "Our fork of the driver lives at git.lab/usb-fix.",
            "git.lab/usb-fix",
            "Where does our fork of the driver live?",
            "What is the repository of the patched kernel module?",
        ),
        (
            "The salary export needs the permission hr.pay.read.",
            "hr.pay.read",
            "Which permission does the salary export need?",
            "What right is required for downloading wages?",
        ),
        (
            "Audio is sampled at 44.1 kHz.",
            "44.1 kHz",
            "At what rate is audio sampled?",
            "What is the frequency of sound recordings?",
        ),
        (
            "The simulator ignores friction below 0.02.",
            "0.02",
            "Which friction does the simulator ignore?",
            "What is the threshold for neglecting resistance?",
        ),
        (
            "Quentin broke the main branch yesterday.",
            "Quentin",
            "Who broke the main branch?",
            "Whose commit made master fail?",
        ),
        (
            "Drafts are saved every five keystrokes.",
            "five keystrokes",
            "How often are drafts saved?",
            "At which interval does unfinished writing persist?",
        ),
        (
            "The newsletter goes out on Tuesdays.",
            "Tuesdays",
            "When does the newsletter go out?",
            "What weekday do subscribers get mail?",
        ),
        (
            "The compiler flag -fno-inline is needed for the profiler.",
            "-fno-inline",
            "Which compiler flag is needed for the profiler?",
            "What option do I set to measure hot spots?",
        ),
        (
            "Meeting rooms are synced from the calendar rooms@corp.",
            "rooms@corp",
            "From which calendar are meeting rooms synced?",
            "What account do conference places come from?",
        ),
        (
            "The vector store uses cosine distance.",
            "cosine",
            "Which distance does the vector store use?",
            "What similarity measure do embeddings have?",
        ),
        (
            "The kiosk reboots itself at 3 in the morning.",
            "3 in the morning",
            "When does the kiosk reboot itself?",
            "At what time is the terminal restarted?",
        ),
        (
            "Ahmed has the only key to the server room.",
            "Ahmed",
            "Who has the key to the server room?",
            "Which person can open the data center?",
        ),
        (
            "Undo keeps the last 64 steps.",
            "64",
            "How many steps does undo keep?",
            "How far back can I revert my edits?",
        ),
        (
            "The crawler obeys a delay of 2 seconds per site.",
            "2 seconds",
            "Which delay does the crawler obey?",
            "How long does the spider pause between requests?",
        ),
        (
            "Ledger entries are append-only.",
            "append-only",
            "What are ledger entries?",
            "Can bookkeeping records be modified?",
        ),
        (
            "The thermostat firmware is stuck at 1.8.2.",
            "1.8.2",
            "At which version is the thermostat firmware stuck?",
            "What release runs on the heating controller?",
        ),
        (
            "Contracts are signed with the tool Skribble.",
            "Skribble",
            "With which tool are contracts signed?",
            "What software do we use for agreements?",
        ),
        (
            "Seats are blocked for 8 minutes during booking.",
            "8 minutes",
            "For how long are seats blocked during booking?",
            "How much time does a visitor have to complete a reservation?",
        ),
        (
            "The proto files are vendored under third_party/wire.",
            "third_party/wire",
            "Where are the proto files vendored?",
            "Which directory has the copied message definitions?",
        ),
        (
            "The German keyboard layout breaks the shortcut Ctrl-Z.",
            "Ctrl-Z",
            "Which shortcut does the German keyboard layout break?",
            "What hotkey does not work for people abroad?",
        ),
        (
            "Videos are transcoded on the machine hydra.",
            "hydra",
            "On which machine are videos transcoded?",
            "What server converts the films?",
        ),
        (
            "We promised the city a reply within 48 hours.",
            "48 hours",
            "Within how many hours did we promise the city a reply?",
            "How quickly must we answer the municipality?",
        ),
        (
            "The stock level may go negative in the sandbox only.",
            "sandbox",
            "Where may the stock level go negative?",
            "In which environment can inventory drop under zero?",
        ),
        (
            "Yusuf maintains the Terraform modules.",
            "Yusuf",
            "Who maintains the Terraform modules?",
            "Who is in charge of infrastructure as code?",
        ),
        (
            "The onboarding wizard has six screens.",
            "six",
            "How many screens does the onboarding wizard have?",
            "What number of pages do new users click through?",
        ),
        (
            "Serial numbers start with the letter K.",
            "letter K",
            "With which letter do serial numbers start?",
            "What is the prefix of device ids?",
        ),
        (
            "The heap is dumped to /srv/dumps when it explodes.",
            "/srv/dumps",
            "Where is the heap dumped?",
            "In which folder do I find memory images after a crash?",
        ),
        (
            "Elevators report their position over MQTT.",
            "MQTT",
            "Over what do elevators report their position?",
            "Which protocol do the lifts speak?",
        ),
        (
            "The survey closes on the 9th.",
            "9th",
            "When does the survey close?",
            "Until what date can people fill in the questionnaire?",
        ),
        (
            "Diffs over 400 lines get rejected by the bot.",
            "400 lines",
            "Which diffs get rejected by the bot?",
            "What is the largest change the robot accepts?",
        ),
        (
            "The fonts are licensed for two domains only.",
            "two domains",
            "For how many domains are the fonts licensed?",
            "On what number of sites may we use the typeface?",
        ),
        (
            "Sensor readings arrive in little endian.",
            "little endian",
            "In what order do sensor readings arrive?",
            "Which byte sequence do measurements have?",
        ),
        (
            "The mayor's office insists on Internet Explorer.",
            "Internet Explorer",
            "What does the mayor's office insist on?",
            "Which browser does the town hall require?",
        ),
        (
            "Passwordless login was postponed to the third quarter.",
            "third quarter",
            "To when was passwordless login postponed?",
            "When do passkeys come?",
        ),
        (
            "The shader cache lives in ~/.cache/lumen.",
            "~/.cache/lumen",
            "Where does the shader cache live?",
            "What path stores the compiled graphics programs?",
        ),
        (
            "The coffee machine API returns 418 when it is empty.",
            "418",
            "What does the coffee machine API return when it is empty?",
            "Which status code means there are no beans?",
        ),
        (
            "Fixtures are loaded from tests/seed.sql.",
            "tests/seed.sql",
            "Where are fixtures loaded from?",
            "What file has the sample rows for unit checks?",
        ),
    )
)
