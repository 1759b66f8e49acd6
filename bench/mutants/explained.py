"""Mutants that change nothing anybody could see, with the reason; they are drawn, counted and not judged."""

from pathlib import Path

from bench.mutants.sites import Mutant

CACHE = "what a cache holds is not seen"
BY_ONE = "a bound of work moved by one"
BLOCK = "how much is read at a time is not seen"
SLOWER = "written to the disk itself at once: only slower"
CLOCK = "how often the clock is looked at is not seen"
NEWER = "only a newer Python than the tests run with tells them apart"
SHARED = "how reading is shared between two processes is not seen"
EXPLAINED = {
    (
        "runtime/base.py",
        "async def history(self, before: int | None = None, limit: int = 50) -> list[dict[str, Any]]:",
        "constant",
    ): "a protocol is never called",
    ("runtime/commands/session.py", "MAX_PAGE_MESSAGES = 10**9", "constant"): "no session has so many messages",
    ("runtime/commands/diff.py", "MAX_MESSAGES = 10**9", "constant"): "no session has so many messages",
    ("runtime/commands/rewind.py", "PAGE_MESSAGES = 20  # read at a time", "constant"): BLOCK,
    ("runtime/observers/file_checkpoints.py", "if loop.time() - began > SLOW_SECONDS:", "comparison"): (
        "no clock strikes it exactly"
    ),
    (
        "runtime/prompt/compaction.py",
        "passed = prompt.used_tokens >= self._settings.snapshots.auto_threshold * limit",
        "comparison",
    ): BY_ONE,
    ("runtime/prompt/project_instructions.py", "data = opened.read(MAX_FILE_BYTES + 1)", "constant"): BLOCK,
    ("runtime/prompt/prompt.py", "self.revision += 1", "constant"): "another number is another number",
    (
        "runtime/resume/workspace_record.py",
        "grown = self._written < SMALL_RECORD_CHARS or self._said * 2 >= self._written",
        "comparison",
    ): BY_ONE,
    (
        "runtime/observers/model_facts.py",
        "moved = abs(factor - known.token_factor) > MIN_TOKEN_FACTOR_CHANGE * known.token_factor",
        "comparison",
    ): "no share strikes it exactly",
    ("runtime/resume/workspace_record.py", "self._said = 0", "constant"): BY_ONE,
    ("runtime/resume/workspace_record.py", "self._written = 0", "constant"): BY_ONE,
    ("runtime/resume/workspace_sessions.py", "newest = session.messages[-settings.messages * 2 :]", "constant"): (
        "the window takes as many of them as it wants"
    ),
    (
        "services/chat_compression/options.py",
        "summary_max_tokens: int = 1024",
        "constant",
    ): "the runtime always says it",
    ("services/chat_compression/service.py", "if not asked or work.total <= work.target:", "comparison"): BY_ONE,
    ("services/chat_compression/service.py", "if work.total <= work.target:", "comparison"): BY_ONE,
    ("services/checkpoints.py", "if counter.count_text(text) <= tokens:", "comparison"): BY_ONE,
    ("services/code_map/facts.py", "name = hashlib.sha256(os.fsencode(root)).hexdigest()[:24]", "constant"): CACHE,
    (
        "services/file_checkpoints/capture.py",
        "return found is not None and found.entries is entries",
        "return",
    ): "a shorter way to the same answer",
    ("services/file_discovery/git.py", 'line = opened.readline(4096).rstrip("\\n")', "constant"): BLOCK,
    (
        "services/file_discovery/parallel_walk.py",
        "MIN_ALONE_DIRECTORIES = 150  # directories that one process has read before another could have started",
        "constant",
    ): SHARED,
    (
        "services/file_discovery/parallel_walk.py",
        "MIN_WAITING_DIRECTORIES = 8  # directories that must wait for two to have something to do",
        "constant",
    ): SHARED,
    (
        "services/file_discovery/parallel_walk.py",
        "MAX_PENDING_REQUESTS = 2  # orders under way, so that the other is never without one",
        "constant",
    ): SHARED,
    (
        "services/file_discovery/parallel_walk.py",
        "_OWN_DIRECTORIES = 8  # directories read here between two looks at what has come back",
        "constant",
    ): SHARED,
    ("services/file_discovery/project_map.py", "while waiting and failures < _MAX_FAILURES:", "comparison"): BY_ONE,
    ("services/file_discovery/watch.py", "self.generation += 1", "constant"): "another number is another number",
    (
        "services/file_discovery/watch.py",
        "if len(paths) > _MAX_WORDS or any(path.endswith((GIT_IGNORE, OLLM_IGNORE)) for path in paths):",
        "comparison",
    ): "a shorter way to the same answer",
    (
        "services/snapshots/manager.py",
        "share = current_tokens / max_tokens if max_tokens > 0 else 0.0",
        "constant",
    ): "no window has one token",
    ("services/token_counting.py", "self._units.move_to_end(text)", "call removed"): CACHE,
    ("services/file_discovery/wildmatch.py", "if end < 0:", "comparison"): "it is looked for behind the beginning",
    ("services/syntax_check.py", "NEWEST_SYNTAX = (3, 14)", "constant"): NEWER,
    (
        "services/syntax_check.py",
        'return sys.version_info < NEWEST_SYNTAX and bool(_NEWER_LINE.match(line) or error.msg.startswith("f-string"))',
        "comparison",
    ): NEWER,
    ("services/protected_facts.py", "return bare.isalpha() and bare[1:].islower()", "return"): (
        "a shorter way to the same answer"
    ),
    ("services/file_discovery/walk.py", 'return bool(names) and names[0] < "/"', "comparison"): "no name is a slash",
    (
        "services/background_jobs.py",
        'fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *TERMINAL_SIZE, 0, 0))',
        "constant",
    ): "nobody asks for a terminal's size in pixels",
    (
        "services/prefix_ledger.py",
        "reused_share=kept / (self._last_tokens or 1) if before else 1.0,",
        "constant",
    ): "nothing is nothing, by whatever it is divided",
    (
        "services/recent_window.py",
        "self._ring: deque[PromptMessage] = deque(maxlen=max(settings.messages * 2, 8))",
        "constant",
    ): "the window takes as many of them as it wants",
    (
        "store/database.py",
        "return found.f_blocks > 0 and found.f_bavail * found.f_frsize < MIN_ROOM_BYTES",
        "constant",
    ): "no disk has one block",
    ("store/database.py", "header = file.read(100)", "constant"): BLOCK,
    ("store/file_objects.py", "self._parts.add(part)", "call removed"): CACHE,
    ("store/session_files/copies.py", "_CHUNK_BYTES = 1 << 20", "constant"): BLOCK,
    ("store/session_files/document_guard.py", "_CHUNK_BYTES = 1 << 20", "constant"): BLOCK,
    ("store/session_files/encodings.py", "_CHUNK_BYTES = 1 << 20", "constant"): BLOCK,
    ("store/session_files/lines.py", "BUFFER_BYTES = 1 << 18", "constant"): BLOCK,
    ("store/session_files/lines.py", "LONG_LINE_BYTES = 1 << 20", "constant"): BLOCK,
    (
        "store/session_files/loading.py",
        "CHECK_EVERY_ENTRIES = 1024  # entries between two looks at the clock",
        "constant",
    ): CLOCK,
    ("store/session_files/marks.py", "_BLOCK_BYTES = 1 << 18", "constant"): BLOCK,
    ("store/session_files/marks.py", "_MARK_BYTES = 1 << 12  # of most marks", "constant"): BLOCK,
    ("store/session_files/scan.py", "_CHECK_EVERY_ENTRIES = 256", "constant"): CLOCK,
    (
        "store/session_files/sections.py",
        "def __init__(self, file: BinaryIO, block: int = 64 * 1024) -> None:",
        "constant",
    ): BLOCK,
    (
        "store/session_index/erasing.py",
        "STEP_PAGES = 500  # pages merged in one transaction: others may write in between",
        "constant",
    ): BLOCK,
    (
        "store/session_index/erasing.py",
        "BATCH_TEXTS = 2_000  # texts taken out in one transaction",
        "constant",
    ): BLOCK,
    (
        "store/session_index/search.py",
        "MAX_SESSIONS = 500  # that a question names; with more of them each hit is asked where it comes from",
        "constant",
    ): "a shorter way to the same answer",
    (
        "store/file_objects.py",
        "replace_file(self._state, msgspec.json.encode(state), durable=False)",
        "constant",
    ): SLOWER,
    ("store/file_objects.py", "replace_file(Path(path), content, durable=False)", "constant"): SLOWER,
    (
        "store/session_files/objects.py",
        "following = _ENTRY_START.search(data, start + 1, start + WINDOW_BYTES)",
        "arithmetic",
    ): "a shorter way to the same answer",
    (
        "store/session_files/objects.py",
        "following = _ENTRY_START.search(data, start + 1, start + WINDOW_BYTES)",
        "constant",
    ): "a shorter way to the same answer",
    ("policy/shell/rules.py", "start = text.find(value, start + 1)", "constant"): (
        "what is found one letter on is all one letter, and judged like what was found before"
    ),
    ("services/code_map/service.py", "FIRST_LINE_TOKENS = 500  # any map begins within them", "constant"): (
        "any map begins within half of them"
    ),
    (
        "services/code_map/syntax_tree.py",
        "self._visit_children(held, found.full_name, None, depth + 1)",
        "constant",
    ): BY_ONE,
    (
        "services/code_map/syntax_tree.py",
        'exported = node.parent is not None and node.parent.type == "export_statement"',
        "and/or",
    ): "nothing else that holds one is looked into",
    ("services/code_map/syntax_tree.py", "return end if place < 0 else place", "constant"): (
        "what has a name does not begin with its brace"
    ),
    (
        "services/request_reading/answer_beginnings.py",
        'name, place = next(iter(find_made_files(request)), ("", 0))',
        "constant",
    ): "where nothing is does not matter",
    (
        "services/request_reading/excerpts.py",
        "if sum(end - start for start, end in merge_spans(spans)) <= MAX_EXCERPT_LINES / 2:",
        "comparison",
    ): BY_ONE,
    ("services/file_checkpoints/capture.py", "self._read = 0", "constant"): "it is set before it is looked at",
    ("services/file_checkpoints/capture.py", "self._began = 0", "constant"): "it is set before it is looked at",
    ("services/file_checkpoints/capture.py", "self._generation = 0", "constant"): "it is set before it is looked at",
    (
        "services/file_discovery/watch.py",
        "_DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS = 50, 10, 1000  # milliseconds",
        "constant",
    ): "how long the system's words are gathered is not seen",
    (
        "store/session_files/reader.py",
        "self._call_places = {name: found for name, found in self._call_places.items() if found[0][0] < stop}",
        "constant",
    ): "a mark stands before what the user says: all that is written of a call is on one side of it",
    (
        "store/session_files/reader.py",
        "self._call_places = {name: found for name, found in self._call_places.items() if found[0][0] < stop}",
        "comparison",
    ): "a mark stands there, which is no entry",
    ("store/session_files/reader.py", "if start >= stop:", "comparison"): "a mark stands there, which is no entry",
    (
        "store/session_files/store.py",
        "return SessionStream(reader, writer.session_id, alive=True, fallback=self.clock()).read_user_words()",
        "constant",
    ): "whether a call goes on is not asked there",
    ("store/session_files/store.py", "path.unlink(missing_ok=True)", "constant"): (
        "another program would have to remove it between two looks"
    ),
    ("store/session_files/sections.py", "while end - size > start:", "comparison"): BLOCK,
    (
        "store/session_index/texts.py",
        'return text if len(text) < MIN_PACKED_CHARS else zlib.compress(text.encode("utf-8", "replace"), 6)',
        "constant",
    ): "how hard a text is packed is not seen",
    ("store/session_files/sections.py", "while high - low > self._block:", "comparison"): BLOCK,
    ("store/session_index/index.py", "for _ in range(2):", "constant"): "another look finds the same",
    ("store/session_index/stamps.py", "BATCH_BYTES = 8_000_000", "constant"): BLOCK,
    (
        "store/session_index/texts.py",
        "_SIGNS = 0x700",
        "constant",
    ): "texts whose signs share a mark are told apart by themselves",
    ("store/team_archive/reading.py", "_FETCH_ROWS = 200", "constant"): BLOCK,
    (
        "store/team_archive/schema.py",
        "_LOCK_KEY = 0x6F6C6C6D  # one machine at a time changes the schema",
        "constant",
    ): "another number is another number",
    (
        "store/session_files/marks.py",
        "while place >= 0:",
        "constant",
    ): "what is looked for never stands at the beginning",
    (
        "store/session_files/marks.py",
        "place = block.rfind(_MARK, 0, place)",
        "constant",
    ): "what is looked for never stands at the beginning",
    (
        "store/session_files/document.py",
        "end = find_end(memoryview(text), start) if place >= 0 else None",
        "constant",
    ): "what is looked for never stands at the beginning",
    ("store/team_archive/reading.py", "return (int(row[0]), int(row[1])) if row else (0, 0)", "constant"): (
        "a count always gives a row"
    ),
}


def find_reason(mutant: Mutant, root: Path) -> str:
    """By module, the line that is changed, and the kind of change."""
    module = str(mutant.path.relative_to(root / "src" / "ollm"))
    line = mutant.path.read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    return EXPLAINED.get((module, line, mutant.kind), "")
