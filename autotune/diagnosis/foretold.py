"""Predicts the gain from removing a trouble: the time of a variant that does the same work without it.

The variant's result is wrong. It is timed on the device's arrays and never becomes a trial: neither a journal
nor a cache can hold it.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.compilers.ptx_counters import Counts

_SAME = {"integer": 0.2}  # relative difference of arithmetic that is not worth a word: addresses change
_SAME_ELSE = 0.02


@dataclass(frozen=True)
class Foretold:
    """The time without one trouble."""

    trouble: str  # the macro that stands for it
    how: str  # how the variant was made
    time_ms: float
    # where it requests other bytes or computes more or less; None if that was not counted
    other_work: str | None
    landmark: str = ""  # the landmark that is really rid of the trouble; empty without
    landmark_ms: float | None = None  # its time; None if it did not run


def other_work(whole: Counts, variant: Counts) -> str:
    """The work of a variant that differs from that of the whole, in words; empty if it is the same."""
    told = []
    if said := _change(_bytes(whole), _bytes(variant), _SAME_ELSE):
        told.append(f"requests {said} bytes of global memory")
    for pipe, uses in whole.pipe_threads.items():
        if said := _change(uses, variant.pipe_threads[pipe], _SAME.get(pipe, _SAME_ELSE)):
            told.append(f"does {said} {pipe} operations")
    return ", ".join(told)


def _bytes(counts: Counts) -> float:
    return counts.global_load_bytes + counts.global_store_bytes + counts.atomic_bytes


def _change(whole: float, variant: float, same: float) -> str:
    """How much more or less a variant has; empty for the same."""
    if abs(variant - whole) <= same * whole:
        return ""
    return f"{abs(variant - whole) / whole:.0%} {'more' if variant > whole else 'fewer'}" if whole else "some"


def foretold_text(form: Foretold, time_ms: float) -> str:
    """A foretold time as text, with its share of the configuration's."""
    work = "its work was not counted" if form.other_work is None else form.other_work or "the same work"
    said = f"{form.trouble}: {form.time_ms:.4g} ms ({form.time_ms / time_ms:.0%}), {form.how}, {work}"
    if not form.landmark:
        return said
    took = "did not run" if form.landmark_ms is None else f"takes {form.landmark_ms:.4g} ms"
    return f"{said}; {form.landmark}, which does that, {took}"
