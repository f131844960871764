"""Read YAML into elements that carry file, line and dotted place, for error messages.

This module knows nothing of kernels or spaces. Scalars follow YAML 1.2: only true and false are booleans,
and 010 is ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from autotune.core.expressions import parse, unknown_names
from autotune.core.json_values import is_name
from autotune.core.records import Value
from autotune.core.text import hint
from autotune.errors import ExpressionError, InputError, SpaceError
from autotune.space.value_advice import key_advice, list_advice, mapping_advice, value_advice
from autotune.space.yaml_advice import colon_advice, expression_advice, name_advice, yaml_problem

EXAMPLE = "{NAME: VALUE, ...}"
MAX_DEPTH = 100  # of nested lists and mappings
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]{0,40}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_WORD = re.compile(r"\w+")
_STEP = re.compile(r"(\w+)|\[(\d+)\]")  # of a place
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?|[-+]?\.(inf|nan)")


@dataclass(frozen=True)
class Element:
    """One node of a YAML file; `line` counts from 1, `place` reads like `launch[0].grid`."""

    node: yaml.Node
    path: Path
    whole: str  # the file's text
    line: int
    place: str = ""

    def error(self, message: str) -> SpaceError:
        """A SpaceError with the text `file:line: place: message`."""
        place = f"{self.place}: " if self.place else ""
        return SpaceError(f"{self.path}:{self.line}: {place}{message}")

    def others(self, name: str) -> str:
        """The other lines of the file whose values have a name, as the end of a message; empty for none."""
        scalars = [token for token in yaml.scan(self.whole) if isinstance(token, yaml.ScalarToken)]
        lines = {scalar.start_mark.line + 1 for scalar in scalars if name in _WORD.findall(scalar.value)}
        listed = ", ".join(map(str, sorted(lines - {self.line})))
        return f"; it is also on line {listed}" if listed else ""

    def part(self, text: str) -> Element:
        """A part of this text as an element of the same place."""
        return replace(self, node=yaml.ScalarNode(self.node.tag, text))

    @property
    def is_scalar(self) -> bool:
        """True if it is a single value, and neither a list nor a mapping."""
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def is_list(self) -> bool:
        """True if it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_set(self) -> bool:
        """True if it has keys without values, as {32, 64} does."""
        pairs = self.node.value if isinstance(self.node, yaml.MappingNode) else []
        return bool(pairs) and all(not value.value for _, value in pairs)

    @property
    def shown(self) -> str:
        """The file's text, on one line; a single value without its quotes."""
        if isinstance(self.node, yaml.ScalarNode):
            return str(self.node.value)
        length = self.node.end_mark.index - self.node.start_mark.index
        return " ".join(self._written()[:length].split())

    @property
    def keys(self) -> list[str]:
        """The keys of a mapping as they are written, repeated ones too; none of anything else."""
        pairs = self.node.value if isinstance(self.node, yaml.MappingNode) else []
        return [str(key.value) for key, _ in pairs]

    def mapping(
        self, *, may_be_empty: bool = False, example: str = EXAMPLE, expected: Iterable[str] = ()
    ) -> dict[str, Element]:
        """The entries by name, in the order of the file; a repeated name is an error.

        Args:
            may_be_empty: Whether there need not be an entry.
            example: What to write, for the message about anything but a mapping.
            expected: Names that other parts of the file use; a repeated name may be meant for one of them.
        """
        if not isinstance(self.node, yaml.MappingNode):
            mend = mapping_advice(self.node, example)
            raise self.error(f"expected a mapping of names to values, found {self._shown_kind()}{mend}")
        entries: dict[str, Element] = {}
        for key, node in self.node.value:
            entry = self._key(key)
            name = entry.text()
            if name in entries:
                missing = [key for key in expected if key not in self.keys]
                meant = f", or write {missing[0]}, which is missing, for one of them" if missing else ""
                where = f"first on line {entries[name].line}"
                raise entry.error(f"this key appears twice ({where}); remove one{meant}")
            entries[name] = replace(entry, node=node)
        if not entries and not may_be_empty:
            raise self.error("expected at least one entry, found none")
        return entries

    def record(
        self,
        required: Iterable[str],
        optional: Iterable[str] = (),
        examples: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Element]:
        """The entries of a mapping with fixed keys; unknown and missing keys are errors.

        `examples` has values by key, for messages.
        """
        example = ", ".join(f"{name}: {value}" for name, value in examples.items())
        entries = self.mapping(may_be_empty=True, example=f"{{{example}}}" if example else EXAMPLE)
        required = tuple(required)
        known = (*required, *optional)
        for name, entry in entries.items():
            if name not in known:
                raise entry.error(f"unknown key{key_advice(name, entry.node, known)}")
        if missing := [name for name in required if name not in entries]:
            shown = [f"`{name}: {examples[name]}`" for name in missing if name in examples]
            mend = f"; add {', '.join(shown)}, for example" if shown else ""
            raise self.error(f"missing key{'s' if len(missing) > 1 else ''}: {', '.join(missing)}{mend}")
        return entries

    def items(self, *, may_be_empty: bool = False) -> list[Element]:
        """The elements of a list; an empty list is an error by default."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"expected a list, found {self._shown_kind()}{list_advice(self.node)}")
        if not self.node.value and not may_be_empty:
            raise self.error("expected at least one element, found an empty list")
        return [
            replace(self, node=node, line=node.start_mark.line + 1, place=f"{self.place}[{position}]")
            for position, node in enumerate(self.node.value)
        ]

    def value(self, expected: str = "a number, true, false or a name") -> Value:
        """A finite number, a boolean or a text."""
        if self.node.tag.startswith("!"):
            whole = self._written().partition("\n")[0].partition(" #")[0].strip()
            raise self.error(f"a ! begins a tag in YAML; write `not {whole.removeprefix('!').strip()}`")
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error(f"expected {expected}, found {self._shown_kind()}{value_advice(self.node)}")
        value = _scalar(self.node)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            raise self.error(f"expected {expected}, found {self._shown_kind()}")
        return value

    def text(self) -> str:
        """A non-empty text."""
        value = self.value("a text")
        if not isinstance(value, str) or not value:
            raise self.error(f"expected a text, found {value!r}")
        return value

    def identifier(self, meaning: str = "") -> str:
        """A C identifier in ASCII; `meaning` ends the message about any other text."""
        name = self.text()
        if not is_name(name):
            raise self.error(f"{not_a_name(name)}{meaning}")
        return name

    def choice(self, known: Collection[str]) -> str:
        """One of the known words."""
        word = self.text()
        if word not in known:
            raise self.error(f"unknown value {word!r}{hint(word, known)}")
        return word

    def number(self) -> int | float:
        """A finite number."""
        value = self.value("a number")
        if isinstance(value, (bool, str)):
            raise self.error(f"expected a number, found {value!r}")
        return value

    def integer(self) -> int:
        """A whole number."""
        value = self.value("a whole number")
        if isinstance(value, bool) or not isinstance(value, int):
            mend = f"; write {int(value):_}" if isinstance(value, float) and value.is_integer() else ""
            if isinstance(value, str) and value[:-1].isdecimal():  # such as 1M
                mend = f"; write all digits, such as {int(value[:-1]):_}_000_000"
            raise self.error(f"expected a whole number, found {value!r}{mend}")
        return value

    def expression(self, known: Collection[str], values: Mapping[str, Sequence[Value]] | None = None) -> str:
        """The text of an expression; one that does not parse or reads other names is an error.

        `values` are those of names that have a few only, for messages.
        """
        if isinstance(self.node, yaml.MappingNode):
            texts = [getattr(node, "value", "") for pair in self.node.value for node in pair]
            raise self.error(f"expected an expression, found a mapping{colon_advice(texts)}")
        text = str(self.value("an expression")).strip()
        try:
            expression = parse(text)
        except ExpressionError as error:
            raise self.error(f"{error}{expression_advice(text, self._written(), values or {})}") from None
        if unknown := unknown_names(expression, known):
            name = unknown[0]
            raise self.error(f"unknown name {name!r} in {text!r}{name_advice(name, text, known)}")
        return text

    def _written(self) -> str:
        """The file from this element on; empty for a part of an element."""
        mark = self.node.start_mark
        return self.whole[mark.index :] if mark else ""

    def _key(self, key: yaml.Node) -> Element:
        line = key.start_mark.line + 1
        name = key.value if isinstance(key, yaml.ScalarNode) else "key"
        return replace(self, node=key, line=line, place=f"{self.place}.{name}" if self.place else name)

    def _shown_kind(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        return repr(self.node.value[:60]) if self.node.value else "nothing"


def not_a_name(text: str) -> str:
    """The message about a text that is no C identifier."""
    plain = re.sub(r"\W", "_", text, flags=re.ASCII)
    mend = f"; write {plain}" if is_name(plain) else ""
    return f"expected a name of letters, digits and underscores, found {text!r}{mend}"


def read_document(path: Path) -> tuple[Element, bytes]:
    """The root element of a YAML file, and the file's bytes.

    Raises:
        InputError: The file cannot be read as text.
        SpaceError: It is not YAML, or empty.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; expected a space file") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text file; expected a space file in YAML") from None
    try:
        node = _composed(text)
    except yaml.MarkedYAMLError as error:
        line, problem = yaml_problem(error, text.splitlines())
        raise SpaceError(f"{path}:{line}: not valid YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise SpaceError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise SpaceError(f"{path}: not valid YAML: nested too deeply") from None
    if node is None:
        raise SpaceError(
            f"{path}:1: the file is empty; write a space in it (kernel, source, parameters, ...), or delete "
            "it: `autotune new KERNEL.cu` then writes a first one"
        )
    return Element(node, path, text, node.start_mark.line + 1), data


def _composed(text: str) -> yaml.Node | None:
    """The root node of a text, None if it is empty; raises YAMLError, or RecursionError if nested too deeply.

    libyaml takes a thirtieth of the time. PyYAML's own parser reads what it refuses, for the messages, and
    texts with tabs, some of which only libyaml accepts.
    """
    if yaml.__with_libyaml__:
        if _is_deep(text):  # both parsers' time grows with the square of the depth
            raise RecursionError
        if "\t" not in text:
            with suppress(yaml.YAMLError):
                return yaml.compose(text, Loader=yaml.CBaseLoader)
    return yaml.compose(text, Loader=yaml.BaseLoader)


def _is_deep(text: str) -> bool:
    """True if more than MAX_DEPTH lists and mappings are open somewhere, as far as libyaml reads the text."""
    depth = 0
    with suppress(yaml.YAMLError):
        for event in yaml.parse(text, Loader=yaml.CBaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                return True
    return False


def located(path: Path, place: str) -> str:
    """The place of an entry such as `launch[0].grid` in a space file: `FILE:LINE`.

    The line is that of the entry around it where the file lacks this one. A space without a file has no line.
    """
    try:
        element, _ = read_document(path)
    except InputError:
        return str(path)
    for name, number in _STEP.findall(place):
        try:
            element = element.items()[int(number)] if number else element.mapping()[name]
        except (SpaceError, LookupError):
            break
    return f"{path}:{element.line}"


def document_of(content: Mapping[str, Any], path: Path) -> tuple[Element, bytes]:
    """The same for the content of a document; `path` is what messages call it. Raises SpaceError."""
    try:
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    except yaml.YAMLError as error:
        raise SpaceError(f"{path}: not a value of a space: {str(error).splitlines()[0]}") from None
    node = _composed(text)
    assert node is not None  # a mapping is never an empty document
    return Element(node, path, text, 1), text.encode()


def _scalar(node: yaml.ScalarNode) -> Value | None:
    """The value of a scalar; quoted scalars and blocks are always text, None stands for null."""
    text = node.value
    if node.style:
        return str(text)
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    return str(text)
