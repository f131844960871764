"""The tiers EXACT, INTERPOLATED and NEAREST_SIZE: choose among a device's own results for a query.

Answers are valid for the device and the sizes of the query, as far as these are known. `foreign_matching` has
the tiers of other devices; it is not imported if the device was tuned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from autotune.core.records import DeviceInfo, Entry, KernelRecord, Match, Sizes, Tier, distance
from autotune.core.text import size_text
from autotune.serving.best import Best, NoMatch, Refusal, with_refusal
from autotune.serving.query import Query, dtype_of, only_sizes, stale_reasons
from autotune.serving.validity import KernelOnDevice, require_sizes

if TYPE_CHECKING:
    from autotune.serving.portability import Slowdown


def match_own_results(folder: str, record: KernelRecord, device: DeviceInfo, query: Query) -> Best | NoMatch:
    """The EXACT, INTERPOLATED or NEAREST_SIZE answer, else why there is none."""
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
    reasons: list[Refusal] = []
    for entry in alike:
        match = _match(folder, entry, sizes, "nearest valid one" if reasons else "nearest")
        if not match.tier.reaches(query.loosest):
            break
        result = f"the result for {size_text(entry.sizes)}"
        if query.loosest is Tier.EXACT and not has_compared_output(entry, record):
            reasons.append(Refusal(result, "was never compared with a reference"))
            continue
        violations = kernel.check(entry.config, sizes, entry.registers).violations
        if violations:
            reasons.append(Refusal(result, f"is not valid here: {' and '.join(violations)}"))
            continue
        stale = stale_reasons(entry, record, query.given)
        evidence = partial(_across_sizes, alike, match.distance)
        return with_refusal(Best(entry.config, match, stale, kernel, entry, evidence), reasons)
    return NoMatch(tuple(reasons))


def _across_sizes(entries: Sequence[Entry], reach: float) -> Sequence[Slowdown]:
    """The known slowdowns of serving another size's result."""
    from autotune.serving.portability import across_sizes  # only if somebody asks

    return across_sizes(entries, reach)


def _match(folder: str, entry: Entry, sizes: Sizes, nearest: str) -> Match:
    detail = f"{entry.provenance.origin} on {folder} for {size_text(entry.sizes)}"
    if entry.sizes == sizes:
        return Match(Tier.EXACT, folder, entry.sizes, 0.0, detail + entry.caveat)
    away = distance(entry.sizes, sizes)
    detail += f", the {nearest} to {size_text(sizes)}{entry.caveat}"
    return Match(Tier.NEAREST_SIZE, folder, entry.sizes, away, detail)


def has_compared_output(entry: Entry, record: KernelRecord) -> bool:
    """True if the search compared at least one output with a reference, according to its result."""
    outputs = {item.name for item in record.arguments if item.role in ("out", "inout")}
    return not entry.uncompared or bool(outputs.difference(entry.uncompared))
