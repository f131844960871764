"""Fixes for values of the wrong kind in a space file, as ends of messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

import yaml

from autotune.core.syntax import parse_expression
from autotune.core.text import hint, nearest
from autotune.space.yaml_advice import in_quotes

# Keys that people expect, and the key that has this meaning here.
_MEANT = {
    **{"size": "shape", "length": "shape", "type": "dtype", "init": "fill", "kernel": "entry"},
    **{"function": "entry", "threads": "block", "tolerance": "rtol", "conditions": "constraints"},
}
_FILLS_MEANT = {"zeros": "constant", "zero": "constant", "ones": "constant", "random": "uniform"}
_FILLS = {  # what follows each
    **{"integers": "[0, 100]", "uniform": "[0, 1]", "normal": "[0, 1]", "sequence": "[0, 1]"},
    **{"constant": "0", "copy": "ARGUMENT", "transpose": "ARGUMENT", "file": "FILE"},
}
_SERIES = ("range(", "powers_of_two(")
_LISTED = re.compile(r"[(\[{]?\s*([\w ,.-]+?)\s*[)\]}]?")
_SPAN = re.compile(r"(\d{1,9})\s*(?:\.{2,}|-|:|to)\s*(\d{1,9})\b.*")


def key_advice(name: str, value: yaml.Node, known: Collection[str]) -> str:
    """The probable meaning of an unknown key."""
    if re.search(r"[)\]]", name) and isinstance(value, yaml.ScalarNode) and not value.value:
        return "; it is the rest of a value with a comma: put the value in quotes, or write a list in [ ]"
    return f"; did you mean {_MEANT[name]}?" if _MEANT.get(name) in known else hint(name, known)


def list_advice(node: yaml.Node) -> str:
    """The fix for a value that is no list."""
    if isinstance(node, yaml.MappingNode) and node.value:
        if all(isinstance(value, yaml.ScalarNode) and not value.value for _, value in node.value):
            return f"; write [{', '.join(str(key.value) for key, _ in node.value)}]"
        if all(isinstance(value, yaml.MappingNode) for _, value in node.value):
            return f"; write every entry as `- {{name: {node.value[0][0].value}, ...}}`"
        key, value = node.value[0]
        entry = f"{key.value}: {value.value}" if isinstance(value, yaml.ScalarNode) else f"{key.value}: ..."
        return f"; write `- {{{entry}, ...}}`, with one dash for each entry"
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        return ""
    if node.start_mark and node.start_mark.line < node.end_mark.line:
        return "; write a dash and a space before every entry"
    return f"; write [{', '.join(in_quotes(part) if ',' in part else part for part in _entries(node.value))}]"


def _entries(text: str) -> list[str]:
    """The expressions of a text with commas between them."""
    try:
        whole = parse_expression(text)
    except (SyntaxError, RecursionError):  # the latter of a long expression
        return [text]
    return [ast.unparse(part) for part in whole.elts] if isinstance(whole, ast.Tuple) else [text]


def mapping_advice(node: yaml.Node, example: str) -> str:
    """The fix for a value that is no mapping; `example` is a mapping."""
    entries = node.value if isinstance(node, yaml.SequenceNode) else []
    if entries and all(isinstance(entry, yaml.MappingNode) for entry in entries):
        return "; write its entries without dashes"
    return f"; write it as {example}"


def value_advice(node: yaml.Node) -> str:
    """The fix for a list where one value is expected."""
    entries = node.value if isinstance(node, yaml.SequenceNode) else []
    if not entries or not isinstance(entries[0], yaml.ScalarNode):
        return ""
    entry = entries[0].value
    return f"; write {entry}" if len(entries) == 1 else f"; write one of its values, such as {entry}"


def series_advice(text: str, *, is_quoted: bool) -> str:
    """The fix for a text that is neither a list of values nor a series."""
    if text.startswith(_SERIES):
        if not text.endswith(")"):
            return f"; close its bracket: write {text})"
        name = text.partition("(")[0]
        return f"; write whole numbers, such as {name}(32, {513 if name == 'range' else 512})"
    if span := _SPAN.fullmatch(text):
        low, high = sorted((int(span[1]), int(span[2])))
        step = f", {low}" if low > 1 and high % low == 0 else ""
        powers = f"powers_of_two({low}, {high}), or " if low.bit_count() == 1 else ""
        return f"; write {powers}range({low}, {high + 1}{step})"
    if listed := _LISTED.fullmatch(text):
        return f"; write [{listed[1]}]{' without quotes' if is_quoted else ''}"
    return nearest(text.partition("(")[0], [name[:-1] for name in _SERIES])


def fill_advice(text: str, fills: Collection[str]) -> str:
    """The fix for a text or a key that is no fill."""
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", text):
        return f"; write {{constant: {text}}}"
    word, _, given = text.removesuffix(")").partition("(")
    meant = _FILLS_MEANT.get(word, word)
    if meant not in _FILLS:
        return nearest(word, fills)
    content = "1" if word == "ones" else _FILLS[meant]
    if content.startswith("["):
        content = f"[{given}]" if "," in given else content
    elif meant == word:
        content = given or content
    return f"; write {{{meant}: {content}}}"
