"""The tiers: which of a kernel's results, if any, may be served for a question.

Pure functions of records; where records come from is the loader's business. Whatever is served is valid
for the device and the sizes of the question, as far as these are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, log2
from typing import NamedTuple

from autotune.best import Best, check, require_sizes, size_text
from autotune.cache import slug
from autotune.errors import InputError
from autotune.model import DeviceInfo, Entry, KernelRecord, Match, Sizes, Tier


class Question(NamedTuple):
    """What `best_config` was asked; `sizes` None: none were given."""

    kernel: str
    device: str | DeviceInfo | None
    dtype: str | None
    strict: bool
    sizes: Sizes | None

    @property
    def slug(self) -> str | None:
        """The folder name that the device asks for."""
        if isinstance(self.device, DeviceInfo):
            return self.device.slug
        if not isinstance(self.device, str | None):
            raise InputError(f"device {self.device!r}: expected a name, a slug or a DeviceInfo")
        return None if self.device is None else slug(self.device)

    @property
    def given(self) -> DeviceInfo | None:
        """The device as it is now, when the caller knows it."""
        return self.device if isinstance(self.device, DeviceInfo) else None


def tuned(
    folder: str, record: KernelRecord, device: DeviceInfo, question: Question, reasons: list[str]
) -> Best | None:
    """The EXACT or NEAREST_SIZE answer; adds to `reasons` why a result may not be served."""
    dtype = _dtype(record, question)
    entries = [entry for entry in record.entries if entry.dtype == dtype]
    sizes = question.sizes
    if sizes is None:
        if len(entries) > 1:
            listed = " or ".join(size_text(entry.sizes) for entry in entries)
            raise InputError(f"{question.kernel}: give its sizes; {folder} has results for {listed}")
        sizes = entries[0].sizes if entries else {}
    else:
        require_sizes(record, sizes)
    exact = [entry for entry in entries if entry.sizes == sizes]
    others = [entry for entry in entries if entry.sizes.keys() == sizes.keys() and entry.sizes != sizes]
    others.sort(key=lambda entry: _distance(entry.sizes, sizes))
    for entry in exact if question.strict else exact + others:
        violations = check(record, entry.config, device, sizes, dtype).violations
        if violations:
            reasons.append(
                f"the result for {size_text(entry.sizes)} is not valid here: {' and '.join(violations)}"
            )
            continue
        stale = _stale(entry, record, question.given)
        return Best(entry.config, dtype, _match(folder, entry, sizes), stale, record, device, entry)
    return None


def _match(folder: str, entry: Entry, sizes: Sizes) -> Match:
    detail = f"tuned on {folder} for {size_text(entry.sizes)}"
    if entry.sizes == sizes:
        return Match(Tier.EXACT, folder, entry.sizes, 0.0, detail)
    distance = _distance(entry.sizes, sizes)
    return Match(
        Tier.NEAREST_SIZE, folder, entry.sizes, distance, f"{detail}, the nearest to {size_text(sizes)}"
    )


def default(
    records: Iterable[KernelRecord],
    device: DeviceInfo | None,
    label: str,
    question: Question,
    reasons: list[str],
) -> Best | None:
    """The DEFAULT answer from the first record that allows it; adds to `reasons` why others do not."""
    for record in records:
        dtype = _dtype(record, question)
        if question.sizes is not None:
            require_sizes(record, question.sizes)
        violations, unchecked = check(record, record.default, device, question.sizes, dtype)
        if violations:
            reasons.append(f"the kernel's default is not valid here: {' and '.join(violations)}")
            continue
        detail = f"the kernel's default: nothing that may be served was tuned on {label}"
        if unchecked:
            detail += f"; device or sizes not known, so not checked: {' and '.join(unchecked)}"
        return Best(
            record.default, dtype, Match(Tier.DEFAULT, None, None, 0.0, detail), (), record, device, None
        )
    return None


def _dtype(record: KernelRecord, question: Question) -> str:
    dtype = question.dtype or record.dtypes[0]
    if dtype not in record.dtypes:
        raise InputError(f"{question.kernel}: dtype {dtype!r}: expected one of {', '.join(record.dtypes)}")
    return dtype


def _distance(one: Sizes, other: Sizes) -> float:
    return hypot(*(log2(one[name]) - log2(other[name]) for name in one))


def _stale(entry: Entry, record: KernelRecord, device: DeviceInfo | None) -> tuple[str, ...]:
    """Sentences on what has changed since a result was found, as the cache and the given device say."""
    origin = entry.provenance
    newest = max((one.provenance for one in record.entries), key=lambda provenance: provenance.tuned_at)
    now = [("kernel source", origin.source_sha256, newest.source_sha256)]
    now += [("space", origin.space_sha256, newest.space_sha256)]
    if device is not None:
        now += [("driver", origin.driver, device.driver), ("runtime", origin.runtime, device.runtime)]
    return tuple(
        f"the {what} was {before[:40]} when this was tuned and is {after[:40]} now."
        for what, before, after in now
        if before != after
    )
