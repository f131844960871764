"""Tuned results of a kernel as one C and C++ header, whose look-up answers as `best_config` does.

The look-up is constexpr in C++14 with GCC, an inline function elsewhere, and needs nothing but the C library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autotune import __version__
from autotune.cache import Folder
from autotune.interop.c_expression import C_TYPES, TEXT
from autotune.interop.c_rules import c_number, device_fields, device_values, kind_of, rules_function
from autotune.interop.c_tables import Tables, tables_of
from autotune.interop.c_template import HELPERS, LOOKUP
from autotune.model import Parameter, Value
from autotune.plan import macro_name

NAME = "c-header"
_RECORDS = {  # struct types of the tables, with their fields
    "place": "int device, dtype, rules, first, count",
    "scope": "int device, dtype, tier, first_group, groups, first_list, lists",
    "group": "int first, count",
    "list": "int first_near, first, count",
    "rank": "int config, source; long long registers",
    "default": "int device, dtype, rules, config",
}


def header(kernel: str, cache: Folder | None = None) -> str:
    """The text of a kernel's header.

    Raises InputError when there are no results, when they are of different parameters or sizes, and when a
    constraint cannot be expressed in C, which it names.
    """
    tables = tables_of(kernel, cache)
    prefix = tables.words.prefix
    devices = [target.device for target in tables.targets if target.device]
    kinds = {name: kind_of([getattr(d, name) for d in devices]) for name in device_fields(tables.rules)}
    rules = [
        line
        for number, record in enumerate(tables.rules)
        for line in rules_function(number, record, tables.words, kinds)
    ]
    lines = [
        f"/* Tuned configurations of the kernel {kernel}, written by autotune {__version__}. Do not edit. */",
        f"#ifndef {prefix.upper()}_H",
        f"#define {prefix.upper()}_H",
        HELPERS,
        *_vocabulary(tables),
        *_devices(tables, kinds),
        *_results(tables),
        *rules,
        *_valid(tables),
        _lookup(tables),
        *_assertions(tables),
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _vocabulary(tables: Tables) -> Iterator[str]:
    """Names of devices and element types, constants of named values, and the struct of macros."""
    prefix = tables.words.prefix
    yield "enum { /* devices: those with results, then others by architecture, vendor, or neither */"
    yield from (f"    {prefix}_{_identifier(target.slug)}," for target in tables.targets)
    yield f"    {prefix}_DEVICES"
    yield "};"
    yield f"#define {prefix}_OTHER {prefix}_other"
    yield f"enum {{ {', '.join(f'{prefix}_{dtype}' for dtype in tables.dtypes)} }}; /* element types */"
    texts = [f"{tables.words.text(dtype)}" for dtype in tables.dtypes]
    yield f"AUTOTUNE_TABLE int {prefix}_dtype_texts[] = {{{', '.join(texts)}}};"
    for parameter in tables.words.parameters:
        if names := _names(parameter):
            constants = [
                f"{prefix}_{macro_name(parameter.name, name)} = {n}" for n, name in enumerate(names, 1)
            ]
            yield f"enum {{ {', '.join(constants)} }};"
            numbers = ", ".join(str(tables.words.text(name)) for name in names)
            yield f"AUTOTUNE_TABLE int {prefix}_{parameter.name}_texts[] = {{0, {numbers}}};"
    yield f"typedef struct {prefix}_config {{ /* the kernel's macros; a named value as its constant */"
    yield from (f"    {C_TYPES[kind_of(item.values)]} {item.name};" for item in tables.words.parameters)
    yield f"}} {prefix}_config;"
    listed = " ".join(f"X({parameter.name})" for parameter in tables.words.parameters)
    yield f"#define {prefix}_MACROS(X) {listed}"
    constants = [
        f"-D{macro_name(item.name, name)}={number}"
        for item in tables.words.parameters
        for number, name in enumerate(_names(item), 1)
    ]
    yield f'#define {prefix}_CONSTANTS "{" ".join(constants)}"'


def _devices(tables: Tables, kinds: dict[str, str]) -> Iterator[str]:
    prefix = tables.words.prefix
    fields = " ".join(f"{C_TYPES[kind]} {name};" for name, kind in kinds.items())
    yield f"typedef struct {prefix}_device {{ const char *slug; int is_known; {fields} }} {prefix}_device;"
    yield f"AUTOTUNE_TABLE {prefix}_device {prefix}_devices[] = {{"
    for target in tables.targets:
        values = device_values(target.device, kinds, tables.words.text)
        yield f'    {{"{target.slug}", {int(target.device is not None)}, {", ".join(values)}}},'
    yield "};"


def _results(tables: Tables) -> Iterator[str]:
    prefix, count = tables.words.prefix, len(tables.words.sizes)
    yield f"enum {{ {prefix}_SIZES = {count} }};"
    yield (
        f"typedef struct {prefix}_entry {{ double log2_sizes[{count}]; long long sizes[{count}]; "
        f"int config, is_valid; long long registers; }} {prefix}_entry;"
    )
    for name, fields in _RECORDS.items():
        yield f"typedef struct {prefix}_{name} {{ {fields}; }} {prefix}_{name};"
    fields = f"{prefix}_config config; int tier; const char *source;"
    yield f"typedef struct {prefix}_best_t {{ {fields} }} {prefix}_best_t;"
    configs = [
        ", ".join(_c_value(parameter, config[parameter.name]) for parameter in tables.words.parameters)
        for config in tables.configs
    ]
    yield from _table(tables, "config", "configs", [f"{{{row}}}" for row in configs])
    yield from _table(tables, "entry", "entries", tables.entries)
    yield from _table(tables, "place", "places", tables.places)
    yield from _table(tables, "scope", "scopes", tables.scopes)
    yield from _table(tables, "group", "groups", tables.groups)
    nears = ", ".join(str(place) for place in tables.nears) or "0"
    yield f"AUTOTUNE_TABLE int {prefix}_nears[] = {{{nears}}};"
    yield from _table(tables, "list", "lists", tables.lists)
    yield from _table(tables, "rank", "ranked", tables.ranked)
    yield from _table(tables, "default", "defaults", tables.defaults)


def _table(tables: Tables, record: str, name: str, rows: Sequence[str]) -> Iterator[str]:
    """A table and how many rows it has; C has no empty ones, so one without rows gets a row of zeros."""
    prefix = tables.words.prefix
    yield f"enum {{ {prefix}_{name.upper()} = {len(rows)} }};"
    yield f"AUTOTUNE_TABLE {prefix}_{record} {prefix}_{name}[] = {{"
    yield from (f"    {row}," for row in rows or ["{0}"])
    yield "};"


def _valid(tables: Tables) -> Iterator[str]:
    prefix = tables.words.prefix
    sizes = ", ".join(f"long long size_{name}" for name in tables.words.sizes)
    passed = ", ".join(["registers", *(f"size_{name}" for name in tables.words.sizes)])
    yield "/* Whether a configuration may run: 0 when a constraint or a limit of the device forbids it. */"
    yield (
        f"AUTOTUNE_FUNCTION int {prefix}_valid(int rules, const {prefix}_config *config, "
        f"const {prefix}_device *device, int dtype, long long registers, {sizes}) {{"
    )
    yield "    switch (rules) {"
    for number in range(1, len(tables.rules)):
        yield f"    case {number}: return {prefix}_rules_{number}(config, device, dtype, {passed});"
    yield f"    default: return {prefix}_rules_0(config, device, dtype, {passed});"
    yield "    }"
    yield "}"


def _lookup(tables: Tables) -> str:
    names = tables.words.sizes
    text = LOOKUP.replace("SIZE_PARAMETERS", ", ".join(f"long long size_{name}" for name in names))
    text = text.replace("SIZE_LOGS", ", ".join(f"AUTOTUNE_LOG2((double)size_{name})" for name in names))
    text = text.replace("SIZE_NAMES", ", ".join(f"size_{name}" for name in names))
    equal = [f"NAME_entries[last].sizes[{n}] == size_{name}" for n, name in enumerate(names)]
    text = text.replace("SIZES_EQUAL", f"({' && '.join(equal)})").replace("NAME_NEWEST", "0")
    return text.replace("NAME", tables.words.prefix)


def _assertions(tables: Tables) -> Iterator[str]:
    """Every result may run where it was found: an edited table, or a compiler at odds, does not compile."""
    prefix = tables.words.prefix
    yield "#if defined(AUTOTUNE_CONSTEXPR)"
    for rules, config, device, dtype, registers, sizes in tables.asserted:
        passed = ", ".join(f"{sizes[name]}LL" for name in tables.words.sizes)
        what = f"&{prefix}_configs[{config}], &{prefix}_devices[{device}], {dtype}, {registers}, {passed}"
        message = f"a stored result breaks a constraint of {tables.kernel}"
        yield f'static_assert({prefix}_valid({rules}, {what}), "{message}");'
    yield "#endif"


def _names(parameter: Parameter) -> list[str]:
    return [value for value in parameter.values if isinstance(value, str)]


def _c_value(parameter: Parameter, value: Value) -> str:
    if isinstance(value, str):
        return str(_names(parameter).index(value) + 1)
    return c_number(value) if kind_of(parameter.values) != TEXT else "0"


def _identifier(slug: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in slug)
