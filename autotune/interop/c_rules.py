"""When a configuration may run, as a C function: parameters' constraints, derived names and device limits.

The function decides as `best.check` does. One is written for each version of the rules that the results have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from autotune.errors import ExpressionError, InputError
from autotune.expressions import parse
from autotune.interop.c_expression import C_TYPES, FRACTION, INTEGER, TEXT, TRUTH, Term, Translator
from autotune.model import DeviceInfo, KernelRecord, Parameter, Value

_T = TypeVar("_T")
_LIMITS = ("max_threads_per_block", "shared_bytes_per_block", "registers_per_block")


@dataclass(frozen=True)
class Vocabulary:
    """What C calls things: the prefix of all names, sizes, parameters, and the numbers of texts."""

    prefix: str
    sizes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    text: Callable[[str], int]


def kind_of(values: Sequence[Value | None]) -> str:
    """The kind that holds all values."""
    if any(isinstance(value, str) for value in values):
        return TEXT
    if any(isinstance(value, float) for value in values):
        return FRACTION
    return TRUTH if all(isinstance(value, bool) for value in values) else INTEGER


def device_fields(records: Sequence[KernelRecord]) -> list[str]:
    """The attributes of a device that the rules read, limits included; raises InputError for one it lacks."""
    read = {name for record in records for text in _texts(record) for name in parse(text).names}
    found = {name.removeprefix("device.") for name in read if name.startswith("device.")}
    if strange := sorted(found - {item.name for item in fields(DeviceInfo)}):
        raise InputError(f"{records[0].kernel}: device.{strange[0]}: a device has no such attribute")
    return sorted(found | set(_LIMITS))


def rules_function(
    number: int, record: KernelRecord, words: Vocabulary, kinds: Mapping[str, str]
) -> Iterator[str]:
    """The lines of a function that is 1 for a valid configuration; `kinds` are those of the device's fields.

    Raises InputError naming the constraint that C cannot express.
    """
    names = dict(_names(words, kinds))
    translator = Translator(names, words.text)
    needs_device = {f"device.{name}" for name in kinds}
    sizes = ", ".join(f"long long size_{name}" for name in words.sizes)
    yield (
        f"AUTOTUNE_FUNCTION int {words.prefix}_rules_{number}(const {words.prefix}_config *c, "
        f"const {words.prefix}_device *d, int dtype, long long registers, {sizes}) {{"
    )
    yield "    int flag = 1;"
    yield "    int *ok = &flag;"
    yield f"    const int dtype_text = {words.prefix}_dtype_texts[dtype];"
    unused = ["c", "d", "ok", "dtype_text", "registers", *(f"size_{name}" for name in words.sizes)]
    for name, text in record.derived.items():
        term = _translated(record, f"derived name {name}", translator.value, text)
        names[name] = Term(f"derived_{name}", term.kind)
        unused.append(names[name].text)
        condition = "d->is_known" if parse(text).names & needs_device else "1"
        if condition != "1":
            needs_device.add(name)
        yield f"    {C_TYPES[term.kind]} derived_{name} = 0;"
        yield f"    if ({condition}) derived_{name} = {term.text};"
        yield "    if (!flag) return 0;"
    yield f"    {' '.join(f'(void){name};' for name in unused)}"
    for text in record.constraints:
        holds = _translated(record, f"constraint {text!r}", translator.condition, text)
        condition = "d->is_known" if parse(text).names & needs_device else "1"
        yield f"    if ({condition}) {{ /* {text.replace('*/', '* /')} */"
        yield f"        const int holds = {holds};"
        yield "        if (!flag || !holds) return 0;"
        yield "    }"
    yield from _limits(record, translator)
    yield "    return 1;"
    yield "}"


def _limits(record: KernelRecord, translator: Translator) -> Iterator[str]:
    for step in record.launch:
        what = f"launch of {step.entry}"
        taken = _translated(record, what, translator.condition, step.when)
        extents = [_whole(record, what, translator, text) for text in step.block]
        threads = " * ".join(f"autotune_extent({extent}, ok)" for extent in extents)
        shared = _whole(record, what, translator, step.shared_bytes)
        yield "    if (d->is_known) {"
        yield f"        const int taken = {taken};"
        yield "        if (!flag) return 0;"
        yield "        if (taken) {"
        yield f"            const long long threads = {threads}, shared_bytes = {shared};"
        yield "            if (!flag) return 0;"
        yield f"            if (threads > d->{_LIMITS[0]} || shared_bytes > d->{_LIMITS[1]}) return 0;"
        yield f"            if (d->{_LIMITS[2]} >= 0 && threads * registers > d->{_LIMITS[2]}) return 0;"
        yield "        }"
        yield "    }"


def _whole(record: KernelRecord, what: str, translator: Translator, text: str) -> str:
    """A whole number of an expression, as `expressions.integer` has it: a truth value is none."""
    term = _translated(record, what, translator.value, text)
    if term.kind in (TRUTH, TEXT):
        raise InputError(f"{record.kernel}: {what}: {text!r}: expected a whole number")
    return term.text if term.kind == INTEGER else f"autotune_whole({term.text}, ok)"


def _translated(record: KernelRecord, what: str, translate: Callable[[str], _T], text: str) -> _T:
    try:
        return translate(text)
    except ExpressionError as error:
        raise InputError(f"{record.kernel}: {what}: {error}") from None


def _names(words: Vocabulary, kinds: Mapping[str, str]) -> Iterator[tuple[str, Term]]:
    yield "DTYPE", Term("dtype_text", TEXT)
    for size in words.sizes:
        yield size, Term(f"size_{size}", INTEGER)
    for parameter in words.parameters:
        kind = kind_of(parameter.values)
        field = f"c->{parameter.name}"
        text = f"{words.prefix}_{parameter.name}_texts[{field}]" if kind == TEXT else field
        yield parameter.name, Term(text, kind)
    for name, kind in kinds.items():
        missing = f"(d->{name} < 0 ? (*ok = 0, d->{name}) : d->{name})"
        yield f"device.{name}", Term(missing if kind in (INTEGER, FRACTION) else f"d->{name}", kind)


def _texts(record: KernelRecord) -> Iterator[str]:
    yield from record.constraints
    yield from record.derived.values()
    for step in record.launch:
        yield from (*step.block, step.shared_bytes, step.when)


def device_values(
    device: DeviceInfo | None, kinds: Mapping[str, str], text: Callable[[str], int]
) -> list[str]:
    """The C values of a device's fields; what is not known is -1."""
    values = [getattr(device, name) if device else None for name in kinds]
    return [
        "-1" if value is None else str(text(value)) if isinstance(value, str) else f"{c_number(value)}"
        for value in values
    ]


def c_number(value: float) -> str:
    """A number as C writes it; truth values are 1 and 0."""
    return (
        repr(value)
        if isinstance(value, float)
        else f"{int(value)}" + ("" if isinstance(value, bool) else "LL")
    )
