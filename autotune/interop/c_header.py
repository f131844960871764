"""Export of a kernel's tuned results as a C and C++ header: a table, resolved here, and its look-up.

A row has a configuration for some sizes, as `best_config` answers for them. For other sizes the nearest row
counts whose configuration may run there: `c_condition` writes in C what that depends on.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import log2, prod
from pathlib import Path
from string import Template

from autotune.core.escapes import c_string
from autotune.core.launch_plan import macro_name
from autotune.core.records import Config, KernelRecord, Match, Sizes, Tier, Value, VariantTable
from autotune.core.version import __version__
from autotune.errors import ExpressionError, InputError
from autotune.hardware.names import Traits, traits_of
from autotune.interop.c_condition import ALWAYS, NEVER, condition
from autotune.serving.best import Best, NoMatch
from autotune.serving.cache import Folder, read_roots
from autotune.serving.cache_reader import CacheReader
from autotune.serving.device_records import DeviceRecord, first_of_each, latest, no_results, walk
from autotune.serving.foreign_matching import TargetDevice, match_default, match_other_devices
from autotune.serving.interpolation import match_variants
from autotune.serving.query import Query
from autotune.serving.validity import KernelOnDevice

TEMPLATE = Path(__file__).with_suffix(".h")
_MOST_BETWEEN = 1000  # sizes of a sweep with those between them: each takes a millisecond
_OWN_SIZES = -1  # the condition of a row that serves its own sizes only
# Keywords of C or C++ that are not also keywords of Python, which no space may use.
_KEYWORDS = """
    alignas alignof asm auto bool case catch char compl const constexpr default delete do double enum explicit
    export extern float friend goto inline int long mutable namespace new operator private protected public
    register restrict short signed sizeof static struct switch template this throw typedef typeid typename
    union unsigned using virtual void volatile
"""


_Targets = Mapping[TargetDevice, Sequence[DeviceRecord]]  # with their own records, in the order of the caches
_Answers = Iterator[tuple[Sizes, Best]]  # each for some sizes


def header(kernel: str, cache: Folder | None = None, data: str | None = None) -> str:
    """The text of a kernel's header, for the inputs that are named `data`.

    At the sizes of its rows it answers as `best_config` does. Rows that serve no other sizes are warned of.

    Raises InputError if there are no results, if their parameters or sizes differ, or if they are for several
    inputs of which none is named.
    """
    roots = read_roots(cache)
    query = Query(kernel, None, None, Tier.DEFAULT, None, data)
    known = walk(CacheReader(query.select_data), roots, kernel)
    if not known:
        raise InputError(no_results(kernel, roots))
    firsts = first_of_each(known)
    newest = latest(known_device.record for known_device in firsts)
    sizes = _common_sizes(kernel, [known_device.record for known_device in known], newest)
    tuned = _tuned_targets(known)
    targets: _Targets = {**tuned, **dict.fromkeys(_other_targets(tuned), ())}
    domains: dict[str, dict[Value, None]] = {parameter.name: {} for parameter in newest.parameters}
    for known_device in known:
        for parameter in known_device.record.parameters:
            domains[parameter.name].update(dict.fromkeys(parameter.values))
    results = _Results(firsts, newest, sizes)
    table = _Table(sizes, domains, [target.label for target in tuned])
    for number, (target, own) in enumerate(targets.items()):
        for dtype_number, dtype in enumerate(newest.dtypes):
            for group, answers in enumerate(results.groups(target, own, dtype)):
                table.add(f"{number}, {dtype_number}, {group}", answers)
    if table.refused:
        warnings.warn(
            f"{kernel}: some results serve their own sizes only, because {' and '.join(table.refused)}",
            stacklevel=2,
        )
    name = f"autotune_{kernel}"
    words = {
        "kernel": kernel,
        "version": __version__,
        "name": name,
        "guard": name.upper(),
        "declarations": "\n".join(
            _declarations(name, [target.label for target in targets], newest.dtypes, domains)
        ),
        "tables": "\n".join(table.lines(name)),
        "count": len(sizes),
        "parameters": ", ".join(f"long long size_{size}" for size in sizes),
        "sizes": ", ".join(f"size_{size}" for size in sizes),
        "unused": " ".join(f"(void)size_{size};" for size in sizes),
        "logs": ", ".join(f"autotune_log2(size_{size})" for size in sizes),
        "positive": " && ".join(f"size_{size} > 0" for size in sizes),
        "conditions": "\n".join(
            f"    case {number}: return {text};" for text, number in table.conditions.items() if number
        ),
    }
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(words)


def _tuned_targets(known: Iterable[DeviceRecord]) -> _Targets:
    groups: dict[str, list[DeviceRecord]] = {}
    for tuned in known:
        groups.setdefault(tuned.folder, []).append(tuned)
    firsts = {folder: items[0].device for folder, items in groups.items()}
    return {
        TargetDevice(folder, device, traits_of(device)): groups[folder] for folder, device in firsts.items()
    }


def _other_targets(tuned: _Targets) -> Iterator[TargetDevice]:
    """Targets for devices without results: by architecture, by vendor, and any other."""
    known = [target.traits for target in reversed([*tuned])]
    vendors = {traits.vendor: Traits(traits.kind, traits.vendor) for traits in known if traits.vendor}
    architectures = {traits.architecture: traits for traits in known if traits.architecture}
    others = {**vendors, **architectures, "other": Traits("gpu")}
    taken = {_enumerator(target.label) for target in tuned}
    for text, traits in others.items():
        slug = re.sub("[^a-z0-9_]+", "-", text.lower()).strip("-")
        if slug and _enumerator(slug) not in taken:
            taken.add(_enumerator(slug))
            yield TargetDevice(slug, None, traits)


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
    name: str, slugs: Sequence[str], dtypes: Sequence[str], domains: Mapping[str, Iterable[Value]]
) -> Iterator[str]:
    """Declare devices, element types, constants of named values, and the struct of macros."""
    yield "enum { /* devices: those with results, then others by architecture, vendor, or neither */"
    yield from (f"    {name}_{_enumerator(slug)}," for slug in slugs)
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
    yield from (f"    {c_string(slug)}," for slug in slugs)
    yield "};"


def _names(values: Iterable[Value]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _c_type(values: Iterable[Value]) -> str:
    """The type that the values have as macros of a command line, for both compile to the same code."""
    numbers = [value for value in values if not isinstance(value, str)]
    if any(isinstance(value, float) for value in numbers):
        return "double"
    return "int" if all(abs(value) < 2**31 for value in numbers) else "long long"


def _c_value(value: Value, values: Iterable[Value]) -> str:
    if isinstance(value, str):
        return str(_names(values).index(value) + 1)
    return repr(value) if isinstance(value, float) else str(int(value))


@dataclass(frozen=True)
class _Results:
    """The answers of `best_config`, as far as a table can hold them."""

    firsts: Sequence[DeviceRecord]  # the devices with results, each once
    newest: KernelRecord  # of these
    names: Sequence[str]  # of sizes

    def groups(self, target: TargetDevice, own: Sequence[DeviceRecord], dtype: str) -> Iterator[_Answers]:
        """The answers for a device: its own results, cache by cache, those of others, and the default.

        A group counts where nothing of those before it may run.
        """
        for tuned in own:
            yield self._own_answers(tuned, KernelOnDevice(tuned.record, target.device, dtype))
        record = own[0].record if own else self.newest
        if dtype in record.dtypes:
            yield self._foreign_answers(target, own[0] if own else None, dtype)
            match = Match(Tier.DEFAULT, None, None, 0.0, "")
            kernel = KernelOnDevice(record, target.device, dtype)
            anywhere = dict.fromkeys(self.names, 1)
            yield iter([(anywhere, Best(record.default, match, (), kernel, None, tuple))])

    def _own_answers(self, tuned: DeviceRecord, kernel: KernelOnDevice) -> _Answers:
        entries = [entry for entry in tuned.record.entries if entry.dtype == kernel.dtype]
        for entry in entries:
            match = Match(Tier.EXACT, tuned.folder, entry.sizes, 0.0, "")
            yield entry.sizes, Best(entry.config, match, (), kernel, entry, tuple)
        for table in tuned.record.variants:
            for sizes in _sizes_between(table) if table.dtype == kernel.dtype else ():
                query = Query(tuned.record.kernel, tuned.folder, kernel.dtype, Tier.DEFAULT, sizes)
                if (best := match_variants(tuned.folder, kernel, entries, query)) is not None:
                    yield sizes, best

    def _foreign_answers(self, target: TargetDevice, own: DeviceRecord | None, dtype: str) -> _Answers:
        """Answers from all devices, or the default, at every size that one of them has."""
        entries = [entry for tuned in self.firsts for entry in tuned.record.entries if entry.dtype == dtype]
        for sizes in {tuple(sorted(entry.sizes.items())): entry.sizes for entry in entries}.values():
            query = Query(self.newest.kernel, target.label, dtype, Tier.DEFAULT, sizes)
            match = match_other_devices(self.firsts, target, query)
            if isinstance(match, NoMatch):
                match = match_default(self.firsts, own, target, query)
            if not isinstance(match, NoMatch):
                yield sizes, match


def _sizes_between(table: VariantTable) -> Iterator[Sizes]:
    """Sizes between those of a sweep: all of one, two or three binary digits, if a single size varies.

    If several vary, only the powers of two, and none if there are too many of them.
    """
    axes = {name: {sizes[name] for sizes in table.sizes} for name in table.sizes[0]}
    leading = (4, 5, 6, 7) if sum(len(axis) > 1 for axis in axes.values()) == 1 else (4,)
    for name, axis in axes.items():
        low, high = min(axis), max(axis)
        between = {(digits << power) // 4 for power in range(high.bit_length()) for digits in leading}
        axes[name] = axis | {size for size in between if low < size < high}
    if prod(map(len, axes.values())) > _MOST_BETWEEN:
        return
    for sizes in product(*map(sorted, axes.values())):
        point = dict(zip(axes, sizes, strict=True))
        if point not in table.sizes:
            yield point


@dataclass
class _Table:
    """The rows of the C tables, and the conditions on sizes, by number."""

    sizes: Sequence[str]
    domains: Mapping[str, Iterable[Value]]
    slugs: Sequence[str]  # of the devices with results
    configs: dict[Config, int] = field(default_factory=dict)
    conditions: dict[str, int] = field(default_factory=lambda: {ALWAYS: 0})
    refused: dict[str, None] = field(default_factory=dict)  # what is not plain arithmetic
    rows: list[str] = field(default_factory=list)

    def add(self, group: str, answers: _Answers) -> None:
        """Add the rows of a group's answers, but for those that may not run at any sizes."""
        known: dict[tuple[int, Config, int | None], int | None] = {}
        for sizes, best in answers:
            registers = best.entry.registers_of(best.config) if best.entry else None
            key = (id(best.record), best.config, registers)
            if key not in known:
                known[key] = self._condition(best.kernel, best.config, registers)
            number = known[key]
            if number is None or (number == _OWN_SIZES and not best.kernel.is_valid(best.config, sizes)):
                continue
            config = self.configs.setdefault(best.config, len(self.configs))
            source = -1 if best.source_device is None else self.slugs.index(best.source_device)
            logs = ", ".join(repr(log2(sizes[name])) for name in self.sizes)
            exact = ", ".join(f"{sizes[name]}LL" for name in self.sizes)
            row = f"{group}, AUTOTUNE_{best.match.tier.name}, {config}, {source}, {number}"
            self.rows.append(f"{row}, {{{logs}}}, {{{exact}}}")

    def _condition(self, kernel: KernelOnDevice, config: Config, registers: int | None) -> int | None:
        """The number of a configuration's condition; None if it may not run at any sizes."""
        if kernel.check(config, None, registers).violations:
            return None
        try:
            text = condition(kernel, config, registers, self.sizes)
        except ExpressionError as error:
            self.refused[str(error)] = None
            return _OWN_SIZES
        return None if text == NEVER else self.conditions.setdefault(text, len(self.conditions))

    def lines(self, name: str) -> Iterator[str]:
        """The tables in C, which has no empty arrays: a table without rows gets a row of zeros."""
        configs = [
            ", ".join(_c_value(config[name], domain) for name, domain in self.domains.items())
            for config in self.configs
        ]
        for table, rows in (("config", configs), ("row", self.rows)):
            yield f"enum {{ {name}_{table.upper()}S = {len(rows)} }};"
            yield f"AUTOTUNE_TABLE {name}_{table} {name}_{table}s[] = {{"
            yield from (f"    {{{row}}}," for row in rows or ["0"])
            yield "};"
