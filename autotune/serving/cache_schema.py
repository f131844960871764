"""Schema 1 of the cache's files: from records to JSON text and back.

The text has sorted keys and one value per line: a new result is a small diff in version control. `_SCHEMA`
lists every key with its reader, so renaming a field of a record does not change the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from autotune.core import json_values as values
from autotune.core.argument_values import ARGUMENT_ROLES
from autotune.core.c_types import C_TYPES, is_dtype
from autotune.core.frozen import optional_fields, replace
from autotune.core.json_values import Damaged, Read
from autotune.core.launch_plan import CUDA_COMPILERS, NO_ARRAY, TRITON, is_entry, is_option
from autotune.core.records import (
    ArgumentSpec,
    CallSpec,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    LaunchSpec,
    Parameter,
    ProblemKey,
    Provenance,
    VariantTable,
)
from autotune.errors import CacheError

T = TypeVar("T")
SCHEMA = 1
# Fields with a default are optional and not written when empty, which keeps older files unchanged. These
# fields are exceptions: they are always written.
_IN_EVERY_FILE = frozenset(("shape", "value", "inputs", "returns", "shared_bytes", "when"))
_NONE = '\n  "entries": []'  # matches nothing else, because texts in JSON have no line breaks
# A block of measured configurations. A file has many, so each gets a single line.
_MEASURED = r'(?ms)^( +)"measured": \[$.*?^\1\]'
_OF_SCRIPT = re.compile(r"(argument|constant)_\d+(_\d+)?")  # an argument that only its place names
# The texts of the latest file's entries, by `id`: a sweep of hundreds of sizes adds its entries one by one.
_entries: dict[int, tuple[Entry, str]] = {}


def record_text(record: KernelRecord) -> str:
    """The text of a kernel's file; raises CacheError for a number that JSON cannot hold."""
    global _entries
    # The order of derived names matters and keys are sorted, so they become a list.
    derived = [{"name": name, "expression": text} for name, text in record.derived.items()]
    text = _dump(_plain(replace(record, entries=())) | {"derived": derived, "schema": SCHEMA}, record.kernel)
    _entries = {
        id(entry): _entries.get(id(entry)) or (entry, _indented(_dump(_plain(entry), record.kernel)))
        for entry in record.entries
    }
    entries = ",\n".join(text for _, text in _entries.values())
    return text.replace(_NONE, f"{_NONE[:-1]}\n{entries}\n  ]" if entries else _NONE) + "\n"


def device_text(device: DeviceInfo) -> str:
    """The text of a device's file."""
    return _dump(_plain(device) | {"schema": SCHEMA}, device.name) + "\n"


def entry_text(entry: Entry) -> str:
    """A result as one line of JSON, equal for equal results."""
    return json.dumps(_plain(entry), sort_keys=True)


def parse_record(text: str, path: str) -> KernelRecord:
    """Read a kernel's file; raises CacheError naming `path` when damaged or of another schema."""
    return _parse(_record, text, path)


def parse_device(text: str, path: str) -> DeviceInfo:
    """Read a device's file; raises CacheError naming `path` when damaged or of another schema."""
    return _parse(_object(DeviceInfo), text, path)


def damaged(path: str, reason: object) -> CacheError:
    """The error for a file that cannot be used, with the remedy."""
    return CacheError(
        f"{path}: damaged: {reason}; restore it from version control, or delete it and tune again"
    )


def _dump(data: dict[str, Any], subject: str) -> str:
    try:
        text = json.dumps(data, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    except ValueError:
        raise CacheError(
            f"{subject}: a result has a number that is not finite and cannot be stored"
        ) from None
    return re.sub(_MEASURED, _one_line_each, text)


def _indented(text: str) -> str:
    """The text of an object, indented as an item of a file's list."""
    return "    " + text.replace("\n", "\n    ")


def _one_line_each(block: re.Match[str]) -> str:
    """Join the lines of each measured configuration in a block."""
    indent = len(block[1])
    return re.sub(rf"\n {{{indent + 4},}}|\n {{{indent + 2}}}(?=\])", " ", block[0])


def _plain(value: Any) -> Any:
    if type(value) in _SCHEMA:
        optional = _OPTIONAL[type(value)]
        values = {name: _plain(getattr(value, name)) for name in _SCHEMA[type(value)]}
        return {name: item for name, item in values.items() if item or name not in optional}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _parse(read: Callable[[Any, str], T], text: str, path: str) -> T:
    try:
        data = values.load_object(text)
        schema = data.pop("schema", None)
        if schema == SCHEMA:
            return read(data, "")
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from None
    raise CacheError(
        f"{path}: schema {schema!r}, this version of autotune reads schema {SCHEMA}; "
        "install the version that wrote it, or delete it and tune again"
    )


def _object(record: type[T]) -> Callable[[Any, str], T]:
    return lambda value, place: values.record(record, _SCHEMA[record], _OPTIONAL[record], value, place)


def _record(data: Any, place: str) -> KernelRecord:
    """A record with at least one element type, unique parameters and one result per problem.

    The file sorts all names; configurations get the parameters' order, which is the space file's.
    """
    record = _object(KernelRecord)(data, place)
    if not record.dtypes:
        raise Damaged("dtypes", "at least one element type", [])
    names = [parameter.name for parameter in record.parameters]
    if len(set(names)) < len(names):
        raise Damaged("parameters", "each name once", names)
    seen: set[ProblemKey] = set()
    for number, entry in enumerate(record.entries):
        if entry.problem in seen:
            sizes = "".join(f" {name}={size}" for name, size in entry.sizes.items())
            raise Damaged(f"entries[{number}]", "a problem of its own", entry.dtype + sizes)
        seen.add(entry.problem)
    _require_declared(record)
    ordered: KernelRecord = _in_order(_with_own_arguments(record), names)
    return ordered


def _with_own_arguments(record: KernelRecord) -> KernelRecord:
    """A script's record in which the newest entry has the record's arguments, as in older files none has."""
    listed = [_OF_SCRIPT.fullmatch(argument.name) for argument in record.arguments]
    if record.is_of_script or not record.entries or not all(listed):
        return record
    newest = max(record.entries, key=lambda entry: entry.provenance.tuned_at)
    own = replace(newest, arguments=record.arguments)
    return replace(record, entries=tuple(own if entry is newest else entry for entry in record.entries))


def _require_declared(record: KernelRecord) -> None:
    """Raise Damaged if a part of the record names an argument that the record does not declare."""
    listed = [argument.name for argument in record.arguments]
    declared = set(listed)
    for number, entry in enumerate(record.entries):
        if entry.arguments and [argument.name for argument in entry.arguments] != listed:
            stored = ", ".join(argument.name for argument in entry.arguments)
            raise Damaged(f"entries[{number}].arguments", f"the arguments {', '.join(listed)}", stored)
    named: dict[str, tuple[str, ...]] = {}
    for number, argument in enumerate(record.arguments):
        named[f"arguments[{number}].of"] = (argument.of,) if argument.of else ()
    for number, step in enumerate(record.launch):
        passed = tuple(name for name in step.arguments if name != NO_ARRAY)
        named |= {f"launch[{number}].arguments": passed, f"launch[{number}].swap": step.swap}
        if step.result and (len(step.swap) != 2 or step.result not in step.swap):
            raise Damaged(f"launch[{number}].result", "one of two arrays that swap", step.result)
    if record.call:
        given, copies = record.call, record.call.copies
        named["call"] = (*given.inputs, *given.returns, *copies, *copies.values(), *given.kept)
    for place, names in named.items():
        if not declared.issuperset(names):
            raise Damaged(place, f"names of the arguments {', '.join(sorted(declared))}", ", ".join(names))


def _in_order(value: Any, names: list[str]) -> Any:
    """A part of a record, whose configurations have their parameters in the order of the names."""
    if type(value) is Config:
        return value.in_order(names)
    if type(value) is tuple:
        return tuple(_in_order(item, names) for item in value)
    if type(value) in _WITH_CONFIGS:
        fields = _WITH_CONFIGS[type(value)]
        return replace(value, **{name: _in_order(getattr(value, name), names) for name in fields})
    return value


def _variants(value: Any, place: str) -> VariantTable:
    """A table for at least one size, all of the same names, with a time or null for each half-way size."""
    table = _object(VariantTable)(value, place)
    names = {frozenset(sizes) for sizes in table.sizes}
    if len(names) != 1:
        raise Damaged(f"{place}.sizes", "at least one, all of the same names", list(table.sizes))
    for number, (sizes, times) in enumerate(table.halfway):
        if names != {frozenset(sizes)} or len(times) != len(table.configs):
            expected = "sizes of the same names, and a time or null for each configuration"
            raise Damaged(f"{place}.halfway[{number}]", expected, value["halfway"][number])
    return table


def _config(value: Any, place: str) -> Config:
    """A configuration. Names and texts are checked in one go, because files have many configurations."""
    if isinstance(value, dict) and _PLAIN.issuperset(map(type, value.values())):
        words = [item for item in value.values() if type(item) is str]
        if all(map(str.isidentifier, value)) and values.is_name("_".join(("", *value, *words))):
            return Config(value)
    return _any_config(value, place)


def _argument(value: Any, place: str) -> ArgumentSpec:
    argument = _object(ArgumentSpec)(value, place)
    if (argument.role == "scalar") is (argument.value is None):
        raise Damaged(f"{place}.value", "an expression for a scalar, and none for an array", argument.value)
    return argument


def _constant(value: Any, place: str) -> str:
    """A name, or a name and an expression: `top_k=1`."""
    values.name(values.text(value, place).partition("=")[0], place)
    return str(value)


def _extents(value: Any, place: str) -> tuple[str, ...]:
    extents: tuple[str, ...] = _texts(value, place)
    if len(extents) > 3:
        raise Damaged(place, "at most three dimensions", value)
    return extents


def _domain(value: Any, place: str) -> tuple[Any, ...]:
    """A parameter's values: only texts, or only numbers and booleans."""
    items: tuple[Any, ...] = values.list_of(values.scalar)(value, place)
    if not items or len({isinstance(item, str) for item in items}) > 1:
        raise Damaged(place, "only words or only numbers, and one at least", value)
    return items


def _derived(value: Any, place: str) -> dict[str, str]:
    items = values.list_of(values.mapping_of(values.text, values.name))(value, place)
    for number, item in enumerate(items):
        if item.keys() != {"name", "expression"}:
            raise Damaged(f"{place}[{number}]", "a name and an expression", item)
    return {values.name(item["name"], place): item["expression"] for item in items}


_PLAIN = {int, str, bool}
_any_config = values.config_of(values.scalar)
_texts = values.list_of(values.text)
_integer_or_null = values.nullable(values.integer)
_amount_or_null = values.nullable(values.amount)
_sizes = values.mapping_of(values.size, values.name)
_dtype = values.choice(C_TYPES)
_entry = values.reader(lambda text: type(text) is str and is_entry(text), "a kernel's name in C or C++")
_option = values.reader(
    lambda text: type(text) is str and is_option(text), "an option of a compiler, such as --maxrregcount"
)
_SCHEMA: dict[type, dict[str, Read]] = {
    DeviceInfo: {
        **dict.fromkeys(("backend", "name", "kind", "vendor", "architecture"), values.text),
        "slug": values.slug,
        **dict.fromkeys(("compute_units", "warp_size", "max_threads_per_block"), values.integer),
        "shared_bytes_per_block": values.integer,
        "registers_per_block": _integer_or_null,
        "memory_bytes": values.integer,
        "memory_bandwidth_bytes_per_s": _amount_or_null,
        "cache_bytes": values.integer,
        "has_shuffle": values.truth,
        **dict.fromkeys(("driver", "runtime"), values.text),
    },
    Parameter: {"name": values.name, "values": _domain},
    ArgumentSpec: {
        "name": values.name,
        "dtype": values.reader(lambda text: text == "DTYPE" or is_dtype(text), "an element type"),
        "role": values.choice(ARGUMENT_ROLES),
        "shape": _texts,
        "value": values.nullable(values.text),
        "symbol": _entry,
        "of": values.name,
        "offset": values.text,
    },
    CallSpec: {
        **dict.fromkeys(("inputs", "returns"), values.list_of(values.name)),
        "copies": values.mapping_of(values.name, values.name),
        "kept": values.mapping_of(values.number, values.name),
    },
    LaunchSpec: {
        "entry": _entry,
        **dict.fromkeys(("grid", "block", "cluster"), _extents),
        "arguments": values.list_of(values.name),
        **dict.fromkeys(("shared_bytes", "when"), values.text),
        **dict.fromkeys(("repeat", "cooperative", "programmatic"), values.text),
        "swap": values.list_of(values.name),
        "result": values.name,
        "constants": values.list_of(_constant),
    },
    Provenance: {
        "tuned_at": values.time,
        **dict.fromkeys(("autotune", "host", "driver", "runtime"), values.text),
        **dict.fromkeys(("source_sha256", "space_sha256", "engine"), values.text),
        **dict.fromkeys(("seed", "trials", "valid_configurations"), values.integer),
        **dict.fromkeys(("protocol", "compiler", "workload_sha256", "checks", "objective"), values.text),
        "checked": values.mapping_of(values.text, values.text),
        "cache_state": values.choice(("cold", "warm")),
        "launch_mode": values.choice(("graph", "eager")),
    },
    Entry: {
        "sizes": _sizes,
        "dtype": _dtype,
        "config": _config,
        "time_ms": values.amount,
        "interval_ms": values.row_of(values.amount, values.amount),
        "default_time_ms": _amount_or_null,
        "ties": values.list_of(_config),
        "provenance": _object(Provenance),
        "measured": values.list_of(values.row_of(_config, values.amount)),
        "registers": _integer_or_null,
        "front": values.list_of(values.row_of(_config, values.amount, values.amount)),
        **dict.fromkeys(("work_bytes", "work_flops", "noise"), _amount_or_null),
        "uncompared": values.list_of(values.name),
        **dict.fromkeys(("data", "data_sha256"), values.text),
        "arguments": values.list_of(_argument),
        "rivals": values.list_of(_object(Entry)),
    },
    KernelRecord: {
        "kernel": values.name,
        "dtypes": values.list_of(_dtype),
        "parameters": values.list_of(_object(Parameter)),
        "constraints": _texts,
        "derived": _derived,
        "arguments": values.list_of(_argument),
        "launch": values.list_of(_object(LaunchSpec)),
        "compiler_options": values.mapping_of(values.mapping_of(values.text, _option), values.name),
        "default": _config,
        "entries": values.list_of(_object(Entry)),
        "compiler": values.choice((*CUDA_COMPILERS, TRITON)),
        "call": _object(CallSpec),
        "source": values.text,
        "variants": values.list_of(_variants),
    },
    VariantTable: {
        "dtype": _dtype,
        "sizes": values.list_of(_sizes),
        "configs": values.list_of(_config),
        "left_out": values.list_of(values.amount),
        "data": values.text,
        "halfway": values.list_of(values.row_of(_sizes, values.list_of(_amount_or_null))),
    },
}
_WITH_CONFIGS = {  # the fields of these records that hold configurations
    KernelRecord: ("default", "entries", "variants"),
    Entry: ("config", "ties", "measured", "front", "rivals"),
    VariantTable: ("configs",),
}
_OPTIONAL = {record: optional_fields(record) - _IN_EVERY_FILE for record in _SCHEMA}
