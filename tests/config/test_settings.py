"""Every setting there is: its type, its default and its bounds."""

import msgspec

from ollm.config.settings import CORE_ALLOW, CORE_DENY, Settings


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
