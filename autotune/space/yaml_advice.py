"""Explains errors in texts that are not YAML or not an expression, with fixes."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Mapping, Sequence

import yaml

from autotune.core.expression_ops import FUNCTIONS
from autotune.core.expressions import parse
from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.core.text import count_text, hint, nearest
from autotune.errors import ExpressionError

_MAX_SHOWN = 40  # letters of a value that a message repeats
# What other languages write, and its form here; found outside quotes.
_OPERATORS = (
    (re.compile(r"=<"), "write <= for =<"),
    (re.compile(r"=>|->"), "write >= for =>; for `if A then B`, write `not (A) or B`"),
    (re.compile(r"\bAND\b"), "write `and` for AND"),
    (re.compile(r"\bOR\b"), "write `or` for OR"),
    (re.compile(r"\bNOT\b"), "write `not` for NOT"),
    (re.compile(r";"), "remove the ;"),
    (re.compile(r"\$"), "remove the $"),
    (re.compile(r"&&"), "write `and` for &&"),
    (re.compile(r"\|\|"), "write `or` for ||"),
    (re.compile(r"!(?!=)"), "write `not` for !"),
    (re.compile(r"\?[^:]*:"), "write `A if CONDITION else B` for CONDITION ? A : B"),
    (re.compile(r"(?<![=!<>])=(?![=<>])"), "write == to compare"),
)
_CHOICE = re.compile(r"([^?]*)\?([^?:]*):([^?:]*)")  # CONDITION ? A : B
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPENED = re.compile(r"(?:^|[\[{,:-])\s*(['\"])")  # a quote that begins a value
_IN_PYTHON = {"true": "True", "false": "False"}
# What word processors and web pages make of plain characters.
_PLAIN = {
    **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2018\u2019\u201a\u00b4", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    **{"\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00d7": "*", "\u00f7": "//", "\u00a0": "a space"},
}


def expression_advice(text: str, written: str, values: Mapping[str, Sequence[Value]]) -> str:
    """The fix for a text that is no expression, as the end of a message.

    The file from there on is `written`, if that is known. `values` are those of names that have a few only.
    """
    text = text.strip()
    if foreign := [letter for letter in text if letter in _PLAIN]:
        plain = "".join(_PLAIN.get(letter, letter) for letter in text)
        return f"; write `{plain}` without the character {foreign[0]!r}"
    if advice := _call_advice(text, values):
        return advice
    bare = _QUOTED.sub("''", text)
    if mends := [mend for pattern, mend in _OPERATORS if pattern.search(bare)]:
        return f"; {', '.join(mends)}"
    if unclosed := [quote for quote in "'\"" if bare.count(quote) % 2]:
        return f"; a quote is not closed; write `{text}{unclosed[0]}`"
    if text.count("(") != text.count(")"):  # YAML splits a list in [ ] at every comma
        whole = re.match(r"[^()\n]*\([^()\n]*\)", written)
        shown = f': write "{whole[0]}"' if whole else ""
        return f"; put an expression with a comma in quotes{shown}"
    return ""


def _call_advice(text: str, values: Mapping[str, Sequence[Value]]) -> str:
    """The fix for calls of unknown functions, as the end of a message."""
    try:
        for node in ast.walk(parse_expression(text)):
            if advice := _instead_of(node, values):
                return advice
        if (mended := _with_own_calls(text)) != text:
            return f"; write {in_quotes(parse(mended).text)}"
    except (SyntaxError, RecursionError, ExpressionError):  # the last of another call that expressions lack
        return ""
    return ""


def _instead_of(node: ast.AST, values: Mapping[str, Sequence[Value]]) -> str:
    """The fix for a call of an unknown function, as the end of a message; empty for any other node."""
    match node:
        case ast.Call(ast.Name(name), [ast.Name(argument)]) if name not in FUNCTIONS:
            is_misspelt = not hasattr(builtins, name)  # `int` is not meant to be `min`
            if is_misspelt and (near := nearest(name, FUNCTIONS)):
                return near
            if name == "sqrt":
                return f"; write {argument} ** 0.5"
            listed = [
                f'"{item}"' if isinstance(item, str) else str(item) for item in values.get(argument, ())
            ]
            if not listed or not listed[0].startswith('"'):
                return f"; expressions know no {name}"
            return (
                f"; expressions know no {name}; compare {argument} with one of its values, "
                f"{', '.join(listed)}, such as {argument} == {listed[0]}, or remove this constraint"
            )
        case ast.Subscript(ast.Name(), ast.Constant(str(name))) | ast.Attribute(ast.Name(), name) if (
            name in values
        ):
            return f"; write {name} for {ast.unparse(node)}"
    return ""


def _with_own_calls(text: str) -> str:
    """An expression with the functions of expressions for those of modules, such as math.ceil."""
    for node in ast.walk(parse_expression(text)):
        match node:
            case ast.Call(ast.Attribute(ast.Name(), "ceil"), [ast.BinOp(above, ast.Div(), below)]):
                name, arguments = "ceil_div", [above, below]
            case ast.Call(ast.Attribute(ast.Name(), name), arguments) if name in FUNCTIONS:
                pass
            case _:
                continue
        call = f"{name}({', '.join(map(ast.unparse, arguments))})"
        return _with_own_calls(text.replace(ast.get_source_segment(text, node) or text, call))
    return text


def colon_advice(texts: Sequence[object]) -> str:
    """The fix for an expression that YAML reads as a mapping, given its keys and values in order."""
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        return "; quote an expression with a colon"
    whole = f"{texts[0]}: {texts[1]}"
    key, value = map(str, texts)
    if key.startswith("if "):
        return f", because of the colon; write `not ({key.removeprefix('if ')}) or ({value})`"
    if key.startswith("lambda "):
        return ", because of the colon; write the condition only, such as BLOCK_SIZE > 32"
    if key.isidentifier():
        return f"; write `{key} == {value}`"
    if choice := _CHOICE.fullmatch(whole):
        condition, yes, no = (part.strip() for part in choice.groups())
        return f", because of the colon; write `{yes} if {condition} else {no}` for `{whole}`"
    return f", because of the colon; write `{in_quotes(whole)}`"


def in_quotes(text: str) -> str:
    """A text in quotes, which YAML reads as one value."""
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def name_advice(name: str, text: str, known: Collection[str]) -> str:
    """The fix for an expression with an unknown name, as the end of a message."""
    if name in _IN_PYTHON:
        return f"; write {_IN_PYTHON[name]}"
    if not nearest(name, known) and _is_compared(name, text):
        return f'; write "{name}" in quotes'
    plain = [known_name for known_name in known if "." in name or "." not in known_name]
    of_device = {known_name.partition(".")[2] for known_name in known if "." in known_name}
    if not nearest(name, plain) and (near := nearest(name.lower(), of_device)):
        return near.replace("did you mean ", "did you mean device.")
    return hint(name, plain)


def _is_compared(name: str, text: str) -> bool:
    """True if an expression tests equality with a name, as with a text that lacks its quotes."""
    tests = [node for node in ast.walk(parse_expression(text)) if isinstance(node, ast.Compare)]
    operands = [
        part
        for test in tests
        if any(isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for operator in test.ops)
        for operand in (test.left, *test.comparators)
        for part in (operand.elts if isinstance(operand, ast.Tuple | ast.List) else [operand])
    ]
    return any(isinstance(part, ast.Name) and part.id == name for part in operands)


def yaml_problem(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> tuple[int, str]:
    """The line that is not YAML, and why; after a missing bracket, parsers stop too late."""
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    problem, context = str(error.problem), str(error.context)
    if "'\\t'" in problem:
        return line, "a tab; indent with spaces, as many as the lines around it begin with"
    opened = {"while parsing a flow sequence": "[", "while parsing a flow mapping": "{"}.get(context)
    if opened and error.context_mark and "but got" in problem:
        begins = error.context_mark.line
        is_open = _without_comment(lines[begins]).endswith((",", opened))
        if is_open and (comma := _missing_comma(lines, line)):
            return comma
        if begins + 1 < line and (mend := _closed(lines[begins], opened)):
            return begins + 1, f"the {opened} is not closed; write `{mend}`"
        return begins + 1, f"the {opened} is not closed, or a comma is missing between two entries: {problem}"
    if "mapping values are not allowed" in problem:
        return _missing_colon(lines, line) or (line, "a colon inside a value; put the value in quotes")
    if ("stream" in problem or "<scalar>" in problem) and (unclosed := _unclosed_quote(lines, line)):
        return unclosed
    if "could not find expected ':'" in problem:
        return line, f"{problem}; is there a space after every colon?"
    if "but found '<scalar>'" in problem:
        return line, f"a text goes on after its closing quote; write `{_quoted_value(lines[line - 1])}`"
    if "cannot start any token" in problem or "alias" in problem:
        return line, f"{problem}; put the text in quotes: write `{_quoted_value(lines[line - 1])}`"
    if "another document" in problem:
        return line, "a second document begins here; remove this line"
    if "but found '?'" in problem:
        return _other_dash(lines, line)
    if "but found '<block " in problem:
        return _missing_colon(lines, line) or _indentation(lines, line) or (line, problem)
    return line, problem


def _closed(text: str, opened: str) -> str:
    """A line whose only open bracket is closed at its end; empty if it has none, or several."""
    entry = _without_comment(text).rstrip(",")
    closing = {"[": "]", "{": "}"}[opened]
    return entry + closing if entry.count(opened) == entry.count(closing) + 1 else ""


def _other_dash(lines: Sequence[str], line: int) -> tuple[int, str]:
    """The entry with a dash before one that has none."""
    dashed = next((at for at in range(line - 1, 0, -1) if lines[at - 1].lstrip().startswith("-")), line)
    entry = _without_comment(lines[dashed - 1]).removeprefix("-").strip()
    return dashed, f"this entry begins with a dash, and line {line} does not; write `{entry}` without it"


def _missing_comma(lines: Sequence[str], line: int) -> tuple[int, str] | None:
    """The line before a key in brackets that lacks a comma at its end."""
    before = _without_comment(lines[line - 2]) if line > 1 else ""
    is_key = re.match(r"""["']?\w+["']?\s*:""", lines[line - 1].strip())
    if is_key and before[-1:] not in ("", ",", "{", "[", ":"):
        return line - 1, f"a comma is missing at the end; write `{before},`"
    return None


def _without_comment(text: str) -> str:
    """A line without its indentation and its comment; a # in quotes begins none."""
    return re.sub(rf"({_QUOTED.pattern})|\s+#.*", r"\1", text.strip())


def _unclosed_quote(lines: Sequence[str], last: int) -> tuple[int, str] | None:
    """The first line up to a last one with a quote that is not closed, and how to mend it."""
    for number, text in enumerate(lines[:last], 1):
        entry = _without_comment(text)
        bare = _QUOTED.sub("", entry)
        if opened := _OPENED.search(bare):
            value = bare[opened.start(1) + 1 :]
            is_whole = not re.search(r"[,\]}]", value)
            mend = f"write `{entry}{opened[1]}`" if is_whole else "close it where the text ends"
            return number, f"the {opened[1]} before {value} is not closed; {mend}"
    return None


def _quoted_value(text: str) -> str:
    """A line's entry with its whole value in quotes."""
    entry = _without_comment(text)
    begin, value = re.fullmatch(r"((?:- +)?(?:\w+: +)?)(.*)", entry).groups()  # type: ignore[union-attr]
    return f"{begin}{in_quotes(value)}"


def _indentation(lines: Sequence[str], line: int) -> tuple[int, str] | None:
    """The line that is indented wrongly, and how to mend it; None if the last two entries are in line."""
    entries = [
        number
        for number in range(line, 0, -1)
        if lines[number - 1].strip() and not lines[number - 1].lstrip().startswith("#")
    ]
    for number in entries[:2]:
        if "\u00a0" in lines[number - 1]:
            column = lines[number - 1].index("\u00a0") + 1
            mistake = "is a non-breaking space (U+00A0), which only looks like a space"
            return number, f"column {column} {mistake}; delete it and type spaces"
    columns = [len(lines[number - 1]) - len(lines[number - 1].lstrip(" ")) for number in entries[:3]]
    if len(columns) < 2 or columns[0] == columns[1]:
        return None
    begins_block = len(columns) == 3 and lines[entries[2] - 1].partition(" #")[0].rstrip().endswith(":")
    wrong, right = (1, 0) if begins_block and columns[1] <= columns[2] else (0, 1)
    indent, asked = count_text(columns[wrong], "space"), count_text(columns[right], "space")
    return entries[wrong], f"indented by {indent}; indent it by {asked}, as line {entries[right]} is"


def _missing_colon(lines: Sequence[str], line: int) -> tuple[int, str] | None:
    """The entry before the parser's line whose key lacks a colon, or whose colon lacks a space."""
    for number in range(min(line - 1, len(lines)), 0, -1):
        text = lines[number - 1].partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        entry_parts = re.fullmatch(r"(\w+)(?:\s+(.*)|:(\S.*))?", text)
        if re.search(r":(\s|$)", text) or not entry_parts:
            return None
        key, value = entry_parts[1], entry_parts[2] or entry_parts[3] or ""
        shown = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}..."
        if entry_parts[3]:
            return number, f"`{key}:{shown}` has no space after its colon; write `{key}: {shown}`"
        entry = f"{key} {shown}".strip()
        return number, f"`{entry}` has no colon after its key; write `{key}: {shown}`"
    return None
