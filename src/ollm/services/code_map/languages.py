"""The languages whose syntax can be parsed: their files, their grammar, and which nodes define something."""

from __future__ import annotations

from collections.abc import Mapping

from ollm.domain.struct import Data


class CodeLanguage(Data, frozen=True, kw_only=True):
    """`definitions` maps the nodes that define something to its kind, `containers` are those of them that are looked
    into, `wrappers` are other nodes that definitions may be in."""

    name: str
    module: str
    function: str = "language"
    definitions: Mapping[str, str]
    containers: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()


_PYTHON = CodeLanguage(
    name="python",
    module="tree_sitter_python",
    definitions={
        "class_definition": "class",
        "function_definition": "function",
        "assignment": "constant",
        "type_alias_statement": "type",
    },
    containers=frozenset({"class_definition"}),
    wrappers=frozenset(
        "module block decorated_definition expression_statement if_statement else_clause elif_clause try_statement "
        "except_clause finally_clause with_statement for_statement while_statement match_statement case_clause".split()
    ),
)
_SCRIPT = {
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "class": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "function_signature": "function",
    "method_definition": "method",
    "method_signature": "method",
    "abstract_method_signature": "method",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "namespace",
    "module": "namespace",
    "variable_declarator": "constant",
    "public_field_definition": "field",
    "field_definition": "field",
    "assignment_expression": "function",
    "pair": "function",
    "function_expression": "function",
    "arrow_function": "function",
}
_SCRIPT_CONTAINERS = frozenset(
    "class_declaration abstract_class_declaration class interface_declaration internal_module module".split()
)
_SCRIPT_WRAPPERS = frozenset(
    "program export_statement ambient_declaration lexical_declaration variable_declaration expression_statement "
    "class_body interface_body object_type statement_block object".split()
)


def _make_script(name: str, module: str, function: str = "language") -> CodeLanguage:
    return CodeLanguage(
        name=name,
        module=module,
        function=function,
        definitions=_SCRIPT,
        containers=_SCRIPT_CONTAINERS,
        wrappers=_SCRIPT_WRAPPERS,
    )


_JAVASCRIPT = _make_script("javascript", "tree_sitter_javascript")
_TYPESCRIPT = _make_script("typescript", "tree_sitter_typescript", "language_typescript")
_TSX = _make_script("tsx", "tree_sitter_typescript", "language_tsx")
_GO = CodeLanguage(
    name="go",
    module="tree_sitter_go",
    definitions={
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
        "type_alias": "type",
        "const_spec": "constant",
        "var_spec": "variable",
        "method_elem": "method",
    },
    containers=frozenset({"type_spec"}),
    wrappers=frozenset(
        "source_file type_declaration const_declaration var_declaration var_spec_list interface_type".split()
    ),
)
_RUST = CodeLanguage(
    name="rust",
    module="tree_sitter_rust",
    definitions={
        "function_item": "function",
        "function_signature_item": "function",
        "struct_item": "struct",
        "enum_item": "enum",
        "union_item": "union",
        "trait_item": "trait",
        "impl_item": "impl",
        "mod_item": "module",
        "const_item": "constant",
        "static_item": "constant",
        "type_item": "type",
        "macro_definition": "macro",
    },
    containers=frozenset({"trait_item", "impl_item", "mod_item"}),
    wrappers=frozenset({"source_file", "declaration_list", "foreign_mod_item"}),
)
_JAVA = CodeLanguage(
    name="java",
    module="tree_sitter_java",
    definitions={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "annotation_type_declaration": "annotation",
        "method_declaration": "method",
        "constructor_declaration": "constructor",
        "compact_constructor_declaration": "constructor",
        "annotation_type_element_declaration": "method",
        "field_declaration": "constant",
    },
    containers=frozenset(
        "class_declaration interface_declaration enum_declaration record_declaration "
        "annotation_type_declaration".split()
    ),
    wrappers=frozenset(
        "program class_body interface_body enum_body enum_body_declarations annotation_type_body".split()
    ),
)
_C_DEFINITIONS = {
    "function_definition": "function",
    "declaration": "function",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "type_definition": "type",
    "preproc_def": "macro",
    "preproc_function_def": "macro",
}
_C_WRAPPERS = frozenset(
    "translation_unit preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification declaration_list".split()
)
_C = CodeLanguage(name="c", module="tree_sitter_c", definitions=_C_DEFINITIONS, wrappers=_C_WRAPPERS)
_CPP = CodeLanguage(
    name="cpp",
    module="tree_sitter_cpp",
    definitions={
        **_C_DEFINITIONS,
        "class_specifier": "class",
        "namespace_definition": "namespace",
        "field_declaration": "method",
        "alias_declaration": "type",
        "concept_definition": "concept",
    },
    containers=frozenset({"class_specifier", "struct_specifier", "namespace_definition"}),
    wrappers=_C_WRAPPERS
    | frozenset(
        "template_declaration field_declaration_list namespace_definition friend_declaration labeled_statement".split()
    ),
)
_RUBY = CodeLanguage(
    name="ruby",
    module="tree_sitter_ruby",
    definitions={
        "class": "class",
        "module": "module",
        "method": "method",
        "singleton_method": "method",
        "assignment": "constant",
    },
    containers=frozenset({"class", "module"}),
    wrappers=frozenset(
        {"program", "body_statement", "singleton_class", "begin", "call", "argument_list", "do_block", "block"}
    ),
)
_SHELL = CodeLanguage(
    name="shell",
    module="tree_sitter_bash",
    definitions={"function_definition": "function"},
    wrappers=frozenset({"program", "if_statement", "else_clause"}),
)

_BY_SUFFIX: dict[str, CodeLanguage] = {
    **dict.fromkeys(("py", "pyi", "pyw"), _PYTHON),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), _JAVASCRIPT),
    **dict.fromkeys(("ts", "mts", "cts"), _TYPESCRIPT),
    "tsx": _TSX,
    "go": _GO,
    "rs": _RUST,
    "java": _JAVA,
    **dict.fromkeys(("c", "h"), _C),
    **dict.fromkeys(("cc", "cpp", "cxx", "hpp", "hh", "hxx", "ipp", "inl"), _CPP),
    **dict.fromkeys(("rb", "rake", "gemspec"), _RUBY),
    **dict.fromkeys(("sh", "bash"), _SHELL),
}
OTHER_SUFFIXES = frozenset(
    "kt kts scala swift cs fs php pl pm lua zig nim ex exs erl hs ml mli clj cljs dart groovy gradle r jl m mm vue "
    "svelte sql proto thrift graphql tf hcl cmake ps1 psm1 vb pas d v sv sol zsh fish ksh el lisp scm tcl "
    "css scss sass less md markdown rst adoc toml ini cfg yaml yml json mk txt html".split()
)
OTHER_NAMES = frozenset({"makefile", "dockerfile", "rakefile", "gemfile", "justfile", "cmakelists.txt"})


def get_suffix(name: str) -> str:
    """The ending of a file's name in small letters; nothing for a name without one."""
    base = name.rpartition("/")[2]
    return base.rpartition(".")[2].lower() if "." in base.lstrip(".") else ""


def find_language(name: str) -> CodeLanguage | None:
    """The language of a file that can be parsed, by its name."""
    return _BY_SUFFIX.get(get_suffix(name))


def get_family(name: str) -> str:
    """Return the group of languages whose names a file can use: those that call each other."""
    language = find_language(name)
    family = language.name if language else get_suffix(name)
    return {"typescript": "javascript", "tsx": "javascript", "vue": "javascript", "cpp": "c"}.get(family, family)


def belongs_on_map(name: str) -> bool:
    """Return True if a file is read for a map: code, and text about it."""
    suffix = get_suffix(name)
    return suffix in _BY_SUFFIX or suffix in OTHER_SUFFIXES or name.rpartition("/")[2].lower() in OTHER_NAMES


def is_code(name: str) -> bool:
    """Return True if a file defines things, in any supported language."""
    return belongs_on_map(name) and get_suffix(name) not in TEXT_SUFFIXES


TEXT_SUFFIXES = frozenset("md markdown rst adoc toml ini cfg yaml yml json txt html css scss sass less".split())
