"""Choose the tool call format for an unknown model: by its chat template, then its size, then its name.

Built-in facts about common model families. Facts learned from the model itself take precedence.
"""

from __future__ import annotations

from ollm.domain.lazy import compile_late
from ollm.domain.model_facts import CHAT_BELOW_PARAMETERS, CallForm
from ollm.domain.struct import Data
from ollm.providers.base import ModelInfo

BLOCKS_BELOW = 4e9  # Smaller models of unknown families write calls as blocks.
BLOCKS_WITHOUT_TOOLS_BELOW = 15e9  # This limit applies if the chat template knows no tools.
_SIZE = compile_late(r"(?<![\w.])e?(\d+(?:[._]\d+)?)\s*([bm])(?![a-z])")
_EXPERTS = compile_late(r"(\d+)x(\d+(?:\.\d+)?)b")


class ModelFamily(Data, frozen=True):
    """A model family. `native_from` is the size from which native calls work well; smaller models write blocks.
    `template` is a text that only its chat templates contain."""

    names: tuple[str, ...]  # Names of the family or its architecture, in lower case without dashes and dots.
    native_from: float
    template: str = ""
    usual: float | None = None  # The usual size under the bare name, if neither server nor name gives one.


FAMILIES = (
    ModelFamily(names=("codellama",), native_from=1e12, usual=7e9),
    ModelFamily(names=("gptoss",), native_from=0, template="<|channel|>"),
    ModelFamily(names=("qwen3",), native_from=3.9e9, template="enable_thinking"),
    ModelFamily(names=("qwen25coder",), native_from=20e9, usual=7e9),
    ModelFamily(names=("qwen2", "qwq"), native_from=6.5e9),
    ModelFamily(names=("llama32",), native_from=7e9, usual=3e9),
    ModelFamily(names=("llama3",), native_from=7e9, template="<|start_header_id|>"),
    ModelFamily(
        names=("devstral", "mistral", "mixtral", "ministral", "magistral", "codestral"),
        native_from=6e9,
        template="[AVAILABLE_TOOLS]",
    ),
    ModelFamily(names=("gemma3",), native_from=11e9, template="<start_of_turn>", usual=4e9),
    ModelFamily(names=("phi4mini",), native_from=13e9, usual=3.8e9),
    ModelFamily(names=("phi4",), native_from=13e9),
    ModelFamily(names=("phi3",), native_from=1e12, usual=3.8e9),
    ModelFamily(names=("deepseekcoder", "deepseekr1"), native_from=30e9),
    ModelFamily(names=("deepseek",), native_from=30e9, template="<｜tool▁calls▁begin｜>"),
    ModelFamily(names=("smollm3",), native_from=1e12, usual=3e9),
    ModelFamily(names=("smollm",), native_from=1e12, usual=1.7e9),
    ModelFamily(
        names=("granite40micro", "granite40hmicro", "granite4micro", "granite40tiny", "granite40htiny"),
        native_from=7e9,
        usual=3e9,
    ),
    ModelFamily(names=("granite3", "granite4"), native_from=7e9, template="<|start_of_role|>"),
)


def choose_first_form(info: ModelInfo, name: str) -> CallForm:
    """Choose the form for a first conversation. `unknown` starts with native calls and observes the output."""
    size = count_parameters(info, name)
    family = find_family(info, name)
    if family is not None and size is None and _names_family(family, info, name):
        size = family.usual
    if size is not None and size < CHAT_BELOW_PARAMETERS:
        return "none"
    if family is not None and size is not None:
        return "blocks" if size < family.native_from else "unknown"
    if size is not None and size < BLOCKS_BELOW:
        return "blocks"
    knows_tools = "tools" in info.template.lower() if info.template else True
    if not knows_tools and (size is None or size < BLOCKS_WITHOUT_TOOLS_BELOW):
        return "blocks"
    return "unknown"


def count_parameters(info: ModelInfo, name: str) -> float | None:
    return info.parameters or read_size(f"{name} {info.name}")


def find_family(info: ModelInfo, name: str) -> ModelFamily | None:
    """Find the family by the model's files first, then by its name, which can be arbitrary."""
    stated = f"{info.architecture} {info.title}".lower()
    for told in (stated, f"{name} {info.name}".lower()):
        if found := _find_named(told):
            return found
        if told is stated and info.template:
            marked = (family for family in FAMILIES if family.template and family.template in info.template)
            if found := next(marked, None):
                return found
    return None


def _names_family(family: ModelFamily, info: ModelInfo, name: str) -> bool:
    return _find_named(f"{name} {info.name} {info.title}".lower()) is family


def _find_named(told: str) -> ModelFamily | None:
    bare = told.replace("-", "").replace("_", "").replace(".", "")
    return next((family for family in FAMILIES if any(name in bare for name in family.names)), None)


def read_size(name: str) -> float | None:
    """Read the number of parameters from a name: `1.5b`, `270m`, `8x7b`."""
    name = name.lower()
    if experts := "x" in name and _EXPERTS.search(name):
        return int(experts[1]) * float(experts[2]) * 1e9
    sizes = [float(number.replace("_", ".")) * (1e9 if unit == "b" else 1e6) for number, unit in _SIZE.findall(name)]
    return max(sizes, default=None)
