"""The headline of a report, in words: a title, a figure, and its basis."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.core.checks import OTHER_SIZES, is_compared, reasons, unchecked_text
from autotune.core.text import per_second, ratio_text
from autotune.core.trials import Objective, Status
from autotune.report.shortened import cut
from autotune.report.view import SearchView
from autotune.tuning.ties import indistinguishable


def headline(view: SearchView) -> list[dict[str, str]]:
    """The items of a search, each with a title, a value and a note."""
    items = [*_best_items(view), *_rate_items(view), *_speedups(view), *_ties(view), _verified(view)]
    failed = sum(trial.status is not Status.OK for trial in view.trials)
    valid = view.search.entry.provenance.valid_configurations if view.search.entry else 0
    of_all = f"of {valid:,} valid configurations; " if valid >= len(view.trials) else ""
    kept = "only the fastest; the cache keeps no failures"
    note = of_all + (f"{failed:,} failed" if not view.search.is_cached else kept)
    return [*items, _item("Trials", f"{len(view.trials):,}", note)]


def _best_items(view: SearchView) -> Iterable[dict[str, str]]:
    trial = view.best_trial
    if trial is None:
        yield _item("Best time", "none", "every trial failed")
        return
    low, high = trial.measurement.interval_ms if trial.measurement else (0.0, 0.0)
    if view.search.is_cached and view.served:
        low, high = view.served.interval_ms
    if not low < high:
        note = "one recorded figure, without an interval"
    elif view.search.is_cached or view.search.finals:
        final = view.search.finals.get(trial.key)
        noise = f"; noise {final.noise:.1%}" if final and final.noise is not None else ""
        note = f"{low:.4g} to {high:.4g} ms, last round{noise}"
    else:
        note = f"{low:.4g} to {high:.4g} ms, timed once in the search; there was no last round"
    yield _item("Best time", f"{trial.time_ms:.4g} ms", note)


def _rate_items(view: SearchView) -> Iterable[dict[str, str]]:
    time_ms = view.best_ms
    if not time_ms:
        return
    for name, title, unit in (("bytes", "Memory rate", "B/s"), ("flops", "Arithmetic rate", "FLOP/s")):
        if amount := view.best_work(name):
            yield _item(
                title,
                per_second(amount / time_ms * 1e3, unit),
                _share(view, name, amount / time_ms),
            )


def _share(view: SearchView, name: str, per_ms: float) -> str:
    if name == "flops" and view.ceilings:
        peak = view.ceilings[0]
        return f"{100 * per_ms * 1e-6 / peak.gflops:.3g}% of the peak of {peak.name}"
    if name == "flops" or view.bandwidth is None:
        return "as the space file counts the work"
    share = per_ms * 1e-6 / view.bandwidth.gb_per_s
    said = "measured memory bandwidth" if view.bandwidth.is_measured else "memory bandwidth"
    return f"{share:.0%} of the {said}" + (", so a cache serves part of it" if share > 1 else "")


def _speedups(view: SearchView) -> Iterable[dict[str, str]]:
    time_ms = view.best_ms
    if not time_ms:
        return
    place = view.default
    default_ms = view.times_ms[place] if place is not None else None
    default_ms = default_ms or (view.served.default_time_ms if view.served else None)
    if default_ms:
        yield _item("Over the default", ratio_text(default_ms / time_ms), f"default: {default_ms:.4g} ms")
    first = next((step for step in view.steps if step.time_ms), None)
    is_default = first is not None and view.search.spec and first.landmark.config == view.search.spec.default
    if first is not None and first.time_ms and not is_default:
        note = f"{first.landmark.name}: {first.time_ms:.4g} ms"
        yield _item("Over the first step", ratio_text(first.time_ms / time_ms), note)
    cpu = view.search.cpu
    if cpu and not (view.search.device and view.search.device.kind == "cpu"):
        cpu_ms = cpu.entry.time_ms
        yield _item("Over the tuned CPU", ratio_text(cpu_ms / time_ms), f"{cpu.device.name}: {cpu_ms:.4g} ms")


def _ties(view: SearchView) -> Iterable[dict[str, str]]:
    best = view.best_trial
    if best is None:
        return
    if view.served:
        ties = len(view.served.ties)
    elif final := view.search.finals.get(best.key):
        others = view.search.finals.values()
        ties = sum(indistinguishable(final, other, Objective.TIME) for other in others) - 1
    else:
        return
    note = "cannot be told from the best" if ties else "no other finalist is as fast"
    yield _item("Ties", str(ties), note)


def _verified(view: SearchView) -> dict[str, str]:
    search = view.search
    if search.is_imported:
        return _item("Verified", "no", "imported results are not compared with a reference")
    wrong = sum(trial.status is Status.WRONG_RESULT for trial in view.trials)
    note = f"{wrong:,} gave a wrong result" if wrong else "outputs compared with the reference"
    best, served = view.best_trial, view.served
    record = search.checks.get(best.key, {}) if best else {}
    found = served.provenance.checked if served and not record else reasons(record)
    if OTHER_SIZES not in found:  # an older result, or a search without an end
        said = served.provenance.checks if served else ""
        return _item("Verified", "in part", f"{note}; checks: {said or 'none recorded'}")
    missed = unchecked_text(found)
    value = "no" if not is_compared(found) else "in part" if missed else "yes"
    return _item("Verified", value, missed or note)


def _item(title: str, value: str, note: str) -> dict[str, str]:
    return {"title": title, "value": cut(value), "note": cut(note)}
