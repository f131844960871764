"""The head of a report in words: figures with a title, their basis and their origin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from autotune.core.outcomes import OTHER_SIZES, Outcomes, checks_text, is_verified, of_reasons, unchecked_text
from autotune.core.records import NOISY
from autotune.core.text import count_text, per_second, ratio_text
from autotune.core.trials import Status
from autotune.report.search import Search
from autotune.tuning.timing_warnings import SHIFT


def headline(search: Search) -> list[dict[str, str]]:
    """The items of a search, each with a title, a value and a note."""
    failed = sum(trial.status is not Status.OK for trial in search.trials)
    valid = search.entry.provenance.valid_configurations if search.entry else 0
    of_all = f"of {valid:,} valid configurations" if valid >= len(search.trials) else ""
    kept = "only the fastest; the cache keeps no failures"
    notes = (search.explored or of_all, kept if search.is_cached else f"{failed:,} failed")
    return [
        *_best_items(search),
        _verified_item(search),
        *_speedup_items(search),
        *_tie_items(search),
        _item("Trials", f"{len(search.trials):,}", "; ".join(filter(None, notes))),
        *_rate_items(search),
    ]


def trust(search: Search) -> tuple[str, list[str]]:
    """How far a result can be trusted, and the reasons for or against it."""
    if search.best is None:
        return "There is no result", ["Every trial failed."]
    verified = _verified_item(search)
    if not search.is_settled and not search.is_imported:
        missing = "the last round, which times the fastest again in turns and checks them further"
        return "This is not a final result", [f"Each trial was timed once. What is missing is {missing}."]
    missed = unchecked_text(_checks(search)) or verified["note"]
    against = [] if verified["value"] == "yes" else [f"verified: {verified['value']}, {missed}"]
    against += _doubts_of_time(search)
    if against:
        return "Trust this result with care", [text[:1].upper() + text[1:] for text in against]
    basis = ["Its output was compared with the reference, and passed every check."]
    if search.is_cached:
        return "This result can be trusted", basis
    noise = "" if search.noise is None else f" Timings of the same binary differ by {search.noise:.2%}."
    ran = f"{count_text(len(search.finals), 'finalist')} ran in turns in the last round."
    return "This result can be trusted", [*basis, f"Its time is steady: {ran}{noise}"]


def _doubts_of_time(search: Search) -> list[str]:
    """The reasons to doubt the best time; the search has said them itself, or an older one only its noise."""
    (low, high), time_ms = search.interval_ms or (0.0, 0.0), search.best_ms or math.inf
    doubts = list(search.doubts)
    if not doubts and (search.noise or 0.0) > NOISY:
        doubts.append(f"the machine was unsteady: {search.noise:.0%} noise")
    least, most = search.drift
    if least < 1 / SHIFT or most > SHIFT:
        factors = " to ".join(dict.fromkeys((f"{least:.2g}", f"{most:.2g}")))
        doubts.insert(0, f"the finalists took {factors} times as long in the last round as in the search")
    if high - low > NOISY * time_ms:
        doubts.insert(0, f"its time is not certain: {low:.4g} to {high:.4g} ms")
    return doubts


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
    once = trial.measurement.interval_ms if trial.measurement and not search.is_settled else None
    low, high = search.interval_ms or once or (0.0, 0.0)
    if not low < high:
        note = "one recorded figure, without an interval"
    elif search.is_settled:
        noise = "" if search.noise is None else f"; noise {search.noise:.1%}"
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
                _peak_share_text(search, name, amount / time_ms),
            )


def _peak_share_text(search: Search, name: str, per_ms: float) -> str:
    if name == "flops" and search.ceilings:
        peak = search.ceilings[0]
        return f"{100 * per_ms * 1e-6 / peak.gflops:.3g}% of the peak of {peak.name}"
    if name == "flops" or search.bandwidth is None:
        return "by the work that the space file states"
    share = per_ms * 1e3 / search.bandwidth.per_s
    said = "measured memory bandwidth" if search.bandwidth.is_measured else "memory bandwidth"
    return f"{share:.0%} of the {said}" + (", so a cache serves part of it" if share > 1 else "")


def _speedup_items(search: Search) -> Iterable[dict[str, str]]:
    time_ms = search.best_ms
    if not time_ms:
        return
    place = search.default
    default_ms = search.times_ms[place] if place is not None else None
    default_ms = default_ms or (search.served.default_time_ms if search.served else None)
    if default_ms and place is not None and place == search.best:
        yield _item("Over the default", "none", "the default is the best of those tried")
    elif default_ms:
        yield _speedup_item(search, "Over the default", place, "default", default_ms)
    first_step = next((step for step in search.steps if step.time_ms), None)
    is_default = first_step is not None and search.spec and first_step.landmark.config == search.spec.default
    if first_step is not None and first_step.time_ms and not is_default:
        name, step_ms = first_step.landmark.name, first_step.time_ms
        yield _speedup_item(search, "Over the first step", first_step.trial, name, step_ms)
    cpu = search.cpu
    if cpu and not (search.device and search.device.kind == "cpu"):
        cpu_ms = cpu.entry.time_ms
        yield _item("Over the tuned CPU", ratio_text(cpu_ms / time_ms), f"{cpu.device.name}: {cpu_ms:.4g} ms")


def _speedup_item(search: Search, title: str, place: int | None, name: str, its_ms: float) -> dict[str, str]:
    """The speed-up over a trial: an interval if both were timed in turns, because it may be wide."""
    value, note = ratio_text(its_ms / (search.best_ms or its_ms)), f"{name}: {its_ms:.4g} ms"
    if place is None:
        return _item(title, value, note)
    ends, ratio = search.intervals_ms[place], search.ratio_to_best(place)
    note += f" ({ends[0]:.4g} to {ends[1]:.4g})" if ends else ""
    is_tied = search.trials[place].config in search.ties
    if ratio is not None:
        low, high = map(ratio_text, ratio)
        reach = high if low == high else f"{low.removesuffix(' x')} to {high}"
        rounds = len(search.finals[search.trials[place].key].samples_ms)
        basis = (
            "95%, by the ratios in each round"
            if rounds >= search.fewest_rounds
            else f"all ratios of {rounds} rounds"
        )
        note = f"{reach} ({basis}); {note}" if is_tied else f"{basis}; medians: {value}; {note}"
        value = reach
    return _item(title, "not distinguishable" if is_tied else value, note)


def _tie_items(search: Search) -> Iterable[dict[str, str]]:
    ties = search.ties
    if search.best is None or not search.is_settled:
        return
    others = "no other finalist is as fast"
    if search.default is not None and len(search.finals) == 2 and search.best != search.default:
        others = "the last round timed the best and the default only"
    note = "cannot be told from the best" if ties else others
    yield _item("Ties", str(len(ties)), note)


def _verified_item(search: Search) -> dict[str, str]:
    if search.is_imported:
        return _item("Verified", "no", "imported results are not compared with a reference")
    checks = _checks(search)
    if OTHER_SIZES not in checks:  # an older result, or a search without an end
        wrong = sum(trial.status is Status.WRONG_RESULT for trial in search.trials)
        note = f"{wrong:,} gave a wrong result" if wrong else "outputs compared with the reference"
        said = search.served.provenance.checks if search.served else ""
        return _item("Verified", "in part", f"{note}; checks: {said or 'none recorded'}")
    if not is_verified(checks):
        return _item("Verified", "no", checks_text(checks))
    return _item("Verified", "in part" if unchecked_text(checks) else "yes", f"passed: {checks_text(checks)}")


def _checks(search: Search) -> Outcomes:
    """The outcomes of the best's checks."""
    best, served = search.best_trial, search.served
    outcomes = search.checks.get(best.key, {}) if best else {}
    return of_reasons(served.provenance.checked) if served and not outcomes else outcomes


def _item(title: str, value: str, note: str) -> dict[str, str]:
    return {"title": title, "value": value, "note": note}
