"""The tables of a generated C header: which configurations may answer for which device, in which order.

It follows `loader` and `tiers` step by step; what depends on the sizes that are asked for is left to the
header. Besides the devices of the caches there are names for others: of an architecture, of a vendor, any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf, isqrt, log2, prod

from autotune.best import check
from autotune.cache import Folder, read_roots
from autotune.carry_over import Known, ranked, scopes
from autotune.device_names import Traits, traits_of
from autotune.errors import InputError
from autotune.holdings import Holder, latest, no_results, walk
from autotune.interop.c_rules import Vocabulary
from autotune.model import Config, DeviceInfo, Entry, KernelRecord, Parameter, Sizes, Value
from autotune.shelf import Shelf

MOST_LISTS = 4096  # of ranked configurations, one for each way in which sizes lie near the known ones
_Run = tuple[tuple[int, ...], ...]  # the sizes of a device's results, in their order
# Keywords of C or C++, besides those that Python has too and no space may use.
_KEYWORDS = """
    alignas alignof asm auto bool case catch char compl const constexpr default delete do double enum explicit
    export extern float friend goto inline int long mutable namespace new operator private protected public
    register restrict short signed sizeof static struct switch template this throw typedef typeid typename
    union unsigned using virtual void volatile
"""


@dataclass(frozen=True)
class Target:
    """A device that may be asked for: its slug, what is known of it, and its own records, cache by cache."""

    slug: str
    device: DeviceInfo | None
    traits: Traits
    records: tuple[KernelRecord, ...] = ()


@dataclass
class Tables:
    """Rows of the C tables, as C writes them where they are made of numbers only.

    `asserted` are results that are valid where they were found: rules, configuration, device, dtype,
    registers of a thread, sizes.
    """

    kernel: str
    words: Vocabulary
    targets: tuple[Target, ...]
    dtypes: tuple[str, ...]
    configs: dict[Config, int] = field(default_factory=dict)
    rules: list[KernelRecord] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    nears: list[int] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    ranked: list[str] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    asserted: list[tuple[int, int, int, int, int, Sizes]] = field(default_factory=list)
    shared: dict[tuple[str, ...], str] = field(default_factory=dict)

    def config(self, config: Config) -> int:
        """The row of a configuration."""
        return self.configs.setdefault(config, len(self.configs))

    def rule(self, record: KernelRecord) -> int:
        """The number of the version of the rules that a record has."""
        for number, known in enumerate(self.rules):
            if _rules(known) == _rules(record):
                return number
        self.rules.append(record)
        return len(self.rules) - 1

    def run_of(self, entries: Sequence[Entry], record: KernelRecord) -> int:
        """Add results that belong together and return the row of the first."""
        first = len(self.entries)
        for entry in entries:
            logs = ", ".join(repr(log2(entry.sizes[name])) for name in self.words.sizes)
            exact = ", ".join(f"{entry.sizes[name]}LL" for name in self.words.sizes)
            is_valid = _fits(entry.config, record.parameters)
            config = self.config(entry.config) if is_valid else 0  # C has no word for others
            self.entries.append(
                f"{{{{{logs}}}, {{{exact}}}, {config}, {int(is_valid)}, {entry.registers or 0}}}"
            )
        return first


def tables_of(kernel: str, cache: Folder | None = None) -> Tables:
    """The tables of a kernel; rules 0 are those of the newest result, which hold for other devices.

    Raises InputError when there are no results, or when they are of different parameters or sizes.
    """
    held = _held(kernel, cache)
    records = [record for target in held for record in target.records]
    newest = latest(target.records[0] for target in held)
    words = _vocabulary(kernel, records, newest)
    tables = Tables(kernel, words, (*held, *_unknown(held)), newest.dtypes)
    tables.rule(newest)
    for dtype_number, dtype in enumerate(newest.dtypes):
        for number, target in enumerate(tables.targets):
            _add_own(tables, number, target, dtype_number, dtype)
            if not target.records or dtype in target.records[0].dtypes:
                _add_foreign(tables, number, target, dtype_number, dtype, held, newest)
                _add_defaults(tables, number, target, dtype_number, dtype, newest)
    return tables


def _held(kernel: str, cache: Folder | None) -> list[Target]:
    """The devices with results, by their folders, each with what the caches say of it in their order."""
    roots = read_roots(cache)
    found: dict[str, list[Holder]] = {}
    for holder in walk(Shelf(), roots, kernel):
        found.setdefault(holder.folder, []).append(holder)
    if not found:
        raise InputError(no_results(kernel, roots))
    return [
        Target(folder, held[0].device, traits_of(held[0].device), tuple(one.record for one in held))
        for folder, held in found.items()
    ]


def _unknown(held: Sequence[Target]) -> list[Target]:
    """Names for devices without results, from those whose architecture is known to any device at all."""
    found: dict[str, Target] = {}
    for target in held:
        traits = target.traits
        if traits.architecture:
            found.setdefault(traits.architecture, Target(traits.architecture, None, traits))
    for target in held:
        traits = target.traits
        if traits.vendor:
            found.setdefault(traits.vendor, Target(traits.vendor, None, Traits(traits.kind, traits.vendor)))
    found["other"] = Target("other", None, Traits("gpu"))
    known = {target.slug for target in held}
    return [target for slug, target in found.items() if slug not in known]


def _vocabulary(kernel: str, records: Sequence[KernelRecord], latest: KernelRecord) -> Vocabulary:
    names = {parameter.name for parameter in latest.parameters}
    sizes = tuple(sorted(next((entry.sizes for record in records for entry in record.entries), {})))
    for record in records:
        if {parameter.name for parameter in record.parameters} != names:
            raise InputError(
                f"{kernel}: its devices have results of different parameters; search again on the older"
            )
        if any(set(entry.sizes) != set(sizes) for entry in record.entries):
            raise InputError(
                f"{kernel}: its results are for sizes of different names; search again on the older"
            )
    if not sizes:
        raise InputError(f"{kernel}: its results have no sizes, by which the header looks them up")
    if taken := sorted((names | set(sizes)) & set(_KEYWORDS.split())):
        raise InputError(f"{kernel}: {taken[0]!r} is a keyword of C or C++; rename it to write a header")
    domains: dict[str, dict[Value, None]] = {parameter.name: {} for parameter in latest.parameters}
    for record in [latest, *records]:
        for parameter in record.parameters:
            domains[parameter.name].update(dict.fromkeys(parameter.values))
    numbers: dict[str, int] = {}
    parameters = tuple(Parameter(name, tuple(values)) for name, values in domains.items())
    return Vocabulary(
        f"autotune_{kernel}", sizes, parameters, lambda text: numbers.setdefault(text, len(numbers) + 1)
    )


def _add_own(tables: Tables, number: int, target: Target, dtype_number: int, dtype: str) -> None:
    for record in target.records:
        entries = [entry for entry in record.entries if entry.dtype == dtype]
        if entries:
            rule, first = tables.rule(record), tables.run_of(entries, record)
            tables.places.append(f"{{{number}, {dtype_number}, {rule}, {first}, {len(entries)}}}")
            tables.asserted += [
                (rule, tables.config(entry.config), number, dtype_number, entry.registers or 0, entry.sizes)
                for entry in entries
                if not check(
                    record, entry.config, target.device, entry.sizes, dtype, entry.registers
                ).violations
            ]


def _add_foreign(
    tables: Tables,
    number: int,
    target: Target,
    dtype_number: int,
    dtype: str,
    held: Sequence[Target],
    latest: KernelRecord,
) -> None:
    """The ranked configurations of each tier, for every way in which sizes lie near the known ones."""
    known = [
        Known(one.slug, one.traits, tuple(entry for entry in one.records[0].entries if entry.dtype == dtype))
        for one in held
    ]
    slugs = [one.slug for one in held]
    for tier, scope in scopes(target.traits, [one for one in known if one.entries]):
        key = (dtype, *(one.folder for one in scope))
        if key not in tables.shared:
            tables.shared[key] = _add_scope(tables, scope, slugs, latest)
        tables.scopes.append(f"{{{number}, {dtype_number}, AUTOTUNE_{tier.name}, {tables.shared[key]}}}")


def _add_scope(tables: Tables, scope: Sequence[Known], slugs: Sequence[str], latest: KernelRecord) -> str:
    """The lists of a tier's devices, one for each way in which sizes can lie near those of the results.

    Devices with results for the same sizes, in the same order, share a group.
    """
    names = tables.words.sizes
    runs = [tuple(tuple(entry.sizes[name] for name in names) for entry in one.entries) for one in scope]
    groups = {run: number for number, run in enumerate(dict.fromkeys(runs))}
    first_group, first_list = len(tables.groups), len(tables.lists)
    for run in groups:
        first = tables.run_of(scope[runs.index(run)].entries, latest)
        tables.groups.append(f"{{{first}, {len(run)}}}")
    ways = _ways(list(groups), latest.kernel)
    for near in ways:
        chosen = [one.entries[near[groups[run]]] for one, run in zip(scope, runs, strict=True)]
        first_near = len(tables.nears)
        tables.nears += near
        _add_list(tables, chosen, [slugs.index(one.folder) for one in scope], latest, first_near)
    return f"{first_group}, {len(groups)}, {first_list}, {len(ways)}"


def _ways(runs: Sequence[_Run], kernel: str) -> list[tuple[int, ...]]:
    """Which results can be the nearest ones together, as one place for each run.

    With one size these are found where the nearest changes, at the geometric means of two of a run's sizes.
    With more it may be any combination.
    """
    if len(runs[0][0]) > 1:
        if prod(len(run) for run in runs) > MOST_LISTS:
            raise InputError(f"{kernel}: its devices have results for too many different sizes for a header")
        return list(product(*(range(len(run)) for run in runs)))
    edges = {isqrt(one * other) for run in runs for (one,) in run for (other,) in run}
    probes = sorted({1} | edges | {edge + 1 for edge in edges})
    return list(dict.fromkeys(tuple(_nearest(run, probe) for run in runs) for probe in probes))


def _nearest(run: _Run, size: int) -> int:
    return min(range(len(run)), key=lambda place: abs(log2(run[place][0]) - log2(size)))


def _add_list(
    tables: Tables, chosen: Sequence[Entry], slugs: Sequence[int], latest: KernelRecord, first_near: int
) -> None:
    """Configurations in the order in which a tier tries them, each with the device it is best on.

    `chosen` has a result of each device, whose row `slugs` gives.
    """
    first = len(tables.ranked)
    for config in ranked([entry.relative_times for entry in chosen]):
        if _fits(config, latest.parameters):
            factors = [entry.relative_times.get(config, inf) for entry in chosen]
            place = factors.index(min(factors))
            registers = chosen[place].registers_of(config) or 0
            tables.ranked.append(f"{{{tables.config(config)}, {slugs[place]}, {registers}}}")
    tables.lists.append(f"{{{first_near}, {first}, {len(tables.ranked) - first}}}")


def _add_defaults(
    tables: Tables, number: int, target: Target, dtype_number: int, dtype: str, latest: KernelRecord
) -> None:
    for record in target.records[:1] or (latest,):
        if dtype in record.dtypes and _fits(record.default, record.parameters):
            config = tables.config(record.default)
            tables.defaults.append(f"{{{number}, {dtype_number}, {tables.rule(record)}, {config}}}")


def _fits(config: Config, parameters: Sequence[Parameter]) -> bool:
    """Whether a configuration has these parameters, each with one of its values."""
    names = {parameter.name for parameter in parameters}
    return config.keys() == names and all(config[item.name] in item.values for item in parameters)


def _rules(record: KernelRecord) -> tuple[object, ...]:
    """What decides whether a configuration may run, its parameters' values apart."""
    launch = tuple((step.block, step.shared_bytes, step.when) for step in record.launch)
    return record.constraints, tuple(record.derived.items()), launch
