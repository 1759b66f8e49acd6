"""Exchanges of everyday work, each with something to remember and a question that somebody asks for it later.

They were written before the search was looked at. The fact stands in what the user said or in the answer; the question
is put as it comes to mind, mostly without a word of it. The first half is for tuning, the second for measuring.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exchange:
    """`answered` says that the answer holds the fact, not what the user said."""

    said: str
    answer: str
    question: str
    answered: bool = False

    @property
    def fact(self) -> str:
        return self.answer if self.answered else self.said


EXCHANGES = (
    Exchange(
        "The staging box moved last night, it answers on 10.44.7.19 now.",
        "Noted, I will use that address.",
        "What is the IP of the pre-production machine?",
    ),
    Exchange(
        "Why does the nightly import fail?",
        "The job dies because the CSV export has a byte order mark; open it with utf-8-sig.",
        "How did we have to read the spreadsheet dump so that the batch run goes through?",
        answered=True,
    ),
    Exchange(
        "Please never touch legacy/, Marta is rewriting it in March.",
        "Understood: I leave legacy/ alone.",
        "Which directory must I not edit, and who works on it?",
    ),
    Exchange(
        "We settled on Postgres 15, not 16, because of the extension for geometry.",
        "Then I pin the image to 15.",
        "Which database version was chosen?",
    ),
    Exchange(
        "How long may a session token live?",
        "The security team allows 20 minutes, refreshed on use.",
        "After what time does a login expire?",
        answered=True,
    ),
    Exchange(
        "The customer wants invoices with a comma as decimal mark, always two places.",
        "I format amounts as 1.234,50.",
        "How are prices to be printed on bills?",
    ),
    Exchange(
        "Run the linter.",
        "ruff reports 14 problems, all of them E501 in generated/pb2.py; that file should be excluded.",
        "Which style complaints came up and where?",
        answered=True,
    ),
    Exchange(
        "My colleague in Osaka is 佐藤さん; he signs off on translations.",
        "I will mention him in the pull request.",
        "Who has to approve the Japanese texts?",
    ),
    Exchange(
        "Which branch do releases come from?",
        "From release/2024.3; main is only merged into it on Thursdays.",
        "Where do we ship from, and on what day is it brought up to date?",
        answered=True,
    ),
    Exchange(
        "The flaky one is test_reconnect_after_sleep; skip it on macOS only.",
        "Done, with a marker.",
        "Which unstable case do we leave out on Apple machines?",
    ),
    Exchange(
        "Retry three times with 250 ms in between, then give up.",
        "I set attempts=3 and delay=0.25.",
        "How often do we try again and how long do we wait?",
    ),
    Exchange(
        "What did the profiler say?",
        "62 % of the time is spent in normalise_headers, called once per row instead of once per file.",
        "What was the slowest function?",
        answered=True,
    ),
    Exchange(
        "The licence of the font only covers the web, not the app.",
        "Then the app uses the system font.",
        "May we bundle the typeface on phones?",
    ),
    Exchange(
        "I prefer early returns to nested ifs, please stick to that.",
        "Will do.",
        "What coding style did the user ask for?",
    ),
    Exchange(
        "Why is the docker image so big?",
        "The layer with the CUDA libraries is 3.1 GB; a slim base would drop it.",
        "What takes up the space in our container?",
        answered=True,
    ),
    Exchange(
        "The budget for the API is 40 euros a month, do not exceed it.",
        "I will cache the answers.",
        "How much money may the calls cost?",
    ),
    Exchange(
        "Check the certificate.",
        "It is valid until 3 February 2027 and issued for *.kestrel.example.",
        "When do we need to renew TLS?",
        answered=True,
    ),
    Exchange(
        "Our mascot in the README must stay: it is a heron named Gustav.",
        "I leave the picture where it is.",
        "What is the bird called?",
    ),
    Exchange(
        "Please write commit subjects in Portuguese for this repository.",
        "Certo.",
        "In which language are the git messages?",
    ),
    Exchange(
        "Which queue do emails go through?",
        "They go through mail.outbound with a limit of 90 per minute.",
        "How fast can we send newsletters?",
        answered=True,
    ),
    Exchange(
        "The intern broke the cron table: backups must run at 02:40, not 14:40.",
        "Corrected.",
        "At what hour are copies of the data made?",
    ),
    Exchange(
        "What does error 0x8F mean in the driver?",
        "It means the sensor's FIFO overflowed; reading it twice per frame clears it.",
        "What was the reason for the strange hex code from the device?",
        answered=True,
    ),
    Exchange(
        "支払いの締め日は毎月25日です。",
        "わかりました。25日で計算します。",
        "請求はいつまでに払いますか？",
    ),
    Exchange(
        "Set the log level of the gateway to WARNING in production, DEBUG fills the disk in a day.",
        "Changed in gateway.toml.",
        "How verbose should the proxy be on the live system?",
    ),
    Exchange(
        "The phone number on the contact page is wrong, it should end in 7731.",
        "Fixed.",
        "What are the last digits people can call us on?",
    ),
    Exchange(
        "Where are uploads stored?",
        "In the bucket tern-media-eu, under a folder per tenant.",
        "Where do the users' files end up?",
        answered=True,
    ),
    Exchange(
        "We cannot use Redis, operations refuses to run it. Take the table `locks` instead.",
        "I use the table.",
        "What replaces the in-memory cache for mutual exclusion?",
    ),
    Exchange(
        "How many workers does the server start?",
        "Six, one per core, minus two kept free for the indexer.",
        "What is the number of processes?",
        answered=True,
    ),
    Exchange(
        "Deadline is the trade fair on 9 October; the demo has to run offline.",
        "Then I bundle the data.",
        "By when must the presentation be ready, and under what condition?",
    ),
    Exchange(
        "The old parser chokes on tabs in YAML; replace them before loading.",
        "Done in read_config.",
        "What whitespace breaks reading the settings?",
    ),
    Exchange(
        "Who owns the payments module?",
        "According to CODEOWNERS it is the team @ledger, with Ines as deputy.",
        "Whom do I ask about billing code?",
        answered=True,
    ),
    Exchange(
        "Do not round in the middle of the tax calculation, only at the end, half to even.",
        "Understood.",
        "When and how are VAT amounts rounded?",
    ),
    Exchange(
        "What is the smallest screen we support?",
        "360 by 640 CSS pixels; below that the menu folds.",
        "Which display size is the minimum?",
        answered=True,
    ),
    Exchange(
        "I am colour blind, please do not use red and green to tell diffs apart.",
        "I use blue and orange.",
        "Why did we pick other colours for changes?",
    ),
    Exchange(
        "The vendor's sandbox is down every Sunday from 6 to 9.",
        "I schedule the tests around it.",
        "When is the supplier's test system unavailable?",
    ),
    Exchange(
        "Explain the memory leak.",
        "Each websocket keeps its callback in a global list; unsubscribe never removes it.",
        "Why did RAM usage keep growing?",
        answered=True,
    ),
    Exchange(
        "Let us call the new feature Lighthouse, marketing likes it.",
        "I rename the flag to lighthouse.",
        "What did we name the thing the marketing people wanted?",
    ),
    Exchange(
        "Which Python do we have to support?",
        "3.9 still, because the appliance ships it until the end of next year.",
        "What is the oldest interpreter we need to be compatible with?",
        answered=True,
    ),
    Exchange(
        "Delete accounts after 400 days without a login, but warn 30 days before.",
        "Added both jobs.",
        "How long do we keep inactive users?",
    ),
    Exchange(
        "Can the search be faster?",
        "Yes: an index on (tenant_id, created_at) brings the query from 1.8 s to 12 ms.",
        "What made looking things up quicker?",
        answered=True,
    ),
    Exchange(
        "The password for the demo account is in the safe, ask Tobias, never write it down.",
        "All right.",
        "How do I get the credentials for showing the product?",
    ),
    Exchange(
        "Our API returns 422 instead of 400 for bad input, that is intended.",
        "I keep it.",
        "Which status code do invalid requests get?",
    ),
    Exchange(
        "会议室的投影仪只支持 1080p。",
        "好的，我会把幻灯片调成这个尺寸。",
        "投影的分辨率是多少？",
    ),
    Exchange(
        "What did the load test show?",
        "The knee is at 850 requests per second; beyond it latency doubles every 50.",
        "How much traffic can the system handle?",
        answered=True,
    ),
    Exchange(
        "Use the metric system everywhere, the Americans get a toggle in settings.",
        "Implemented as a toggle.",
        "In which units do we display distances?",
    ),
    Exchange(
        "Which checksum does the firmware use?",
        "CRC-16 with polynomial 0x1021, initial value 0xFFFF.",
        "How is the integrity of the device image verified?",
        answered=True,
    ),
    Exchange(
        "The translator charges per word, so keep strings short and reuse them.",
        "I merged nine duplicates.",
        "Why should messages in the interface be brief?",
    ),
    Exchange(
        "Freeze the dependencies on Friday; after that only security updates.",
        "I lock them on Friday.",
        "From what day on may we not upgrade libraries?",
    ),
)
EVERYDAY_TUNING, EVERYDAY_HELD_BACK = EXCHANGES[:24], EXCHANGES[24:]
