"""The page of searches, alone or side by side: all facts about each, and how devices compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from autotune.analysis.compare import KernelComparison, comparison_json
from autotune.analysis.external_results import UNKNOWN_DTYPE
from autotune.analysis.importance import importance
from autotune.core import launch_plan as plan
from autotune.core.c_types import C_TYPES
from autotune.core.records import Parameter, Value
from autotune.core.text import problem_text
from autotune.core.trials import Status
from autotune.errors import InputError, MissingExtra
from autotune.report.gather import Gathered
from autotune.report.headline import headline, provenance, trust
from autotune.report.page import cut, page_html, short
from autotune.report.search import Search, Step
from autotune.report.source_figures import source_figures
from autotune.report.timeline import timeline_json
from autotune.strength.record import CAUGHT, EQUIVALENT, MISSED

_T = TypeVar("_T")
_TREES = 32  # half of what `show --importance` takes: a page is to be written in seconds


def report_html(gathered: Gathered, timeline: Path | None = None) -> str:
    """The whole page; raises InputError if a file is no timeline."""
    kernels = dict.fromkeys(search.kernel for search in gathered.searches)
    timed = {} if timeline is None else {"timeline": cut(timeline_json(timeline))}
    return page_html(", ".join(kernels), report_json(gathered) | timed)


def report_json(gathered: Gathered) -> dict[str, Any]:
    """Everything that the page needs."""
    return cut(
        {
            "kind": "searches",
            "searches": [search_json(search) for search in gathered.searches],
            "comparison": gathered.comparison and _comparison_json(gathered.comparison),
            "notCompared": gathered.not_compared,
        }
    )


def search_json(search: Search) -> dict[str, Any]:
    """One search: parameters, columns, and all facts about it."""
    return {
        "kernel": search.kernel,
        "device": search.device_name,
        "problem": search.problem,
        "dtype": search.dtype or "",
        "sizes": dict(search.sizes),
        "source": search.source,
        "showCommand": search.journal is not None and str(search.journal),
        "runCommand": search.run_command,
        "parameters": _parameters_json(search.parameters),
        "constants": _constants(search),
        **_trials_json(search),
        "hasOrder": not search.is_cached,
        "isImported": search.is_imported,
        "stages": [[name, short(seconds)] for name, seconds in search.stages.items()],
        "best": search.best,
        "fewestRounds": search.fewest_rounds,
        "default": search.default,
        "ties": [
            place
            for place, trial in enumerate(search.trials)
            if trial.config in search.ties and place != search.best
        ],
        "landmarks": [_step_json(step) for step in search.steps],
        "headline": headline(search),
        "provenance": list(provenance(search)),
        "trust": trust(search),
        "diagnoseCommand": search.diagnose_command,
        "diagnosis": search.diagnosis and asdict(search.diagnosis),
        "importance": _importance_json(search),
        "strength": _strength_json(search),
        "ceilings": [[rate.name, short(rate.gflops), rate.origin] for rate in search.ceilings],
        "bandwidth": search.bandwidth
        and {"gb_per_s": short(search.bandwidth.per_s * 1e-9), "measured": search.bandwidth.is_measured},
    }


def _strength_json(search: Search) -> dict[str, Any] | None:
    """The planted mistakes: a row of counts for each kind, and the missed ones."""
    strength = search.strength
    if strength is None:
        return None
    return {
        "score": strength.score,
        "left": strength.left,
        "kinds": [
            [kind, *(len(strength.of(verdict, kind)) for verdict in (CAUGHT, MISSED, EQUIVALENT))]
            for kind in strength.kinds
        ],
        "missed": [(miss.kind, miss.place, miss.was, miss.now, miss.mend) for miss in strength.of(MISSED)],
    }


def _trials_json(search: Search) -> dict[str, Any]:
    """The trials: a list for each column, in their order; a measure that is unknown or 0 everywhere has none.

    A cell of a column with few different texts is the number of its text in a list of them.
    """
    trials, finals = search.trials, search.finals
    ratios = [search.ratio_to_best(place) for place in range(len(trials))]
    statuses = [status for status in Status if any(trial.status is status for trial in trials)]
    details = list(dict.fromkeys(search.details))
    limits = sorted({occupancy.limit for occupancy in search.occupancies if occupancy})
    measures: dict[str, list[Any]] = {
        "time_ms": [short(time_ms) for time_ms in search.times_ms],
        "search_ms": [short(trial.time_ms) if finals else None for trial in search.tried],
        "low_ms": [interval and short(interval[0]) for interval in search.intervals_ms],
        "high_ms": [interval and short(interval[1]) for interval in search.intervals_ms],
        "ratio_low": [ratio and short(ratio[0]) for ratio in ratios],
        "ratio_high": [ratio and short(ratio[1]) for ratio in ratios],
        "rounds": [len(finals[one.key].samples_ms) if one.key in finals else None for one in trials],
        "compile_ms": [short(trial.compile_ms) for trial in trials],
        "cost_s": [short(trial.cost_s) for trial in trials],
        "registers": [trial.registers for trial in trials],
        "spill_bytes": [trial.spill_bytes for trial in trials],
        "shared_bytes": [trial.shared_bytes for trial in trials],
        "energy_j": [short(trial.measurement.energy_j) if trial.measurement else None for trial in trials],
        "occupancy": [short(occupancy.share) if occupancy else None for occupancy in search.occupancies],
        **{name: [short(amount) for amount in amounts] for name, amounts in search.work.items()},
    }
    columns = {name: column for name, column in measures.items() if any(column)}
    if limits:
        columns["limit"] = _numbers([use and use.limit for use in search.occupancies], limits)
    columns |= {
        "configs": [_value_numbers(search, parameter) for parameter in search.parameters],
        "status": _numbers([trial.status for trial in trials], statuses),
        "detail": _numbers(search.details, details),
        "final": [int(trial.key in finals) for trial in trials],
    }
    return {
        "statuses": [status.value for status in statuses],
        "details": details,
        "limits": limits,
        "columns": columns,
    }


def _numbers(cells: Sequence[_T | None], known: Sequence[_T]) -> list[int | None]:
    """The number of each cell in a list; None where a cell is empty."""
    places = {item: place for place, item in enumerate(known)}
    return [None if cell is None else places[cell] for cell in cells]


def _value_numbers(search: Search, parameter: Parameter) -> list[int]:
    """Each trial's value as its number in the parameter's list; -1 where the trial has none."""
    places = {(type(value), value): place for place, value in enumerate(parameter.values)}
    chosen = (trial.config.get(parameter.name) for trial in search.trials)
    return [-1 if value is None else places[type(value), value] for value in chosen]


def _parameters_json(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    """Parameters with their values, and what each value's macro is defined as."""
    return [
        {
            "name": parameter.name,
            "values": parameter.values,
            "macros": [_macro_value(parameter.name, value) for value in parameter.values],
        }
        for parameter in parameters
    ]


def _constants(search: Search) -> list[str]:
    """The macros that every configuration shares, as compiler options."""
    dtype = search.dtype
    config = search.trials[0].config  # any: what it adds is left out
    if dtype not in C_TYPES or set(config) != {parameter.name for parameter in search.parameters}:
        return []
    defines = plan.macros(search.parameters, config, dtype)
    return [f"-D{name}={value}" for name, value in defines.items() if name not in config]


def _macro_value(parameter: str, value: Value) -> str:
    if isinstance(value, str):
        return plan.macro_name(parameter, value)
    return str(int(value) if isinstance(value, bool) else value)


def _step_json(step: Step) -> dict[str, Any]:
    note = step.landmark.note
    return {
        "name": step.landmark.name,
        "note": note,
        "figures": source_figures(note),
        "expected": step.landmark.expect.value,
        "trial": step.trial,
    }


def _importance_json(search: Search) -> dict[str, Any]:
    """Shares of the variance, or why they are not known."""
    try:
        shares = importance(search.tried, trees=_TREES)
    except (InputError, MissingExtra) as error:
        return {"why": str(error)}
    return {
        "trials": shares.trials,
        "fit": short(shares.fit),
        "single": [[name, short(share)] for name, share in shares.single.items()],
        "pairs": [[left, right, short(share)] for (left, right), share in shares.pairs.items()],
    }


def _comparison_json(comparison: KernelComparison) -> dict[str, Any]:
    entry = comparison.tuned[0].entry
    dtype = "" if entry.dtype == UNKNOWN_DTYPE else entry.dtype
    return comparison_json(comparison) | {"problem": problem_text(entry.sizes, dtype)}
