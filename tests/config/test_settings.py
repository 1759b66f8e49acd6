"""Every setting there is: its type, its default and its bounds."""

from typing import Any

import msgspec
import pytest

from ollm.config.settings import CORE_ALLOW, CORE_DENY, Settings
from ollm.config.show import make_document


def convert(document: dict[str, Any]) -> Settings:
    return msgspec.convert(document, Settings)


def nest(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value  # type: ignore[no-any-return]


def find(document: dict[str, Any], path: str) -> Any:
    for name in path.split("."):
        document = document[name]
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sessions.dataDir", "~/.ollm/sessions"),
        ("sessions.maxSessions", 100),
        ("sessions.autoSave", True),
        ("sessions.trashDays", 30),
        ("snapshots.enabled", True),
        ("snapshots.maxCount", 5),
        ("snapshots.autoCreate", True),
        ("snapshots.autoThreshold", 0.85),
        ("compression.enabled", True),
        ("compression.strategy", "hybrid"),
        ("compression.threshold", 0.8),
        ("compression.preserveRecent", 4096),
        ("compression.summaryMaxTokens", 1024),
        ("compression.timeout", 60),
        ("loopDetection.enabled", True),
        ("loopDetection.maxTurns", 50),
        ("loopDetection.repeatThreshold", 3),
        ("fileDiscovery.maxDepth", None),
        ("fileDiscovery.followSymlinks", False),
        ("fileDiscovery.projectMap", 0),
        ("policy.defaultAction", "ask"),
        ("policy.approval", "ask"),
        ("policy.confirmationTimeout", 0),
        ("sandbox.mode", "auto"),
        ("sandbox.network", None),
        ("sandbox.autoApprove", False),
        ("modes.default", "code"),
        ("modes.autoSwitch", "off"),
        ("tools.output.maxChars", 30_000),
        ("tools.output.maxLines", 1_000),
        ("tools.readFile.maxBytes", 10 * 1024 * 1024),
        ("tools.shell.timeout", 120),
        ("tools.shell.idleTimeout", 0),
        ("tools.shell.maxBackground", 16),
        ("tools.webFetch.timeout", 30),
        ("tools.webFetch.maxBytes", 5_000_000),
        ("tools.webFetch.maxLength", 20_000),
        ("tools.webSearch.numResults", 5),
        ("tools.maxResults", 100),
        ("tools.maxDepth", 3),
        ("provider.type", None),
        ("provider.callForm", "auto"),
        ("provider.timeouts.connect", 5),
        ("provider.timeouts.firstToken", 600),
        ("provider.timeouts.stall", 120),
        ("resume.messages", 40),
        ("resume.messageChars", 8_000),
        ("resume.toolOutputChars", 4_000),
        ("resume.totalChars", 80_000),
        ("resume.summaryChars", 4_000),
        ("daemon.maxClients", 64),
        ("daemon.drainSeconds", 10),
        ("daemon.idleMinutes", 30),
        ("screen.keys", "emacs"),
        ("screen.bell", True),
        ("screen.plain", False),
        ("hooks", {}),
        ("mcpServers", {}),
    ],
)
def test_what_is_used_where_nothing_is_set(path: str, value: Any) -> None:
    assert find(make_document(Settings()), path) == value


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("sessions.maxSessions", 0, -1),
        ("sessions.trashDays", 0, -1),
        ("snapshots.maxCount", 1, 0),
        ("snapshots.autoThreshold", 1, 1.1),
        ("compression.threshold", 0.01, 0),
        ("compression.summaryMaxTokens", 1, 0),
        ("compression.strategy", "truncate", "none"),
        ("loopDetection.repeatThreshold", 2, 1),
        ("loopDetection.maxTurns", 1, 0),
        ("fileDiscovery.maxDepth", 0, -1),
        ("policy.defaultAction", "deny", "maybe"),
        ("policy.approval", "yolo", "all"),
        ("policy.confirmationTimeout", 0, -0.1),
        ("sandbox.mode", "require", "on"),
        ("sandbox.network", "loopback", "some"),
        ("modes.default", "plan", "think"),
        ("tools.output.maxChars", 1, 0),
        ("tools.shell.timeout", 0.1, 0),
        ("tools.webFetch.timeout", 0.1, 0),
        ("tools.maxDepth", 1, 0),
        ("provider.type", "llama.cpp", "gpt"),
        ("provider.contextWindow", 512, 511),
        ("provider.callForm", "blocks", "xml"),
        ("provider.timeouts.stall", 0.1, 0),
        ("daemon.idleMinutes", 0.1, 0),
        ("daemon.drainSeconds", 0, -1),
        ("screen.keys", "vi", "nano"),
        ("sessions.autoSave", False, "no"),
    ],
)
def test_bounds_and_choices(path: str, good: Any, bad: Any) -> None:
    assert find(make_document(convert(nest(path, good))), path) == good
    with pytest.raises(msgspec.ValidationError, match=path.rsplit(".", maxsplit=1)[-1]):
        convert(nest(path, bad))


def test_the_document_is_read_back_as_the_same_settings() -> None:
    settings = convert({"sessions": {"maxSessions": 5}, "policy": {"rules": [{"tool": "shell"}]}})

    assert convert(make_document(settings)) == settings


def test_tools_are_given_the_usual_variables_and_no_secrets() -> None:
    assert {"PATH", "HOME", "LANG", "LC_*"} <= set(CORE_ALLOW)
    assert {"*_KEY", "*_TOKEN", "*_PASSWORD", "AWS_*"} <= set(CORE_DENY)


def test_every_setting_says_what_it_is_for() -> None:
    def walk(kind: msgspec.inspect.Type, path: str) -> list[str]:
        assert isinstance(kind, msgspec.inspect.StructType)
        missing = []
        for field in kind.fields:
            where = f"{path}.{field.encode_name}".lstrip(".")
            if isinstance(field.type, msgspec.inspect.StructType):
                missing += walk(field.type, where)
            elif not (
                isinstance(field.type, msgspec.inspect.Metadata)
                and (field.type.extra_json_schema or {}).get("description")
            ):
                missing.append(where)
        return missing

    assert walk(msgspec.inspect.type_info(Settings), "") == []
