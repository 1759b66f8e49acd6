"""Forty-eight and forty-eight more things said in passing, and the question that somebody asks for each later.

They were written before the search was looked at, and nothing was tuned on them. A question has no word of what it asks
for, and shares others with it as they come: the subject mostly, sometimes one word alone.
"""

from __future__ import annotations

from bench.recall.everyday import Exchange

FIRST_SET = (
    Exchange(
        "We moved the invoices bucket last week, it is called acme-inv-prod-7 and lives in Frankfurt.",
        "Noted.",
        "What's the name of the bucket for the invoices?",
    ),
    Exchange(
        "Before I forget, the customer wants the export every Tuesday at half past five in the morning.",
        "Noted.",
        "When does the customer expect the export?",
    ),
    Exchange(
        "I talked to Henrike from the legal team, she says we must delete applicants after 180 days.",
        "Noted.",
        "How long may we keep applicants according to legal?",
    ),
    Exchange(
        "The flaky test is test_reconnect_twice; it needs the fake clock, otherwise it fails on slow machines.",
        "Noted.",
        "Which of the tests fails on slow machines?",
    ),
    Exchange(
        "For the scanner app we agreed on Kotlin, the Java prototype goes to the attic.",
        "Noted.",
        "In what language do we write the scanner app?",
    ),
    Exchange(
        "My colleague Oskar rotates the signing certificate in the first week of November.",
        "Noted.",
        "Who renews the certificate for signing?",
    ),
    Exchange(
        "The import chokes on files with more than 65,000 rows, so the vendor splits them.",
        "Noted.",
        "How big can a file be before the import chokes?",
    ),
    Exchange(
        "Please use the replica db-ro-3 for anything that only reads, the primary is overloaded.",
        "Noted.",
        "Which database host should read-only queries go to?",
    ),
    Exchange(
        "The feature flag is named checkout_v4 and only twelve shops have it on at the moment.",
        "Noted.",
        "What is the flag for the new checkout called?",
    ),
    Exchange(
        "The night shift complained that the dashboard reloads every 15 seconds, they want two minutes.",
        "Noted.",
        "How often should the dashboard refresh for the night shift?",
    ),
    Exchange(
        "Our retry budget for the payment gateway is four attempts with a pause that doubles.",
        "Noted.",
        "How many times do we retry the payment gateway?",
    ),
    Exchange(
        "The office in Lyon has the subnet 10.82.0.0/16 and everything else is blocked there.",
        "Noted.",
        "What network range does the Lyon office use?",
    ),
    Exchange(
        "Bugs for the mobile client are tracked under the key MOBX, not under APP any more.",
        "Noted.",
        "Where do I file bugs of the mobile client?",
    ),
    Exchange(
        "The backup of the wiki is encrypted with the passphrase that Selma keeps in the safe.",
        "Noted.",
        "Who has the passphrase of the wiki backup?",
    ),
    Exchange(
        "We froze the schema of the orders table on March 3 because the auditors need it stable.",
        "Noted.",
        "Since when is the orders table frozen?",
    ),
    Exchange(
        "The minimum Python for the plugin is 3.9 because the studio still ships that one.",
        "Noted.",
        "What Python version must the plugin support?",
    ),
    Exchange(
        "Thumbnails are generated at 320 pixels, anything larger kills the old tablets.",
        "Noted.",
        "What size do thumbnails have?",
    ),
    Exchange(
        "The secret for the webhook is read from HOOK_SALT_B, please do not hardcode it.",
        "Noted.",
        "Which environment variable has the webhook's secret?",
    ),
    Exchange(
        "Deployments go out on Wednesdays only, after Ruben has signed the release sheet.",
        "Noted.",
        "On which day do we deploy?",
    ),
    Exchange(
        "The old cron job on host ginkgo is still sending mails, we have to switch it off.",
        "Noted.",
        "On which host does the old cron job run?",
    ),
    Exchange(
        "Translations come from the agency in Porto, they need three working days.",
        "Noted.",
        "How long does the agency take for translations?",
    ),
    Exchange(
        "If the queue has more than 900 entries the pager goes off and wakes up Tomas.",
        "Noted.",
        "At what length of the queue is somebody paged?",
    ),
    Exchange(
        "The licence server answers on port 27017 in the lab but on 27050 in production.",
        "Noted.",
        "Which port does the licence server have in production?",
    ),
    Exchange(
        "Our biggest client insists on invoices in Swiss francs, never in euros.",
        "Noted.",
        "In which currency does the biggest client want invoices?",
    ),
    Exchange(
        "The search index is rebuilt by make reindex-all, it takes about forty minutes.",
        "Noted.",
        "What's the command to rebuild the search index?",
    ),
    Exchange(
        "The crash from Friday was caused by a null supplier in order 88123.",
        "Noted.",
        "What caused the crash on Friday?",
    ),
    Exchange(
        "Names of migrations start with the ticket number, for example 4711_add_vat.sql.",
        "Noted.",
        "How do we name migrations?",
    ),
    Exchange(
        "Uploads above 25 MB are refused by the proxy, not by our own code.",
        "Noted.",
        "What is the upload limit of the proxy?",
    ),
    Exchange(
        "The design team wants the buttons in #0A7F5C, the darker green failed the contrast check.",
        "Noted.",
        "What colour should the buttons have?",
    ),
    Exchange(
        "Karim is on parental leave until the ninth of June, ask Lena in the meantime.",
        "Noted.",
        "Until when is Karim away?",
    ),
    Exchange(
        "The load test reached 1,340 requests per second before the latency went up.",
        "Noted.",
        "How many requests per second did we get in the load test?",
    ),
    Exchange(
        "The demo account is visitor@kiosk.example and it is reset every night.",
        "Noted.",
        "Which account do we use for the demo?",
    ),
    Exchange("We pin numpy below 2.0 because the geometry package breaks otherwise.", "Noted.", "Why is numpy pinned?"),
    Exchange(
        "The heating controller speaks Modbus over the serial line /dev/ttyUSB3.",
        "Noted.",
        "On which serial device is the heating controller?",
    ),
    Exchange(
        "All times in the reports are in the zone of Lisbon, even for the team in Tokyo.",
        "Noted.",
        "What time zone are the reports in?",
    ),
    Exchange(
        "The branch with the spike is experiment/lazy-graph, please don't merge it.",
        "Noted.",
        "Which branch holds the spike?",
    ),
    Exchange(
        "Support gets the logs from the folder /srv/handover, they have no shell access.",
        "Noted.",
        "Where does support find the logs?",
    ),
    Exchange(
        "The cache keeps a product for six hours, after that prices would be wrong.",
        "Noted.",
        "How long does a product stay in the cache?",
    ),
    Exchange(
        "Our contact at the shipping company is Mr. Adeyemi, extension 442.",
        "Noted.",
        "Who do I call at the shipping company?",
    ),
    Exchange(
        "The checksum in the file header is CRC-32 with the polynomial of zlib.",
        "Noted.",
        "What kind of checksum is in the header?",
    ),
    Exchange(
        "The vendor said the firmware older than 5.8.2 loses the calibration on restart.",
        "Noted.",
        "From which firmware on does the calibration survive a restart?",
    ),
    Exchange(
        "I prefer four spaces in the YAML files, the linter of the platform team complains otherwise.",
        "Noted.",
        "How should YAML files be indented?",
    ),
    Exchange(
        "The monthly budget for the GPU cluster is 8,200 euros and we are at 70 percent.",
        "Noted.",
        "How much may we spend on the GPU cluster per month?",
    ),
    Exchange(
        "The sandbox of the bank only accepts the IBAN DE02 1203 0000 for tests.",
        "Noted.",
        "Which IBAN can I use in the bank's sandbox?",
    ),
    Exchange(
        "Session cookies expire after 45 minutes because of the hospital's rules.",
        "Noted.",
        "When do session cookies expire?",
    ),
    Exchange(
        "The architecture board rejected GraphQL, we stay with plain REST.",
        "Noted.",
        "What did the architecture board decide?",
    ),
    Exchange(
        "The report generator is written in Elixir by a contractor who left in spring.",
        "Noted.",
        "What is the report generator written in?",
    ),
    Exchange(
        "The smoke tests need the tunnel called fox-den, start it before you run them.",
        "Noted.",
        "What do I have to start before the smoke tests?",
    ),
)
SECOND_SET = (
    Exchange(
        "The colour printer on the third floor is named hydra-3 and takes only A4.",
        "Noted.",
        "What's the printer on the third floor called?",
    ),
    Exchange(
        "Refunds over 500 euros have to be approved by Beatriz, the others go through by themselves.",
        "Noted.",
        "Who approves large refunds?",
    ),
    Exchange(
        "We keep audit records for seven years, the tax office insists on it.",
        "Noted.",
        "How many years do we have to store the audit records?",
    ),
    Exchange(
        "The parser is slow since commit 9f31ab2, before that it took half the time.",
        "Noted.",
        "Which commit made the parser slow?",
    ),
    Exchange(
        "Our staging cluster runs in the region eu-north-1 because power is cheap there.",
        "Noted.",
        "In what region is the staging cluster?",
    ),
    Exchange(
        "The new hire starts on the fifteenth of August and gets the laptop of Jonas.",
        "Noted.",
        "When does the new colleague start?",
    ),
    Exchange(
        "The rate limit of the weather API is 60 calls per minute, we had it blocked twice.",
        "Noted.",
        "How many calls per minute does the weather API allow?",
    ),
    Exchange(
        "For the newsletter we use Mailgun, the contract with the other provider has ended.",
        "Noted.",
        "Which service sends the newsletter?",
    ),
    Exchange(
        "The warehouse labels must be printed in Code 128, the scanners cannot read QR.",
        "Noted.",
        "What kind of barcode goes on the warehouse labels?",
    ),
    Exchange(
        "I want the error messages of the form in German and in French, English is optional.",
        "Noted.",
        "In which languages do we need the form's error messages?",
    ),
    Exchange(
        "The vault token lasts 90 minutes, long builds have to renew it.",
        "Noted.",
        "How long is the vault token valid?",
    ),
    Exchange(
        "The master copy of the price list is prices_final_v3.xlsx on Nadia's share.",
        "Noted.",
        "Where is the master copy of the price list?",
    ),
    Exchange(
        "Please do not upgrade Redis past 6.2, the lock script depends on the old behaviour.",
        "Noted.",
        "Up to what version may we upgrade Redis?",
    ),
    Exchange(
        "The robot stops when the temperature sensor reports more than 71 degrees.",
        "Noted.",
        "At which temperature does the robot stop?",
    ),
    Exchange(
        "Incidents are discussed in the channel ops-lighthouse, the old one is archived.",
        "Noted.",
        "In which channel do we talk about incidents?",
    ),
    Exchange(
        "Our tests against the real modem run on the machine called badger at night.",
        "Noted.",
        "What machine runs the tests with the modem?",
    ),
    Exchange(
        "The marketing site is built with Hugo and deployed by hand on Mondays.",
        "Noted.",
        "How is the marketing site built?",
    ),
    Exchange(
        "The customer number has eleven digits, the last one is a check digit.",
        "Noted.",
        "How many digits does a customer number have?",
    ),
    Exchange(
        "Feedback from the pilot schools is collected by Mrs. Lindqvist until Easter.",
        "Noted.",
        "Who collects the feedback of the pilot schools?",
    ),
    Exchange(
        "We decided to drop support for Windows 8, the installer refuses it from now on.",
        "Noted.",
        "Which Windows do we no longer support?",
    ),
    Exchange(
        "The nightly sync needs the flag --skip-thumbs or it runs until noon.",
        "Noted.",
        "Which option does the nightly sync need?",
    ),
    Exchange(
        "Our SSL termination happens on the box 192.0.2.44 and nowhere else.", "Noted.", "Where is SSL terminated?"
    ),
    Exchange(
        "The invoice template is Jinja, the accountant edits it herself.",
        "Noted.",
        "What templating language is the invoice in?",
    ),
    Exchange(
        "The mock server answers with delay 250 ms so that the spinner is visible.",
        "Noted.",
        "How much delay does the mock server add?",
    ),
    Exchange(
        "Ticket 5120 is blocked until the hardware from Shenzhen arrives.", "Noted.", "Why is ticket 5120 blocked?"
    ),
    Exchange(
        "The primary key of shipments is a ULID, because the integers leaked our volume.",
        "Noted.",
        "What is used as primary key for shipments?",
    ),
    Exchange(
        "The board meets every second Thursday and wants the numbers the evening before.",
        "Noted.",
        "When does the board meet?",
    ),
    Exchange(
        "For local development the password of the database is just 'walrus'.",
        "Noted.",
        "What's the database password for local development?",
    ),
    Exchange(
        "The legacy endpoint /v1/quotes is switched off on 1 October, clients know it.",
        "Noted.",
        "When is the legacy quotes endpoint switched off?",
    ),
    Exchange(
        "Our accessibility consultant asked for at least 44 pixels on every tap target.",
        "Noted.",
        "How large must tap targets be?",
    ),
    Exchange(
        "The ETL writes parquet files with zstd, snappy was too big.",
        "Noted.",
        "Which compression do the parquet files have?",
    ),
    Exchange(
        "The mail about the outage was sent to 2,310 customers, not to all of them.",
        "Noted.",
        "How many customers were informed about the outage?",
    ),
    Exchange(
        "The intern changed the DNS entry, that is why login was down on Sunday.",
        "Noted.",
        "Why was login down on Sunday?",
    ),
    Exchange(
        "The barcode scanner has the vendor id 0x05e0, udev needs it.",
        "Noted.",
        "What vendor id does the barcode scanner have?",
    ),
    Exchange(
        "Statistics are computed by the view mv_daily_sales, refreshed at four.",
        "Noted.",
        "Which view computes the statistics?",
    ),
    Exchange(
        "Our legal name on documents is Nordhafen Logistik GmbH, write it in full.",
        "Noted.",
        "What is our legal name on documents?",
    ),
    Exchange("The trial period is 21 days, sales may extend it once.", "Noted.", "How long is the trial?"),
    Exchange(
        "The library for PDF is weasyprint, reportlab was too low-level for us.",
        "Noted.",
        "What library do we use for PDF?",
    ),
    Exchange(
        "Photos of the site are stored under /mnt/aerial, sorted by flight number.",
        "Noted.",
        "In which directory are the photos of the site?",
    ),
    Exchange(
        "If the sensor is silent for three minutes it counts as lost and an alarm goes out.",
        "Noted.",
        "After how many minutes does a silent sensor count as lost?",
    ),
    Exchange(
        "The staging password changes monthly, Priya posts it in the team's safe.",
        "Noted.",
        "Who posts the staging password?",
    ),
    Exchange(
        "Version 2.14 is the last one that works with the customer's old SAP.",
        "Noted.",
        "Which version still works with the old SAP?",
    ),
    Exchange(
        "Our team calls the scheduler 'Metronome', the repository is called tick-tock.",
        "Noted.",
        "What is the repository of the scheduler called?",
    ),
    Exchange(
        "The acceptance test is on 12 May in Graz, the client comes with four people.",
        "Noted.",
        "Where is the acceptance test held?",
    ),
    Exchange(
        "Coverage must not fall below 82 percent or the pipeline turns red.",
        "Noted.",
        "What coverage does the pipeline demand?",
    ),
    Exchange(
        "The emergency contact for the data centre is Yusuf, his number is on the rack.",
        "Noted.",
        "Who is the emergency contact of the data centre?",
    ),
    Exchange(
        "The map tiles come from our own server since the free quota was cut to 100,000.",
        "Noted.",
        "Where do the map tiles come from?",
    ),
    Exchange(
        "We measured 38 ms for the lookup after adding the index, it was 900 before.",
        "Noted.",
        "How fast is the lookup with the index?",
    ),
)
