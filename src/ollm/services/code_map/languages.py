"""The languages that can be parsed: their files, grammars, and nodes that are definitions."""

from __future__ import annotations

from ollm.domain.struct import Data

# Grammars name their nodes alike, so one table serves all of them.
_NODES_BY_KIND = {
    "class": "class class_definition class_declaration abstract_class_declaration class_specifier",
    "function": "function_definition function_declaration generator_function_declaration function_signature"
    " function_expression arrow_function function_item function_signature_item assignment_expression pair declaration",
    "method": "method singleton_method method_definition method_signature abstract_method_signature method_declaration"
    " method_elem annotation_type_element_declaration",
    "constructor": "constructor_declaration compact_constructor_declaration",
    "interface": "interface_declaration",
    "annotation": "annotation_type_declaration",
    "record": "record_declaration",
    "struct": "struct_item struct_specifier",
    "union": "union_item union_specifier",
    "enum": "enum_declaration enum_item enum_specifier",
    "trait": "trait_item",
    "impl": "impl_item",
    "concept": "concept_definition",
    "module": "mod_item",
    "namespace": "module internal_module namespace_definition",
    "type": "type_alias_statement type_alias_declaration type_spec type_alias type_item type_definition"
    " alias_declaration",
    "constant": "assignment variable_declarator const_spec const_item static_item",
    "variable": "var_spec",
    "field": "public_field_definition field_definition field_declaration",
    "macro": "macro_definition preproc_def preproc_function_def",
}
_KINDS = {node: kind for kind, nodes in _NODES_BY_KIND.items() for node in nodes.split()}
_CONTAINERS = frozenset(
    "class class_definition class_declaration abstract_class_declaration class_specifier struct_specifier"
    " interface_declaration annotation_type_declaration record_declaration enum_declaration trait_item impl_item"
    " mod_item module internal_module namespace_definition type_spec".split()
)
_KINDS_BY_LANGUAGE = {
    ("ruby", "module"): "module",
    ("java", "field_declaration"): "constant",
    ("cpp", "field_declaration"): "method",
}


class CodeLanguage(Data, frozen=True, kw_only=False):
    """A parsable language. `wrappers` are nodes that may enclose definitions without owning them."""

    name: str
    suffixes: tuple[str, ...]
    wrappers: frozenset[str]
    module: str
    function: str = "language"

    def get_kind(self, node: str) -> str | None:
        """Return the kind of definition of a node, or None if it is not a definition."""
        return _KINDS_BY_LANGUAGE.get((self.name, node)) or _KINDS.get(node)

    def is_container(self, node: str) -> bool:
        """Return True if a definition may contain others. A C struct does not."""
        return node in _CONTAINERS and self.name != "c"


def _make_language(
    name: str, suffixes: str, wrappers: str, module: str = "", function: str = "language"
) -> CodeLanguage:
    module = f"tree_sitter_{module or name}"
    return CodeLanguage(name, tuple(suffixes.split()), frozenset(wrappers.split()), module, function)


_SCRIPT_WRAPPERS = (
    "export_statement ambient_declaration lexical_declaration variable_declaration expression_statement class_body"
    " interface_body object_type statement_block object"
)
_C_WRAPPERS = "preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification declaration_list"
_LANGUAGES = (
    _make_language(
        "python",
        "py pyi pyw",
        "block decorated_definition expression_statement if_statement else_clause elif_clause try_statement"
        " except_clause finally_clause with_statement for_statement while_statement match_statement case_clause",
    ),
    _make_language("javascript", "js jsx mjs cjs", _SCRIPT_WRAPPERS),
    _make_language("typescript", "ts mts cts", _SCRIPT_WRAPPERS, function="language_typescript"),
    _make_language("tsx", "tsx", _SCRIPT_WRAPPERS, "typescript", "language_tsx"),
    _make_language("go", "go", "type_declaration const_declaration var_declaration var_spec_list interface_type"),
    _make_language("rust", "rs", "declaration_list foreign_mod_item"),
    _make_language("java", "java", "class_body interface_body enum_body enum_body_declarations annotation_type_body"),
    _make_language("c", "c h", _C_WRAPPERS),
    _make_language(
        "cpp",
        "cc cpp cxx hpp hh hxx ipp inl",
        f"{_C_WRAPPERS} template_declaration field_declaration_list namespace_definition friend_declaration"
        " labeled_statement",
    ),
    _make_language("ruby", "rb rake gemspec", "body_statement singleton_class begin call argument_list do_block block"),
    _make_language("shell", "sh bash", "if_statement else_clause", "bash"),
)
_BY_SUFFIX = {suffix: language for language in _LANGUAGES for suffix in language.suffixes}
_TEXT_SUFFIXES = frozenset("md markdown rst adoc toml ini cfg yaml yml json txt html css scss sass less".split())
_OTHER_SUFFIXES = _TEXT_SUFFIXES | frozenset(
    "kt kts scala swift cs fs php pl pm lua zig nim ex exs erl hs ml mli clj cljs dart groovy gradle r jl m mm vue"
    " svelte sql proto thrift graphql tf hcl cmake ps1 psm1 vb pas d v sv sol zsh fish ksh el lisp scm tcl mk".split()
)
_OTHER_NAMES = frozenset({"makefile", "dockerfile", "rakefile", "gemfile", "justfile", "cmakelists.txt"})
_FAMILIES = {"typescript": "javascript", "tsx": "javascript", "vue": "javascript", "cpp": "c"}


def _get_suffix(name: str) -> str:
    base = name.rpartition("/")[2]
    return base.rpartition(".")[2].lower() if "." in base.lstrip(".") else ""


def find_language(name: str) -> CodeLanguage | None:
    return _BY_SUFFIX.get(_get_suffix(name))


def get_family(name: str) -> str:
    """Return the family of languages that can call each other, such as C and C++."""
    language = find_language(name)
    family = language.name if language else _get_suffix(name)
    return _FAMILIES.get(family, family)


def belongs_on_map(name: str) -> bool:
    """Return True if a file is read for a map: code or related text."""
    suffix = _get_suffix(name)
    return suffix in _BY_SUFFIX or suffix in _OTHER_SUFFIXES or name.rpartition("/")[2].lower() in _OTHER_NAMES


def is_code(name: str) -> bool:
    """Return True if a file is code rather than text."""
    return belongs_on_map(name) and _get_suffix(name) not in _TEXT_SUFFIXES
