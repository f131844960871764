"""The head of a report in words: figures with a title and their basis, and where they are from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autotune.core.checks import OTHER_SIZES, is_compared, reasons, unchecked_text
from autotune.core.text import per_second, ratio_text
from autotune.core.trials import Objective, Status
from autotune.report.search import Search
from autotune.report.shortened import cut
from autotune.tuning.ties import indistinguishable


def headline(search: Search) -> list[dict[str, str]]:
    """The items of a search, each with a title, a value and a note."""
    parts = (_best_items, _rate_items, _speedups, _ties)
    items = [item for part in parts for item in part(search)]
    failed = sum(trial.status is not Status.OK for trial in search.trials)
    valid = search.entry.provenance.valid_configurations if search.entry else 0
    of_all = f"of {valid:,} valid configurations; " if valid >= len(search.trials) else ""
    kept = "only the fastest; the cache keeps no failures"
    note = of_all + (f"{failed:,} failed" if not search.is_cached else kept)
    return [*items, _verified(search), _item("Trials", f"{len(search.trials):,}", note)]


def provenance(search: Search) -> Iterator[tuple[str, str]]:
    """Date, program, search and software, as far as they are known, each with its name."""
    entry = search.entry.provenance if search.entry else None
    if entry is not None:
        yield "tuned", entry.tuned_at
        yield "by", f"autotune {entry.autotune}"
        yield "search", f"{entry.engine}, seed {entry.seed}, {entry.trials:,} trials"
    cached = {"driver": entry.driver, "runtime": entry.runtime, "compiler": entry.compiler} if entry else {}
    yield from ((name, text) for name, text in (cached | dict(search.runtime)).items() if text)


def _best_items(search: Search) -> Iterable[dict[str, str]]:
    trial = search.best_trial
    if trial is None:
        yield _item("Best time", "none", "every trial failed")
        return
    low, high = trial.measurement.interval_ms if trial.measurement else (0.0, 0.0)
    if search.is_cached and search.served:
        low, high = search.served.interval_ms
    if not low < high:
        note = "one recorded figure, without an interval"
    elif search.is_cached or search.finals:
        final = search.finals.get(trial.key)
        noise = f"; noise {final.noise:.1%}" if final and final.noise is not None else ""
        note = f"{low:.4g} to {high:.4g} ms, last round{noise}"
    else:
        note = f"{low:.4g} to {high:.4g} ms, timed once in the search; there was no last round"
    yield _item("Best time", f"{trial.time_ms:.4g} ms", note)


def _rate_items(search: Search) -> Iterable[dict[str, str]]:
    time_ms = search.best_ms
    if not time_ms:
        return
    for name, title, unit in (("bytes", "Memory rate", "B/s"), ("flops", "Arithmetic rate", "FLOP/s")):
        if amount := search.best_work(name):
            yield _item(
                title,
                per_second(amount / time_ms * 1e3, unit),
                _share(search, name, amount / time_ms),
            )


def _share(search: Search, name: str, per_ms: float) -> str:
    if name == "flops" and search.ceilings:
        peak = search.ceilings[0]
        return f"{100 * per_ms * 1e-6 / peak.gflops:.3g}% of the peak of {peak.name}"
    if name == "flops" or search.bandwidth is None:
        return "as the space file counts the work"
    share = per_ms * 1e3 / search.bandwidth.per_s
    said = "measured memory bandwidth" if search.bandwidth.is_measured else "memory bandwidth"
    return f"{share:.0%} of the {said}" + (", so a cache serves part of it" if share > 1 else "")


def _speedups(search: Search) -> Iterable[dict[str, str]]:
    time_ms = search.best_ms
    if not time_ms:
        return
    place = search.default
    default_ms = search.times_ms[place] if place is not None else None
    default_ms = default_ms or (search.served.default_time_ms if search.served else None)
    if default_ms:
        yield _item("Over the default", ratio_text(default_ms / time_ms), f"default: {default_ms:.4g} ms")
    first = next((step for step in search.steps if step.time_ms), None)
    is_default = first is not None and search.spec and first.landmark.config == search.spec.default
    if first is not None and first.time_ms and not is_default:
        note = f"{first.landmark.name}: {first.time_ms:.4g} ms"
        yield _item("Over the first step", ratio_text(first.time_ms / time_ms), note)
    cpu = search.cpu
    if cpu and not (search.device and search.device.kind == "cpu"):
        cpu_ms = cpu.entry.time_ms
        yield _item("Over the tuned CPU", ratio_text(cpu_ms / time_ms), f"{cpu.device.name}: {cpu_ms:.4g} ms")


def _ties(search: Search) -> Iterable[dict[str, str]]:
    best = search.best_trial
    if best is None:
        return
    if search.served:
        ties = len(search.served.ties)
    elif final := search.finals.get(best.key):
        others = search.finals.values()
        ties = sum(indistinguishable(final, other, Objective.TIME) for other in others) - 1
    else:
        return
    note = "cannot be told from the best" if ties else "no other finalist is as fast"
    yield _item("Ties", str(ties), note)


def _verified(search: Search) -> dict[str, str]:
    if search.is_imported:
        return _item("Verified", "no", "imported results are not compared with a reference")
    wrong = sum(trial.status is Status.WRONG_RESULT for trial in search.trials)
    note = f"{wrong:,} gave a wrong result" if wrong else "outputs compared with the reference"
    best, served = search.best_trial, search.served
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
