"""Answers for a device that has no results: results of other devices, else the kernel's default.

`portability` chooses the configuration and estimates its slowdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from autotune.core.frozen import replace
from autotune.core.records import Config, DeviceInfo, Entry, KernelRecord, Match, Sizes, Tier, distance
from autotune.core.text import size_text
from autotune.hardware.names import Traits, slug, traits_of, traits_of_name
from autotune.serving.best import Best, NoMatch, Refusal
from autotune.serving.device_records import DeviceRecord, latest
from autotune.serving.portability import (
    KnownDevice,
    Slowdown,
    across_devices,
    best_place,
    columns_for,
    nearest,
    of_default,
    ranked,
    scopes,
)
from autotune.serving.query import Query, dtype_of, only_sizes, stale_reasons
from autotune.serving.validity import KernelOnDevice, Validity, require_sizes

_RELATIONS = {
    Tier.SAME_ARCHITECTURE: "a device of the same architecture",
    Tier.SAME_VENDOR: "a device of the same vendor",
    Tier.PORTABLE: "the smallest worst-case slowdown over all known devices",
}


class TargetDevice(NamedTuple):
    """The device that will run the kernel: its name in messages, and its known properties."""

    label: str
    device: DeviceInfo | None
    traits: Traits


def target_device(query: Query, device: DeviceInfo | None) -> TargetDevice:
    """The device of a query. If only its name is known, the name implies vendor and architecture."""
    if device is not None:
        return TargetDevice(device.slug, device, traits_of(device))
    if isinstance(query.device, str):
        return TargetDevice(slug(query.device), None, traits_of_name(query.device))
    return TargetDevice("this machine, where no GPU was found", None, Traits())


def match_other_devices(
    device_records: Sequence[DeviceRecord], target: TargetDevice, query: Query
) -> Best | NoMatch:
    """The SAME_ARCHITECTURE, SAME_VENDOR or PORTABLE answer, else why there is none.

    The newest record has the kernel's present parameters, constraints and launches.
    """
    if not Tier.SAME_ARCHITECTURE.reaches(query.loosest):
        return NoMatch()
    record = latest(device_record.record for device_record in device_records)
    kernel = _kernel_on_target(record, target, query)
    known, sizes = _devices_with_results(device_records, kernel.dtype, query)
    reasons: list[Refusal] = []
    for tier, scope in scopes(target.traits, known):
        if not tier.reaches(query.loosest):
            break
        first_refusal: Validity | None = None
        times = columns_for(scope, sizes)
        for config in ranked(times):
            source = scope[best_place(times, config)]
            entry = nearest(source.entries, sizes)
            verdict = kernel.check(config, query.sizes, entry.registers_of(config))
            if not verdict.violations:
                match = _foreign_match(tier, source.folder, entry, config, sizes, target)
                match = replace(match, detail=match.detail + _unchecked(verdict))
                evidence = partial(across_devices, known, sizes)
                stale = stale_reasons(entry, record, None)
                return Best(config, match, stale, kernel, entry, evidence)
            first_refusal = first_refusal or verdict
        if first_refusal:
            violations = " and ".join(first_refusal.violations)
            reasons.append(Refusal(f"every result of {tier.value}", f"is not valid here: {violations}"))
    return NoMatch(tuple(reasons))


def match_default(
    device_records: Sequence[DeviceRecord], own: DeviceRecord | None, target: TargetDevice, query: Query
) -> Best | NoMatch:
    """The DEFAULT answer from the device's own record, or else the newest; else why it is invalid."""
    if not Tier.DEFAULT.reaches(query.loosest):
        return NoMatch()
    record = own.record if own else latest(device_record.record for device_record in device_records)
    kernel = _kernel_on_target(record, target, query)
    verdict = kernel.check(record.default, query.sizes)
    if verdict.violations:
        why = f"is not valid here: {' and '.join(verdict.violations)}"
        return NoMatch((Refusal("the kernel's default", why),))
    detail = f"the kernel's default, as no result can be served on {target.label}"
    match = Match(Tier.DEFAULT, None, None, 0.0, detail + _unchecked(verdict))
    evidence = partial(_default_evidence, device_records, kernel.dtype, query, target.traits.kind)
    return Best(record.default, match, (), kernel, None, evidence)


def _kernel_on_target(record: KernelRecord, target: TargetDevice, query: Query) -> KernelOnDevice:
    """The kernel on the device of a query; raises InputError for wrong sizes or an undeclared type."""
    kernel = KernelOnDevice(record, target.device, dtype_of(record, query))
    if query.sizes is not None:
        require_sizes(record, query.sizes)
    return kernel


def _devices_with_results(
    device_records: Sequence[DeviceRecord], dtype: str, query: Query
) -> tuple[list[KnownDevice], Sizes]:
    """The devices with results for this element type and these names of sizes, and the sizes to match."""
    rows = [
        (device_record, [entry for entry in device_record.record.entries if entry.dtype == dtype])
        for device_record in device_records
    ]
    sizes = query.sizes
    for device_record, entries in rows:
        if sizes is None and entries:
            sizes = only_sizes(device_record.folder, entries, query)
    sizes = sizes or {}
    known = [
        KnownDevice(
            device_record.folder,
            traits_of(device_record.device),
            tuple(entry for entry in entries if entry.sizes.keys() == sizes.keys()),
        )
        for device_record, entries in rows
    ]
    return [device for device in known if device.entries], sizes


def _default_evidence(
    device_records: Sequence[DeviceRecord], dtype: str, query: Query, kind: str | None
) -> list[Slowdown]:
    """The slowdowns of the default on devices of one kind: a CPU's say nothing about a GPU's."""
    known, sizes = _devices_with_results(device_records, dtype, query)
    return of_default([device for device in known if kind in (None, device.traits.kind)], sizes)


def _foreign_match(
    tier: Tier, folder: str, entry: Entry, config: Config, sizes: Sizes, target: TargetDevice
) -> Match:
    relation = "this device" if folder == target.label else _RELATIONS[tier]
    detail = f"{entry.provenance.origin} on {folder} for {size_text(entry.sizes)}, {relation}"
    if config != entry.config:
        ratio = entry.relative_times[config]
        is_equal = ratio < 1.005  # a larger ratio is not printed as 1
        detail += ", where it "
        detail += "is as fast as the best" if is_equal else f"takes {ratio:.3g} times as long as the best"
    detail += entry.caveat
    away = distance(entry.sizes, sizes)
    return Match(tier, folder, entry.sizes, away, detail)


def _unchecked(verdict: Validity) -> str:
    if not verdict.unchecked:
        return ""
    count = len(verdict.unchecked)
    listed = " and ".join(verdict.unchecked) if count < 3 else f"{count} constraints"
    return f"; not checked, as device or sizes are unknown: {listed}"
