"""The kinds of files ripgrep knows by name."""

import pytest

from ollm.domain.errors import ToolFailure
from ollm.tools.search.file_types import find_type_globs


async def test_a_type_is_its_globs() -> None:
    assert "*.py" in await find_type_globs("py")
    assert await find_type_globs("rust") == ("*.rs",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pyton", "fileType: there is no type 'pyton'; did you mean python"),
        ("qqqqqqqqqq", "fileType: there is no type 'qqqqqqqqqq', such as py, ts, rust, md."),
    ],
)
async def test_an_unknown_type_gets_the_nearest_names(name: str, said: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        await find_type_globs(name)
    assert caught.value.kind == "ValidationError"
    assert caught.value.message.startswith(said)
    assert caught.value.message.count(" or ") <= 2
