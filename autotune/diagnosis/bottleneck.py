"""Finds the bottleneck of a configuration: the resource, or another cause, that explains its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from autotune.compilers.ptx_counters import SECTOR_BYTES, Counts
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.resource_use import COMPUTE, WASTEFUL, Use, use_text
from autotune.hardware.architectures import WARP

BOUND = 0.6  # share of a ceiling from which a resource explains the time
BOUND_ATOMICS = 0.25  # it depends on which counters collide: few kernels come near
LAUNCH_BOUND = 0.5  # share of the time that the same launches of an empty kernel take
BALANCED = 0.95  # share of the most used resource from which another one bounds as well
MAX_MEMORY_SHARE = 1.15  # beyond it a cache that is nearer does the work
CONFLICTS = 1.1  # times the least passes of shared memory from which bank conflicts are worth a word
DIVERGENT_LANES = 16  # of 32: with fewer active ones, divergence costs more than half
VARIANT_BOUND = 0.8  # share of the time that a variant without arithmetic, or without memory, takes
MAX_VARIANT = 1.2  # beyond it a variant is no part of the kernel, but another one

_MEMORIES = (Bound.DRAM, Bound.L2)
_VARIANTS = {"MEMORY_ONLY": Bound.MEMORY, "COMPUTE_ONLY": Bound.COMPUTE}


@dataclass(frozen=True)
class Times:
    """Times of one run and of what else a call takes; None and empty where not measured."""

    run_ms: float
    launch_ms: float | None = None
    transfer_ms: float | None = None
    variants_ms: Mapping[str, float] = field(default_factory=dict)


class Verdict(NamedTuple):
    """The bottleneck of a run, and the evidence for it in one sentence."""

    bound: Bound
    reason: str


def verdict(times: Times, used: Sequence[Use], counts: Counts | None) -> Verdict:
    """Judge a run by the uses that it makes of resources, the highest share first.

    Copies and launches that take longer count before these; two variants' times where there are no counts.
    """
    if times.transfer_ms is not None and times.transfer_ms > times.run_ms:
        share = times.transfer_ms / (times.transfer_ms + times.run_ms)
        return Verdict(
            Bound.TRANSFER,
            f"copies to and from the host take {times.transfer_ms:.4g} ms, {share:.0%} of a call's time; "
            f"the kernel takes {times.run_ms:.4g} ms",
        )
    if times.launch_ms is not None and times.launch_ms >= LAUNCH_BOUND * times.run_ms:
        share = times.launch_ms / times.run_ms
        return Verdict(
            Bound.LAUNCH,
            f"the same launches of an empty kernel take {times.launch_ms:.4g} of {times.run_ms:.4g} ms "
            f"({share:.0%})",
        )
    candidates = [use for use in used if use.bound not in _MEMORIES or use.share <= MAX_MEMORY_SHARE]
    bounding = [
        use for use in candidates if use.share >= (BOUND_ATOMICS if use.bound is Bound.ATOMICS else BOUND)
    ]
    if bounding:
        return _by_use(bounding, counts)
    shares = _shares(times.run_ms, times.variants_ms)
    if counts is None and _is_evidence(shares):
        return _by_variants(shares)
    most = "its use of resources is not known"
    if candidates:
        most = f"the most used resource is at {candidates[0].share:.0%} ({candidates[0].bound})"
    if counts is None:
        told = "; ".join((f"{most}, and its instructions could not be counted here", *_undecided(shares)))
        return Verdict(Bound.UNKNOWN, told)
    return Verdict(Bound.LATENCY, f"{most}, so it waits for most of its time")


def _by_use(bounding: Sequence[Use], counts: Counts | None) -> Verdict:
    main = bounding[0]
    if main.bound in (*COMPUTE, Bound.SHARED) and counts and counts.active_lanes < DIVERGENT_LANES:
        return Verdict(
            Bound.DIVERGENCE,
            f"{use_text(main)}, and only {counts.active_lanes:.1f} of a warp's {WARP} threads are active on "
            "average",
        )
    others = [use for use in bounding[1:] if use.share >= BALANCED * main.share]
    if others:
        return Verdict(Bound.BALANCED, "; ".join(use_text(use) for use in (main, *others)))
    return Verdict(main.bound, use_text(main) + _waste_text(main.bound, counts))


def _waste_text(bound: Bound, counts: Counts | None) -> str:
    """A run's unnecessary use of a memory, as text; empty if there is none."""
    if counts and bound is Bound.SHARED and counts.conflict_degree > CONFLICTS:
        return f"; bank conflicts multiply its passes by {counts.conflict_degree:.1f}"
    if counts and bound is Bound.DRAM and counts.sector_use < WASTEFUL:
        asked = counts.sector_use * SECTOR_BYTES
        return f"; threads request {asked:.0f} of each {SECTOR_BYTES} bytes moved"
    return ""


def overlap(run_ms: float, variants_ms: Mapping[str, float]) -> float | None:
    """The part of the shorter variant that overlaps the other; None without two that are evidence.

    1: the whole takes as long as the longer of memory and arithmetic. 0: it takes as long as both.
    """
    shares = _shares(run_ms, variants_ms)
    if not _is_evidence(shares):
        return None
    return min(1.0, max(0.0, (sum(shares.values()) - 1) / min(shares.values())))


def _shares(run_ms: float, variants_ms: Mapping[str, float]) -> dict[Bound, float]:
    """The shares of the time that the variants without arithmetic and without memory take."""
    return {bound: variants_ms[name] / run_ms for name, bound in _VARIANTS.items() if name in variants_ms}


def _is_evidence(shares: Mapping[Bound, float]) -> bool:
    """True if variants are evidence: one alone does not show the time of the other."""
    return len(shares) == len(_VARIANTS) and all(0 < share <= MAX_VARIANT for share in shares.values())


def _by_variants(shares: Mapping[Bound, float]) -> Verdict:
    reason = ", ".join(_share_text(bound, share) for bound, share in shares.items())
    bounds = [bound for bound, share in shares.items() if share >= VARIANT_BOUND]
    if not bounds:
        return Verdict(Bound.LATENCY, reason)
    return Verdict(bounds[0] if len(bounds) == 1 else Bound.BALANCED, reason)


def _undecided(shares: Mapping[Bound, float]) -> Iterator[str]:
    """The reason why each variant decides nothing."""
    for bound, share in shares.items():
        why = ": it is another kernel then" if share > MAX_VARIANT else ", which alone decides nothing"
        yield _share_text(bound, share) + why


def _share_text(bound: Bound, share: float) -> str:
    return f"without {'arithmetic' if bound is Bound.MEMORY else 'memory'} it takes {share:.0%} of its time"
