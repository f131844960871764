"""The tiers EXACT, INTERPOLATED and NEAREST_SIZE: which of a device's own results may be served for a query.

What is served is valid for the device and the sizes of the query, as far as these are known. The tiers of
other devices are in `foreign_matching`, which a program whose device was tuned does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from autotune.core.frozen import dataclass, replace
from autotune.core.records import DeviceInfo, Entry, KernelRecord, Match, Sizes, Tier, distance
from autotune.core.text import size_text
from autotune.errors import InputError
from autotune.hardware.names import slug
from autotune.serving.best import Best
from autotune.serving.validity import KernelOnDevice, require_sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from autotune.serving.portability import Slowdown


@dataclass(frozen=True)
class Query:
    """What `best_config` was asked for; `least` is the loosest tier that may be served."""

    kernel: str
    device: str | DeviceInfo | None
    dtype: str | None
    least: Tier
    sizes: Sizes | None
    data: str | None = None

    def select_data(self, record: KernelRecord) -> KernelRecord:
        """Keep the results for the query's data: the content of the inputs, by name.

        A query without a name gets the results without one, else those of the only name. Raises InputError
        if the record has several names, none of them empty.
        """
        known = dict.fromkeys(entry.data for entry in record.entries)
        if self.data is None and len(known) < 2:
            return record
        if self.data is None and "" not in known:
            listed = " or ".join(f"data={name!r}" for name in known)
            raise InputError(f"{self.kernel}: was tuned for several inputs; choose one: {listed}")
        data = self.data or ""
        return replace(record, entries=tuple(entry for entry in record.entries if entry.data == data))

    @property
    def slug(self) -> str | None:
        """The folder name of the device; None if no device was given."""
        if isinstance(self.device, DeviceInfo):
            return self.device.slug
        return None if self.device is None else slug(self.device)

    @property
    def given(self) -> DeviceInfo | None:
        """The description of the device, if the caller gave one."""
        return self.device if isinstance(self.device, DeviceInfo) else None


def match_own_results(
    folder: str, record: KernelRecord, device: DeviceInfo, query: Query
) -> Best | tuple[str, ...]:
    """The EXACT, INTERPOLATED or NEAREST_SIZE answer, else why results may not be served."""
    kernel = KernelOnDevice(record, device, dtype_of(record, query))
    entries = [entry for entry in record.entries if entry.dtype == kernel.dtype]
    sizes = query.sizes if query.sizes is not None else only_sizes(folder, entries, query)
    if query.sizes is not None:
        require_sizes(record, sizes)
    alike = [entry for entry in entries if entry.sizes.keys() == sizes.keys()]
    alike.sort(key=lambda entry: distance(entry.sizes, sizes))
    if record.variants and alike and alike[0].sizes != sizes:
        from autotune.serving.interpolation import match_variants  # only after a sweep

        interpolated = match_variants(folder, kernel, alike, query)
        if interpolated is not None:
            return interpolated
    reasons: list[str] = []
    for entry in alike:
        match = _match(folder, entry, sizes)
        if not match.tier.reaches(query.least):
            break
        result = f"the result for {size_text(entry.sizes)}"
        if query.least is Tier.EXACT and not is_compared(entry, record):
            reasons.append(f"{result} was never compared with a reference")
            continue
        violations = kernel.check(entry.config, sizes, entry.registers).violations
        if violations:
            reasons.append(f"{result} is not valid here: {' and '.join(violations)}")
            continue
        stale = stale_reasons(entry, record, query.given)
        return Best(entry.config, match, stale, kernel, entry, _evidence(alike, match))
    return tuple(reasons)


def _evidence(entries: Sequence[Entry], match: Match) -> Callable[[], Sequence[Slowdown]]:
    """Return the function that computes the known slowdowns of serving another size's result."""
    if match.tier is Tier.EXACT:
        return tuple
    from autotune.serving.portability import across_sizes  # not needed for an exact answer

    return partial(across_sizes, entries, match.distance)


def _match(folder: str, entry: Entry, sizes: Sizes) -> Match:
    detail = f"{entry.provenance.origin} on {folder} for {size_text(entry.sizes)}"
    if entry.sizes == sizes:
        return Match(Tier.EXACT, folder, entry.sizes, 0.0, detail + entry.caveat)
    away = distance(entry.sizes, sizes)
    detail += f", the nearest to {size_text(sizes)}{entry.caveat}"
    return Match(Tier.NEAREST_SIZE, folder, entry.sizes, away, detail)


def is_compared(entry: Entry, record: KernelRecord) -> bool:
    """Whether at least one output was compared, as far as the result says."""
    outputs = {item.name for item in record.arguments if item.role in ("out", "inout")}
    return not entry.uncompared or bool(outputs.difference(entry.uncompared))


def only_sizes(folder: str, entries: Sequence[Entry], query: Query) -> Sizes:
    """The sizes of a device's only result; raises InputError when there are several."""
    if len(entries) > 1:
        listed = " or ".join(size_text(entry.sizes) for entry in entries)
        raise InputError(f"{query.kernel}: give its sizes; {folder} has results for {listed}")
    return entries[0].sizes if entries else {}


def dtype_of(record: KernelRecord, query: Query) -> str:
    """The element type of the query, else the first declared; raises InputError for an undeclared one."""
    dtype = query.dtype or record.dtypes[0]
    if dtype not in record.dtypes:
        raise InputError(f"{query.kernel}: dtype {dtype!r}: expected one of {', '.join(record.dtypes)}")
    return dtype


def stale_reasons(entry: Entry, record: KernelRecord, device: DeviceInfo | None) -> tuple[str, ...]:
    """Sentences on what has changed since a result was found.

    Args:
        entry: The result.
        record: Its record, whose newest result has the present source and space.
        device: The device with its present driver and runtime; None where unknown.
    """
    origin = entry.provenance
    newest = max((other.provenance for other in record.entries), key=lambda provenance: provenance.tuned_at)
    now = [("kernel source", origin.source_sha256[:12], newest.source_sha256[:12])]
    now += [("space", origin.space_sha256[:12], newest.space_sha256[:12])]
    if device is not None:
        now += [("driver", origin.driver, device.driver), ("runtime", origin.runtime, device.runtime)]
    return tuple(change_sentence(*row) for row in now if row[1] != row[2])


def change_sentence(what: str, before: str, after: str) -> str:
    """Say what something was when a result was found, and what it is now."""
    return f"the {what} was {before[:40]} when this was tuned and is {after[:40]} now."
