"""Facts as people tell them, each with two questions: one that names its subject, one that shares no word with it.

Neither question holds the value that is asked for. Every second fact is held back: those are for measuring, the others
for tuning.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ToldFact:
    """`value` is what is asked for; `named` asks with the words of the fact, `reworded` with none of them."""

    text: str
    value: str
    named: str
    reworded: str


FACTS = tuple(
    ToldFact(*row)
    for row in (
        (
            "The staging database listens on port 5433.",
            "5433",
            "Which port does the staging database use?",
            "Where do we connect for the pre-production data store?",
        ),
        (
            "Anna wants the release on Thursday.",
            "Thursday",
            "When does Anna want the release?",
            "By what day should the new version ship?",
        ),
        (
            "We deploy with Argo CD, never by hand.",
            "Argo CD",
            "What do we deploy with?",
            "Which tool handles our rollouts?",
        ),
        (
            "Passwords are hashed with argon2id since the audit.",
            "argon2id",
            "How are passwords hashed?",
            "Which algorithm protects user credentials?",
        ),
        (
            "The nightly backup goes to the bucket acme-cold-7.",
            "acme-cold-7",
            "Where does the nightly backup go?",
            "In which container are the copies archived every evening?",
        ),
        (
            "The login page times out after 20 minutes of idling.",
            "20 minutes",
            "After how long does the login page time out?",
            "How long until an inactive session expires when signing in?",
        ),
        (
            "Invoices are rounded down to full cents.",
            "down",
            "How are invoices rounded?",
            "What happens to fractions of a penny in billing?",
        ),
        (
            "Please never touch the file legacy/tax.pl, the accountants sign it.",
            "legacy/tax.pl",
            "Which file do the accountants sign?",
            "What script must we not modify because of the finance people?",
        ),
        (
            "The mobile app talks to api-eu-2, the website to api-eu-1.",
            "api-eu-2",
            "What does the mobile app talk to?",
            "Which backend host serves phones?",
        ),
        (
            "Our customer Nordwind runs everything on Windows Server 2019.",
            "Windows Server 2019",
            "What does the customer Nordwind run on?",
            "Which operating system does that client from the north have?",
        ),
        (
            "Tests need the environment variable PAY_SANDBOX set to 1.",
            "PAY_SANDBOX",
            "Which environment variable do the tests need?",
            "What must I export before running the checks?",
        ),
        (
            "The cache is flushed at 04:30 every morning.",
            "04:30",
            "When is the cache flushed?",
            "At what time do we clear the stored responses?",
        ),
        (
            "Feature branches are named after the ticket, like OPS-112-short-title.",
            "OPS-112",
            "How are feature branches named?",
            "What is the convention for git heads of new work?",
        ),
        (
            "We agreed to drop Python 3.9 in the spring.",
            "3.9",
            "Which Python do we drop in the spring?",
            "What interpreter version loses support soon?",
        ),
        (
            "The image resizer leaks memory when it gets a TIFF.",
            "TIFF",
            "When does the image resizer leak memory?",
            "Which picture format makes the thumbnail service eat RAM?",
        ),
        (
            "Rollbacks have to be approved by Dmitri.",
            "Dmitri",
            "Who has to approve rollbacks?",
            "Who signs off when we revert a deployment?",
        ),
        (
            "The queue holds 10,000 jobs at most before it rejects new ones.",
            "10,000",
            "How many jobs does the queue hold?",
            "What is the maximum backlog of tasks?",
        ),
        (
            "All times in the reports are in UTC, whatever the office says.",
            "UTC",
            "In which zone are the times of the reports?",
            "What clock do the statistics follow?",
        ),
        (
            "The payment provider calls us back at /hooks/stripe-v3.",
            "/hooks/stripe-v3",
            "Where does the payment provider call us back?",
            "What is the webhook URL for billing events?",
        ),
        (
            "Lint errors break the build, warnings do not.",
            "Lint errors",
            "What breaks the build?",
            "Which style problems make the pipeline fail?",
        ),
        (
            "Marcus is on holiday until the 14th.",
            "14th",
            "Until when is Marcus on holiday?",
            "What date does our colleague come back from vacation?",
        ),
        (
            "The search index is rebuilt with bin/reindex --full.",
            "bin/reindex --full",
            "How is the search index rebuilt?",
            "What command regenerates the lookup tables?",
        ),
        (
            "The biggest tenant has 3.4 million orders.",
            "3.4 million",
            "How many orders has the biggest tenant?",
            "What is the number of purchases of our largest customer?",
        ),
        (
            "We keep audit records for seven years because of the law.",
            "seven years",
            "How long do we keep audit records?",
            "What is the legal retention period for log history?",
        ),
        (
            "The design team prefers rounded corners of 6 pixels.",
            "6 pixels",
            "Which corners does the design team prefer?",
            "What border radius do the UI people like?",
        ),
        (
            "The staging certificate expires on March 3.",
            "March 3",
            "When does the staging certificate expire?",
            "Until what date is the TLS for the test system valid?",
        ),
        (
            "Emails are sent through the relay mx-out.internal.",
            "mx-out.internal",
            "Through which relay are emails sent?",
            "What SMTP server delivers our messages?",
        ),
        (
            "Uploads larger than 25 MB are refused by the gateway.",
            "25 MB",
            "How large may uploads be before the gateway refuses them?",
            "What is the maximum size of a submitted attachment?",
        ),
        (
            "The flaky test is test_ledger_balance, skip it for now.",
            "test_ledger_balance",
            "Which test is flaky?",
            "What check fails randomly?",
        ),
        (
            "Our CI runners live in Frankfurt.",
            "Frankfurt",
            "Where do our CI runners live?",
            "In which city are the build machines located?",
        ),
        (
            "The admin interface is only reachable through the VPN Tunnelbear-2.",
            "Tunnelbear-2",
            "Through what is the admin interface reachable?",
            "How do I get access to the management console?",
        ),
        (
            "Prices are stored as integers in hundredths.",
            "integers in hundredths",
            "How are prices stored?",
            "What data type do we save money amounts as?",
        ),
        (
            "The frontend is written in Svelte, not in React.",
            "Svelte",
            "What is the frontend written in?",
            "Which framework does the user interface use?",
        ),
        (
            "The importer chokes on semicolons in the address column.",
            "semicolons",
            "What does the importer choke on in the address column?",
            "Which characters make loading the CSV crash?",
        ),
        (
            "Lena from support reported the double booking.",
            "Lena",
            "Who reported the double booking?",
            "Which person found the duplicate reservation bug?",
        ),
        (
            "Retries wait 3, 9 and 27 seconds.",
            "3, 9 and 27",
            "How long do retries wait?",
            "What is the backoff delay between attempts?",
        ),
        (
            "The old API is switched off at the end of June.",
            "June",
            "When is the old API switched off?",
            "What is the deadline for shutting down the legacy endpoint?",
        ),
        (
            "Docker images are pushed to registry.harbor.lan.",
            "registry.harbor.lan",
            "Where are Docker images pushed?",
            "To which repository do we upload containers?",
        ),
        (
            "The license of the chart library is AGPL, so we must replace it.",
            "AGPL",
            "What is the license of the chart library?",
            "Under which legal terms is that plotting package published?",
        ),
        (
            "Sundays are the only maintenance window.",
            "Sundays",
            "When is the maintenance window?",
            "What day may we take the system down for upgrades?",
        ),
        (
            "The scheduler was rewritten by a contractor named Oyelaran.",
            "Oyelaran",
            "Who rewrote the scheduler?",
            "Which freelancer redid the cron component?",
        ),
        (
            "Git hooks are installed with just setup.",
            "just setup",
            "How are git hooks installed?",
            "What do I run to get the pre-commit scripts in place?",
        ),
        (
            "The shipping cost table has an error in row 88.",
            "row 88",
            "In which row does the shipping cost table have an error?",
            "Where exactly is the mistake in the delivery price list?",
        ),
        (
            "Log lines are JSON, one object each.",
            "JSON",
            "What are log lines?",
            "In what format does the application write its traces?",
        ),
        (
            "The load balancer drops connections after 90 seconds.",
            "90 seconds",
            "After how long does the load balancer drop connections?",
            "What is the timeout of the reverse proxy?",
        ),
        (
            "Translations come from the spreadsheet i18n-master.xlsx.",
            "i18n-master.xlsx",
            "Where do translations come from?",
            "Which document holds the texts in other languages?",
        ),
        (
            "We pay 1,200 euros a month for monitoring.",
            "1,200 euros",
            "How much do we pay for monitoring?",
            "What is the cost of observability?",
        ),
        (
            "The migration has to run before the workers start.",
            "before the workers",
            "When does the migration have to run?",
            "In what order must the schema upgrade and the background processes happen?",
        ),
        (
            "The public docs are generated from the folder handbook.",
            "handbook",
            "From which folder are the public docs generated?",
            "What directory is the manual built from?",
        ),
        (
            "Coupons can be used twice per account.",
            "twice",
            "How often can coupons be used per account?",
            "How many times may a customer redeem a voucher?",
        ),
        (
            "The warehouse scanner sends Latin-1, everything else UTF-8.",
            "Latin-1",
            "What does the warehouse scanner send?",
            "Which encoding comes from the barcode reader in the depot?",
        ),
        (
            "The secret for signing cookies is rotated by the job rotor.",
            "rotor",
            "Which job rotates the secret for signing cookies?",
            "What task renews the session key?",
        ),
        (
            "Priya owns the recommendation engine.",
            "Priya",
            "Who owns the recommendation engine?",
            "Who is responsible for the suggestions component?",
        ),
        (
            "A pull request needs two reviewers.",
            "two",
            "How many reviewers does a pull request need?",
            "What number of approvals must a merge have?",
        ),
        (
            "The map tiles are cached on the disk /mnt/tiles.",
            "/mnt/tiles",
            "On which disk are the map tiles cached?",
            "Where are the geography pictures stored?",
        ),
        (
            "Our SLA promises 99.5 percent uptime.",
            "99.5",
            "What uptime does our SLA promise?",
            "Which availability did we guarantee?",
        ),
        (
            "The crash of last week was caused by a full inode table.",
            "full inode table",
            "What caused the crash of last week?",
            "Why did the outage happen recently?",
        ),
        (
            "Phone numbers are validated by libphonenumber.",
            "libphonenumber",
            "What validates phone numbers?",
            "Which package checks whether a telephone is correct?",
        ),
        (
            "The demo for the investors is on the 22nd.",
            "22nd",
            "When is the demo for the investors?",
            "What date do we present to the shareholders?",
        ),
        (
            "Debug builds are twelve times slower.",
            "twelve times",
            "How much slower are debug builds?",
            "What performance penalty do development binaries have?",
        ),
        (
            "The export skips archived projects on purpose.",
            "archived projects",
            "What does the export skip?",
            "What is intentionally left out of the download?",
        ),
        (
            "The password of the test account is in the vault under qa/robot.",
            "qa/robot",
            "Where is the password of the test account?",
            "Under which entry do I find the QA user's credentials?",
        ),
        (
            "Messages older than 30 days are purged from the inbox.",
            "30 days",
            "After how many days are messages purged from the inbox?",
            "When do we delete ancient mail?",
        ),
        (
            "The analytics cluster has nine nodes.",
            "nine",
            "How many nodes does the analytics cluster have?",
            "What is the number of machines for statistics?",
        ),
        (
            "Dark mode is the default since version 4.",
            "version 4",
            "Since which version is dark mode the default?",
            "When did the black theme become standard?",
        ),
        (
            "The parser is generated with lark from grammar.ebnf.",
            "grammar.ebnf",
            "From what is the parser generated?",
            "Which definition is the syntax reader made of?",
        ),
        (
            "Orders over 500 euros need a manual check.",
            "500 euros",
            "Which orders need a manual check?",
            "From what amount must a human look at purchases?",
        ),
        (
            "Tomasz asked for a CSV instead of the PDF.",
            "CSV",
            "What did Tomasz ask for instead of the PDF?",
            "Which file format did that colleague want?",
        ),
        (
            "The websocket server needs sticky sessions.",
            "sticky sessions",
            "What does the websocket server need?",
            "What setting does the realtime host require?",
        ),
        (
            "The budget for the rewrite is 40 person days.",
            "40 person days",
            "What is the budget for the rewrite?",
            "How much effort may refactoring cost?",
        ),
        (
            "Avatars are 256 by 256.",
            "256 by 256",
            "How big are avatars?",
            "What size do profile pictures have?",
        ),
        (
            "The printer service was moved to host quill.",
            "quill",
            "To which host was the printer service moved?",
            "On what machine does printing run now?",
        ),
        (
            "Everything under /v1 stays frozen until the partners have migrated.",
            "/v1",
            "What stays frozen until the partners have migrated?",
            "Which routes may not change before third parties switched?",
        ),
        (
            "The metrics are scraped every 15 seconds by Prometheus.",
            "15 seconds",
            "How often are the metrics scraped?",
            "At what interval are measurements collected?",
        ),
        (
            "The rate limit is 100 requests a minute per key.",
            "100 requests",
            "What is the rate limit per key?",
            "How many calls may a client make in sixty seconds?",
        ),
        (
            "The changelog is written by Ingrid on Fridays.",
            "Ingrid",
            "Who writes the changelog?",
            "Which person authors the release notes?",
        ),
        (
            "Temporary files belong in var/scratch.",
            "var/scratch",
            "Where do temporary files belong?",
            "Which directory should throwaway data be put into?",
        ),
        (
            "The sales report double counts refunds.",
            "refunds",
            "What does the sales report double count?",
            "Which item is wrong in the revenue statistics?",
        ),
        (
            "Kafka keeps events for 72 hours.",
            "72 hours",
            "How long does Kafka keep events?",
            "What is the retention of the message broker?",
        ),
        (
            "The Android build needs JDK 17.",
            "JDK 17",
            "What does the Android build need?",
            "Which Java do I install for compiling the phone app?",
        ),
        (
            "Accessibility was reviewed by the agency Klarblick.",
            "Klarblick",
            "Which agency reviewed accessibility?",
            "What company checked whether blind people can use it?",
        ),
        (
            "The feature flag for the new checkout is called swift_cart.",
            "swift_cart",
            "What is the feature flag for the new checkout called?",
            "Which toggle turns on the changed purchase flow?",
        ),
        (
            "User ids are ULIDs, not UUIDs.",
            "ULIDs",
            "What are user ids?",
            "Which kind of identifier do accounts have?",
        ),
        (
            "The import of suppliers takes about 50 minutes.",
            "50 minutes",
            "How long does the import of suppliers take?",
            "What is the duration of loading the vendors?",
        ),
        (
            "Shell scripts must pass shellcheck before they are merged.",
            "shellcheck",
            "What must shell scripts pass before they are merged?",
            "Which linter do bash files have to satisfy?",
        ),
        (
            "The replica lags behind by up to 8 seconds.",
            "8 seconds",
            "By how much does the replica lag behind?",
            "How stale may the read copy be?",
        ),
        (
            "The contract with the hosting company ends in November.",
            "November",
            "When does the contract with the hosting company end?",
            "Until which month does our agreement for servers last?",
        ),
        (
            "Use tabs in Makefiles and four spaces everywhere else.",
            "four spaces",
            "What do we use everywhere else than in Makefiles?",
            "What is our indentation style?",
        ),
        (
            "The heating dashboard shows Fahrenheit by mistake.",
            "Fahrenheit",
            "What does the heating dashboard show by mistake?",
            "Which wrong temperature unit is on the screen?",
        ),
        (
            "The cron job for statistics runs as the user reporter.",
            "reporter",
            "As which user does the cron job for statistics run?",
            "Under what account is the analytics task executed?",
        ),
        (
            "The vendor of the scanner is called Optimax.",
            "Optimax",
            "What is the vendor of the scanner called?",
            "Which manufacturer makes the barcode reader?",
        ),
        (
            "Comments in the code are written in English, commit messages too.",
            "English",
            "In what language are comments in the code written?",
            "Which tongue do we document sources in?",
        ),
        (
            "The fallback model is qwen2.5-coder:7b.",
            "qwen2.5-coder:7b",
            "What is the fallback model?",
            "Which LLM takes over when the first one fails?",
        ),
        (
            "Gift cards cannot be combined with discounts.",
            "discounts",
            "What can gift cards not be combined with?",
            "Which reductions are excluded for presents?",
        ),
        (
            "The threads of the pool are limited to 12 on production.",
            "12",
            "To how many are the threads of the pool limited?",
            "What is the maximum number of parallel workers in prod?",
        ),
        (
            "The office server is behind the firewall rule 31.",
            "rule 31",
            "Behind which firewall rule is the office server?",
            "What packet filter entry protects the machine at work?",
        ),
    )
)
TUNING, HELD_BACK = FACTS[::2], FACTS[1::2]
