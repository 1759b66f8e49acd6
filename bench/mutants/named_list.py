"""What can be switched off by one change, with the test that notices: things that once were off without any test
failing, and a draw from those whose proofs an audit found weak."""

from typing import NamedTuple

SETTINGS = "tests/cli/test_settings_by_effect.py::"
SERVICES = "tests/cli/test_services_by_effect.py::"
VARIABLES = SETTINGS + "test_a_command_of_the_model_sees_the_variables_that_the_settings_let_through"
COMPRESSION = "tests/services/chat_compression/test_service.py::"
LOOPS = "tests/services/loop_detection/test_loop_detection.py::"


class NamedMutant(NamedTuple):
    """In `module`, `before` becomes `after`; `test` is a test's name without its parameters."""

    switched_off: str
    module: str
    before: str
    after: str
    test: str


NAMED = [
    NamedMutant(
        "S4.2 equal outputs are recorded",
        "runtime/turn.py",
        "self._parts.loops.record_output(answer.text)",
        "pass",
        SETTINGS + "test_a_loop_of_equal_outputs_ends_the_turn_where_the_settings_say",
    ),
    NamedMutant(
        "S4.3 steps are counted",
        "runtime/turn.py",
        "self._parts.loops.record_turn()",
        "pass",
        SETTINGS + "test_a_loop_of_equal_outputs_ends_the_turn_where_the_settings_say",
    ),
    NamedMutant(
        "S8.6, S8.7 the settings of loop detection",
        "app/storage.py",
        "return LoopDetectionService(settings, self.stream.emit)",
        "return LoopDetectionService(type(settings)(), self.stream.emit)",
        SETTINGS + "test_a_loop_of_equal_outputs_ends_the_turn_where_the_settings_say",
    ),
    NamedMutant(
        "D247 a message of the user resets the tracking",
        "runtime/turn.py",
        "self._parts.loops.reset()",
        "pass",
        SERVICES + "test_two_turns_may_make_the_same_calls",
    ),
    NamedMutant(
        "S9.4 maxSessions",
        "services/chat_recording/service.py",
        "            self._enforce_limit(session_id)",
        "            pass",
        SETTINGS + "test_the_oldest_sessions_go_by_themselves_when_there_are_more_than_the_maximum",
    ),
    NamedMutant(
        "S8.3 compression.threshold",
        "runtime/prompt/prompt.py",
        "self._settings.compression.threshold)",
        "0.8)",
        SETTINGS + "test_the_threshold_decides_when_old_messages_are_compacted",
    ),
    NamedMutant(
        "S8.4 compression.strategy",
        "runtime/prompt/compaction.py",
        "strategy=wanted.strategy,",
        'strategy="hybrid",',
        SERVICES + "test_the_strategy_decides_whether_a_model_writes_the_summary",
    ),
    NamedMutant(
        "S8.5 compression.preserveRecent",
        "runtime/prompt/compaction.py",
        "wanted.preserve_recent)",
        "4096)",
        SETTINGS + "test_as_many_of_the_newest_answers_stay_whole_as_the_settings_say",
    ),
    NamedMutant(
        "H303 a snapshot says whether the model thinks",
        "services/snapshots/form.py",
        "is_reasoning_model=state.reasoning_model",
        "is_reasoning_model=False",
        SERVICES + "test_a_snapshot_says_what_was_asked_and_whether_the_model_thinks",
    ),
    NamedMutant(
        "W121 a resume names the step of the plan",
        "runtime/resume/resume.py",
        "if plan.current_step and not plan.current_step.done:",
        "if False:",
        SERVICES + "test_a_resume_holds_summary_and_plan_step_and_says_to_go_on",
    ),
    NamedMutant(
        "D260 an entry's time",
        "services/context_manager.py",
        "timestamp=format_stamp(self._clock()),",
        'timestamp="2026-01-01T00:00:00.000Z",',
        SERVICES + "test_an_entry_of_a_hook_lasts_from_the_time_it_was_added",
    ),
    NamedMutant(
        "W98 a turn sets updated_at",
        "runtime/resume/workspace_record.py",
        "            updated_at=now,\n",
        "",
        SERVICES + "test_a_turn_in_an_open_chat_sets_the_time_of_its_session",
    ),
    NamedMutant(
        "W125 calls in the window of a resume",
        "services/message_records.py",
        'calls=tuple(call for entry in record.get("tool_calls") or () if (call := read_call(entry))),',
        "calls=(),",
        "tests/cli/test_resume.py::test_another_model_takes_a_session_up_from_summary_and_window",
    ),
    NamedMutant(
        "S10.3 a failed summary is in the log",
        "services/chat_compression/service.py",
        '_log.warning("Summarising failed: %s", error)',
        "pass",
        SETTINGS + "test_a_summary_that_fails_is_in_the_log_and_the_turn_goes_on",
    ),
    NamedMutant(
        "D616 arguments that cannot be compared are in the log",
        "services/loop_detection/calls.py",
        '_log.warning("arguments of a call cannot be compared exactly: %s", error)',
        "pass",
        LOOPS + "test_arguments_that_cannot_be_compared_exactly_are_watched_all_the_same",
    ),
    NamedMutant(
        "D201 truncate goes on until it is under its target",
        "services/chat_compression/compression_state.py",
        "            self._merge_oldest()\n",
        "            pass\n",
        COMPRESSION + "test_truncate_alone_removes_the_oldest_also_what_the_user_said",
    ),
    NamedMutant(
        "D221 detection can be switched off",
        "services/loop_detection/__init__.py",
        "        if not self.settings.enabled:\n            return None",
        "        if False:\n            return None",
        SETTINGS + "test_a_loop_of_equal_outputs_ends_the_turn_where_the_settings_say",
    ),
    NamedMutant(
        "H612 what the user said stays",
        "services/chat_compression/compression_state.py",
        "if is_user_group(group) or self.total <= self.target:",
        "if self.total <= self.target:",
        COMPRESSION + "test_user_messages_and_pairs_of_call_and_result_survive",
    ),
    NamedMutant(
        "P12 a compaction makes the context smaller",
        "runtime/prompt/compaction.py",
        "return used > rules.compute_working_trigger(budget) or not prompt.view_context().reads_results",
        "return False",
        SETTINGS + "test_the_threshold_decides_when_old_messages_are_compacted",
    ),
    NamedMutant(
        "P14 repeatThreshold identical calls are a loop",
        "services/loop_detection/calls.py",
        "limit = self._threshold * (POLLING_FACTOR if self._is_polling else 1)",
        "limit = self._threshold * POLLING_FACTOR",
        LOOPS + "test_the_nth_identical_call_in_a_row_is_a_loop",
    ),
    NamedMutant(
        "P20 all entries are in the prompt",
        "services/context_manager.py",
        "return [entry for entry in self.get_context() if not entry.volatile]",
        "return [entry for entry in self.get_context() if not entry.volatile][:1]",
        "tests/extensions/test_loader.py::test_context_of_hook_extension_and_user_stands_by_priority_in_every_turn",
    ),
    NamedMutant(
        "P25 variables that match deny patterns are removed",
        "services/environment_sanitization.py",
        "(*CORE_DENY, *EXTRA_DENY_PATTERNS, *good_deny)",
        "(*good_deny,)",
        VARIABLES,
    ),
    NamedMutant(
        "P8 the oldest go until the count fits",
        "services/chat_recording/library.py",
        "if len(sessions) - len(gone) <= limit:",
        "if gone:",
        "tests/services/chat_recording/test_properties.py::test_over_the_limit_the_oldest_go_until_it_is_kept",
    ),
    NamedMutant(
        "S1.8 the token count is in the file",
        "services/chat_recording/service.py",
        "tokens += self._count_tokens(part.text)",
        "pass",
        SERVICES + "test_the_archive_names_the_model_and_every_compression_and_the_history_its_times",
    ),
    NamedMutant(
        "S1.8, D113 the results of calls are in the token count",
        "services/chat_recording/service.py",
        "    return held + tokens\n",
        "    return held\n",
        SERVICES + "test_the_token_count_holds_what_was_said_and_what_tools_brought",
    ),
    NamedMutant(
        "S3.4 a summary stands for older messages",
        "services/chat_compression/service.py",
        "text = self._add_facts(summary.drop_repeats(text, asked), work, originals, (longest, replaced), asked)",
        'text = ""',
        COMPRESSION + "test_the_second_answer_is_used_when_the_first_was_bad",
    ),
    NamedMutant(
        "S7.3 the core variables pass",
        "services/environment_sanitization.py",
        "(*CORE_ALLOW, *HARMLESS_NAMES, *good_allow)",
        "(*HARMLESS_NAMES, *good_allow)",
        VARIABLES,
    ),
    NamedMutant(
        "S7.8 the environment of tools is sanitised",
        "app/run_settings.py",
        "return self.sanitization.sanitize(self.environment)",
        "return dict(self.environment)",
        VARIABLES,
    ),
    NamedMutant(
        "S8.8 the settings' patterns for the environment",
        "app/run_settings.py",
        "rules = msgspec.structs.replace(configured, deny_patterns=(*configured.deny_patterns, *named))",
        "rules = msgspec.structs.replace(configured, deny_patterns=named)",
        VARIABLES,
    ),
    NamedMutant(
        "T10.4 an invocation says what must be confirmed",
        "runtime/calls/permission.py",
        "details = invocation.confirmation(verdict) or ConfirmationDetails(",
        "details = ConfirmationDetails(",
        SERVICES + "test_what_must_be_confirmed_is_said_with_what_it_touches",
    ),
    NamedMutant(
        "W68 the rolling summary is the long memory",
        "runtime/resume/resume.py",
        'lines = [RESUME_INTRO, summary or "No notes."]',
        'lines = [RESUME_INTRO, "No notes."]',
        SERVICES + "test_a_resume_holds_summary_and_plan_step_and_says_to_go_on",
    ),
    NamedMutant(
        "H481 a history shows times",
        "cli/sessions/text.py",
        "{name}{mark}  {moment(message.timestamp)}",
        "{name}{mark}",
        "tests/cli/sessions/test_view.py::test_view_shows_roles_times_thinking_and_calls",
    ),
    NamedMutant(
        "P21 a higher priority comes first",
        "services/context_manager.py",
        "key=lambda entry: -entry.priority)",
        "key=lambda entry: entry.priority)",
        "tests/extensions/test_loader.py::test_context_of_hook_extension_and_user_stands_by_priority_in_every_turn",
    ),
    NamedMutant(
        "H508 no maximum keeps all",
        "services/chat_recording/library.py",
        "if limit == 0 or len(",
        "if len(",
        SETTINGS + "test_no_maximum_keeps_every_session",
    ),
    NamedMutant(
        "S7.6, P26 what the allow list names passes",
        "services/environment_sanitization.py",
        "allowed = self.is_allowed(name) and not runs",
        "allowed = False",
        VARIABLES,
    ),
    NamedMutant(
        "W116 a pause is restored",
        "app/resumed_conversation.py",
        "parts.plan.set_paused(record.plan.paused)",
        "pass",
        "tests/cli/test_workspace_memory.py::test_a_plan_belongs_to_its_session_and_is_restored_with_it",
    ),
    NamedMutant(
        "P5 a session's messages are counted where there is no index",
        "store/session_files/store.py",
        "            message_count=count,\n            token_count=session.metadata.token_count,",
        "            message_count=0,\n            token_count=session.metadata.token_count,",
        "tests/services/chat_recording/test_properties.py::test_a_list_has_every_session_with_its_counts",
    ),
    NamedMutant(
        "T10.3 a call that writes names its file",
        "tools/write_file.py",
        'return [Location(target=self.path, access="write")]',
        "return []",
        "tests/tools/test_catalogue.py::test_every_call_names_what_it_touches",
    ),
]
