"""Export of a kernel's tuned results as a C and C++ header.

Constraints, derived names and launch limits are evaluated here for each device and configuration;
`c_condition` translates what depends on sizes to C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from pathlib import Path
from string import Template
from typing import NamedTuple

from autotune import __version__
from autotune.core.escapes import c_string
from autotune.core.launch_plan import macro_name
from autotune.core.records import Config, DeviceInfo, Entry, KernelRecord, Sizes, Tier, Value, VariantTable
from autotune.errors import InputError
from autotune.hardware.names import Traits, traits_of
from autotune.interop.c_condition import ALWAYS, NEVER, condition, same_launches
from autotune.serving.cache import Folder, read_roots
from autotune.serving.cache_reader import CacheReader
from autotune.serving.device_records import DeviceRecord, latest, no_results, walk
from autotune.serving.interpolation import known_registers, rows_of
from autotune.serving.matching import Query
from autotune.serving.portability import KnownDevice, best_place, nearest, ranked, scopes
from autotune.serving.validity import KernelOnDevice

TEMPLATE = Path(__file__).with_suffix(".h")
# Keywords of C or C++ that are not also keywords of Python, which no space may use.
_KEYWORDS = """
    alignas alignof asm auto bool case catch char compl const constexpr default delete do double enum explicit
    export extern float friend goto inline int long mutable namespace new operator private protected public
    register restrict short signed sizeof static struct switch template this throw typedef typeid typename
    union unsigned using virtual void volatile
"""


class _Target(NamedTuple):
    """A device that the header has answers for, with its records in the order of the caches."""

    slug: str
    device: DeviceInfo | None
    traits: Traits
    records: tuple[KernelRecord, ...] = ()


class _Choice(NamedTuple):
    """A configuration, the number of the device it was tuned on, and its registers per thread."""

    config: Config
    source: int
    registers: int | None


class _Candidate(NamedTuple):
    """A configuration that may run under a condition in C.

    `cost` is that of a variant, and counts for sizes for which the condition `alike` holds.
    """

    choice: _Choice
    condition: str
    cost: float = 0.0
    alike: str = ALWAYS


class _Point(NamedTuple):
    """Sizes, and the configurations to try for them in this order."""

    sizes: Sizes
    rows: list[_Candidate]


def header(kernel: str, cache: Folder | None = None, data: str | None = None) -> str:
    """The text of a kernel's header, for the inputs that are named `data`.

    It answers as `best_config` does, except for a device without valid results of its own at sizes that no
    device was tuned for: there it gives the answer for the nearest tuned sizes, if that may run.

    Raises InputError if there are no results, if their parameters or sizes differ, if they are for several
    inputs of which none is named, and if a constraint on sizes cannot be expressed in C.
    """
    tuned = _tuned_targets(kernel, cache, data)
    records = [record for target in tuned for record in target.records]
    newest = latest(target.records[0] for target in tuned)
    sizes = _common_sizes(kernel, records, newest)
    targets = [*tuned, *_other_targets(tuned)]
    domains: dict[str, dict[Value, None]] = {parameter.name: {} for parameter in newest.parameters}
    for record in [newest, *records]:
        for parameter in record.parameters:
            domains[parameter.name].update(dict.fromkeys(parameter.values))
    answers, tables = _Answers(newest, tuned, sizes), _Tables(sizes, domains)
    for number, target in enumerate(targets):
        for dtype_number, dtype in enumerate(newest.dtypes):
            for tier, points in answers.runs(number, target, dtype):
                tables.add(f"{number}, {dtype_number}, AUTOTUNE_{tier.name}", points)
    name = f"autotune_{kernel}"
    cases = (f"    case {case}: return ({text}) && flag;" for text, case in tables.conditions.items() if case)
    words = {
        "kernel": kernel,
        "version": __version__,
        "name": name,
        "guard": name.upper(),
        "declarations": "\n".join(_declarations(name, targets, newest.dtypes, domains)),
        "tables": "\n".join(tables.lines(name)),
        "count": len(sizes),
        "parameters": ", ".join(f"long long size_{size}" for size in sizes),
        "sizes": ", ".join(f"size_{size}" for size in sizes),
        "unused": " ".join(f"(void)size_{size};" for size in sizes),
        "logs": ", ".join(f"AUTOTUNE_LOG2((double)size_{size})" for size in sizes),
        "positive": " && ".join(f"size_{size} > 0" for size in sizes),
        "equal": " && ".join(f"point->sizes[{n}] == size_{size}" for n, size in enumerate(sizes)),
        "conditions": "\n".join(cases),
    }
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(words)


def _tuned_targets(kernel: str, cache: Folder | None, data: str | None) -> list[_Target]:
    """The devices with results, each with its records in the order of the caches."""
    roots = read_roots(cache)
    found: dict[str, list[DeviceRecord]] = {}
    query = Query(kernel, None, None, Tier.DEFAULT, None, data)
    for device_record in walk(CacheReader(query.select_data), roots, kernel):
        found.setdefault(device_record.folder, []).append(device_record)
    if not found:
        raise InputError(no_results(kernel, roots))
    return [
        _Target(folder, items[0].device, traits_of(items[0].device), tuple(item.record for item in items))
        for folder, items in found.items()
    ]


def _other_targets(tuned: Sequence[_Target]) -> Iterator[_Target]:
    """Targets for devices without results: by architecture, by vendor, and any other."""
    known = [target.traits for target in reversed(tuned)]
    vendors = {traits.vendor: Traits(traits.kind, traits.vendor) for traits in known if traits.vendor}
    architectures = {traits.architecture: traits for traits in known if traits.architecture}
    others = {**vendors, **architectures, "other": Traits("gpu")}
    taken = {_enumerator(target.slug) for target in tuned}
    for text, traits in others.items():
        slug = re.sub("[^a-z0-9_]+", "-", text.lower()).strip("-")
        if slug and _enumerator(slug) not in taken:
            taken.add(_enumerator(slug))
            yield _Target(slug, None, traits)


def _enumerator(slug: str) -> str:
    return slug.replace("-", "_")


def _common_sizes(kernel: str, records: Sequence[KernelRecord], newest: KernelRecord) -> list[str]:
    """The names of the sizes of all results; raises InputError if they differ or C cannot express them."""
    names = newest.parameter_names
    sizes = sorted(next((entry.sizes for record in records for entry in record.entries), {}))
    if any(record.parameter_names != names for record in records):
        raise InputError(f"{kernel}: its results have different parameters; repeat the older searches")
    if any(sorted(entry.sizes) != sizes for record in records for entry in record.entries):
        raise InputError(f"{kernel}: its results have different names of sizes; repeat the older searches")
    if not sizes:
        raise InputError(f"{kernel}: its results have no sizes; the header looks results up by size")
    if taken := sorted({*names, *sizes} & {*_KEYWORDS.split()}):
        raise InputError(f"{kernel}: {taken[0]!r} is a keyword of C or C++; rename it to write a header")
    return sizes


def _declarations(
    name: str, targets: Sequence[_Target], dtypes: Sequence[str], domains: Mapping[str, Iterable[Value]]
) -> Iterator[str]:
    """Declare devices, element types, constants of named values, and the struct of macros."""
    yield "enum { /* devices: those with results, then others by architecture, vendor, or neither */"
    yield from (f"    {name}_{_enumerator(target.slug)}," for target in targets)
    yield f"    {name}_DEVICES"
    yield "};"
    yield f"#define {name}_OTHER {name}_other"
    yield f"enum {{ {', '.join(f'{name}_{dtype}' for dtype in dtypes)} }}; /* element types */"
    options = []
    for parameter, values in domains.items():
        constants = [macro_name(parameter, value) for value in _names(values)]
        options += [f"-D{constant}={number}" for number, constant in enumerate(constants, 1)]
        if constants:
            listed = ", ".join(
                f"{name}_{constant} = {number}" for number, constant in enumerate(constants, 1)
            )
            yield f"enum {{ {listed} }};"
    yield f"typedef struct {name}_config {{ /* the kernel's macros; a named value as its constant */"
    yield from (f"    {_c_type(values)} {parameter};" for parameter, values in domains.items())
    yield f"}} {name}_config;"
    yield f"#define {name}_MACROS(X) {' '.join(f'X({parameter})' for parameter in domains)}"
    yield f"#define {name}_CONSTANTS {c_string(' '.join(options))}"
    yield f"AUTOTUNE_TABLE autotune_text {name}_devices[] = {{"
    yield from (f"    {c_string(target.slug)}," for target in targets)
    yield "};"


def _names(values: Iterable[Value]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _c_type(values: Iterable[Value]) -> str:
    kinds = {type(value) for value in values}
    return "double" if float in kinds else "int" if kinds <= {bool, str} else "long long"


def _c_value(value: Value, values: Iterable[Value]) -> str:
    if isinstance(value, str):
        return str(_names(values).index(value) + 1)
    return repr(value) if isinstance(value, float) else f"{int(value)}{'LL' * (type(value) is int)}"


@dataclass(frozen=True)
class _Answers:
    """What `best_config` tries for each device, in its order."""

    newest: KernelRecord
    tuned: Sequence[_Target]
    sizes: Sequence[str]
    orders: dict[tuple[object, ...], list[_Choice]] = field(default_factory=dict)  # known already

    def runs(self, number: int, target: _Target, dtype: str) -> Iterator[tuple[Tier, list[_Point]]]:
        """The points of each tier: the device's own results, those of others, and the default.

        Args:
            number: That of the device.
            target: The device.
            dtype: The element type.
        """
        for record in target.records:
            yield from self._own_runs(number, KernelOnDevice(record, target.device, dtype))
        record = target.records[0] if target.records else self.newest
        if dtype not in record.dtypes:
            return
        yield from self._foreign_runs(target, dtype)
        default, anywhere = _Choice(record.default, -1, None), dict.fromkeys(self.sizes, 1)
        yield Tier.DEFAULT, [self._point(KernelOnDevice(record, target.device, dtype), anywhere, [default])]

    def _own_runs(self, number: int, kernel: KernelOnDevice) -> Iterator[tuple[Tier, list[_Point]]]:
        """The results of the device itself: between the sizes of a sweep, and exact ones."""
        own = [entry for entry in kernel.record.entries if entry.dtype == kernel.dtype]
        for table in kernel.record.variants:
            if table.dtype == kernel.dtype:
                swept = [e for e in own if e.sizes in table.sizes and e.data == table.data]
                yield Tier.INTERPOLATED, self._variants(number, kernel, table, swept)
        choices = ((entry, _Choice(entry.config, number, entry.registers)) for entry in own)
        yield Tier.EXACT, [self._point(kernel, entry.sizes, [choice]) for entry, choice in choices]

    def _foreign_runs(self, target: _Target, dtype: str) -> Iterator[tuple[Tier, list[_Point]]]:
        """The results of all devices, at every size that one of them has."""
        kernel = KernelOnDevice(self.newest, target.device, dtype)
        known = []
        for tuned in self.tuned:
            entries = tuple(entry for entry in tuned.records[0].entries if entry.dtype == dtype)
            if entries:
                known.append(KnownDevice(tuned.slug, tuned.traits, entries))
        every_size = {tuple(sorted(e.sizes.items())): e.sizes for device in known for e in device.entries}
        for tier, scope in scopes(target.traits, known):
            orders = ((sizes, self._order(dtype, scope, sizes)) for sizes in every_size.values())
            yield tier, [self._point(kernel, sizes, order) for sizes, order in orders]

    def _point(self, kernel: KernelOnDevice, sizes: Sizes, choices: Iterable[_Choice]) -> _Point:
        """Sizes with the configurations to try, up to the first that may always run."""
        rows: list[_Candidate] = []
        for choice in choices:
            text = condition(kernel, choice.config, choice.registers, self.sizes)
            if text is not None:
                rows.append(_Candidate(choice, text))
            if text == ALWAYS:
                break
        return _Point(sizes, rows)

    def _variants(
        self, number: int, kernel: KernelOnDevice, table: VariantTable, swept: Sequence[Entry]
    ) -> list[_Point]:
        """The sizes at which a sweep timed its variants, each with all of them and what they cost there."""
        timed = [config for config in table.configs if any(config in e.relative_times for e in swept)]
        conditions = [
            condition(kernel, config, known_registers(config, swept), self.sizes) for config in timed
        ]
        points = []
        for row in rows_of(table, swept) if timed else ():
            rows = [
                _Candidate(
                    _Choice(config, number, None),
                    NEVER if text is None else text,
                    row.cost(config),
                    same_launches(kernel, config, row.sizes) if row.counts(config, kernel) else NEVER,
                )
                for config, text in zip(timed, conditions, strict=True)
            ]
            points.append(_Point(row.sizes, rows))
        return points

    def _order(self, dtype: str, scope: Sequence[KnownDevice], sizes: Sizes) -> list[_Choice]:
        """The configurations in the order in which a tier tries them, each with the device it is best on."""
        key = (dtype, *sizes.items(), *(device.folder for device in scope))
        if key not in self.orders:
            slugs = [target.slug for target in self.tuned]
            entries = [nearest(device.entries, sizes) for device in scope]
            self.orders[key] = order = []
            times = [entry.relative_times for entry in entries]
            for config in ranked(times):
                place = best_place(times, config)
                source = slugs.index(scope[place].folder)
                order.append(_Choice(config, source, entries[place].registers_of(config)))
        return self.orders[key]


@dataclass
class _Tables:
    """The rows of the C tables: runs have points, points have rows, and rows a configuration each."""

    sizes: Sequence[str]
    domains: Mapping[str, Iterable[Value]]
    configs: dict[Config, int] = field(default_factory=dict)
    conditions: dict[str, int] = field(default_factory=lambda: {ALWAYS: 0})
    tables: dict[str, list[str]] = field(
        default_factory=lambda: {"config": [], "row": [], "point": [], "run": []}
    )

    def add(self, run: str, points: Sequence[_Point]) -> None:
        """Add the points of a run, which is none without any."""
        if points:
            self.tables["run"].append(f"{run}, {len(self.tables['point'])}, {len(points)}")
        for point in points:
            logs = ", ".join(repr(log2(point.sizes[name])) for name in self.sizes)
            exact = ", ".join(f"{point.sizes[name]}LL" for name in self.sizes)
            first = len(self.tables["row"])
            self.tables["point"].append(f"{{{logs}}}, {{{exact}}}, {first}, {len(point.rows)}")
            self.tables["row"] += [self._row(*row) for row in point.rows]

    def _row(self, choice: _Choice, text: str, cost: float, alike: str) -> str:
        if choice.config not in self.configs:
            self.configs[choice.config] = len(self.configs)
            values = (_c_value(choice.config[name], domain) for name, domain in self.domains.items())
            self.tables["config"].append(", ".join(values))
        cases = [self.conditions.setdefault(one, len(self.conditions)) for one in (text, alike)]
        return f"{self.configs[choice.config]}, {choice.source}, {cases[0]}, {cost!r}, {cases[1]}"

    def lines(self, name: str) -> Iterator[str]:
        """The tables in C, which has no empty arrays: a table without rows gets a row of zeros."""
        for table, rows in self.tables.items():
            yield f"enum {{ {name}_{table.upper()}S = {len(rows)} }};"
            yield f"AUTOTUNE_TABLE {name}_{table} {name}_{table}s[] = {{"
            yield from (f"    {{{row}}}," for row in rows or ["0"])
            yield "};"
