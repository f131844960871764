"""The page of searches, alone or side by side: everything that is said of each, and how devices compare."""

from __future__ import annotations

from typing import Any

from autotune.analysis.compare import KernelComparison, Portable
from autotune.analysis.external_results import UNKNOWN_DTYPE
from autotune.analysis.importance import importance
from autotune.core.records import Config
from autotune.core.text import problem_text
from autotune.errors import InputError
from autotune.report.columns import Columns, constants, parameters_json
from autotune.report.gather import Gathered, Search
from autotune.report.headline import headline
from autotune.report.page import page_html
from autotune.report.shortened import MAX_DETAIL, cut, short
from autotune.report.source_figures import source_figures
from autotune.report.view import SearchView, Step

_TREES = 32  # half of what `show --importance` takes: a page is to be written in seconds


def report_html(gathered: Gathered) -> str:
    """The whole page."""
    kernels = dict.fromkeys(search.kernel for search in gathered.searches)
    return page_html(cut(", ".join(kernels)), report_json(gathered))


def report_json(gathered: Gathered) -> dict[str, Any]:
    """Everything that the page needs."""
    return {
        "kind": "searches",
        "searches": [search_json(search) for search in gathered.searches],
        "comparison": gathered.comparison and _comparison_json(gathered.comparison),
        "notCompared": cut(gathered.not_compared, MAX_DETAIL),
    }


def search_json(search: Search) -> dict[str, Any]:
    """One search: parameters, columns, and everything that is said of it."""
    view = SearchView(search)
    columns = Columns(view)
    return {
        "kernel": cut(search.kernel),
        "device": cut(search.device_name),
        "problem": cut(view.problem),
        "dtype": cut(search.dtype or ""),
        "sizes": {cut(name): size for name, size in search.sizes.items()},
        "source": cut(search.source),
        "showCommand": search.journal is not None and cut(str(search.journal), MAX_DETAIL),
        "runCommand": view.run_command,
        "parameters": parameters_json(view.parameters),
        "constants": constants(view),
        "statuses": [status.value for status in columns.statuses],
        "details": [cut(detail, MAX_DETAIL) for detail in columns.details],
        "limits": columns.limits,
        "hasOrder": not search.is_cached,
        "isImported": search.is_imported,
        "columns": columns.lists(),
        "best": view.best,
        "default": view.default,
        "landmarks": [_step_json(step) for step in view.steps],
        "headline": headline(view),
        "importance": _importance_json(search),
        "ceilings": [[rate.name, short(rate.gflops), rate.origin] for rate in view.ceilings],
        "bandwidth": view.bandwidth
        and {
            "gb_per_s": short(view.bandwidth.gb_per_s),
            "measured": view.bandwidth.is_measured,
        },
    }


def _step_json(step: Step) -> dict[str, Any]:
    """A step of the ladder, with the figures of its source."""
    note = step.landmark.note
    return {
        "name": cut(step.landmark.name),
        "note": cut(note, MAX_DETAIL),
        "figures": source_figures(note[:MAX_DETAIL]),
        "trial": step.trial,
    }


def _importance_json(search: Search) -> dict[str, Any]:
    """Shares of the variance, or why they are not known."""
    try:
        found = importance(search.trials, trees=_TREES)
    except InputError as error:
        return {"why": str(error)}
    return {
        "trials": found.trials,
        "fit": short(found.fit),
        "single": [[cut(name), short(share)] for name, share in found.single.items()],
        "pairs": [[cut(one), cut(other), short(share)] for (one, other), share in found.pairs.items()],
    }


def _comparison_json(comparison: KernelComparison) -> dict[str, Any]:
    first = comparison.tuned[0].entry
    dtype = "" if first.dtype == UNKNOWN_DTYPE else first.dtype
    return {
        "problem": cut(problem_text(first.sizes, dtype)),
        "devices": [
            {
                "name": cut(one.folder),
                "time_ms": one.entry.time_ms,
                "config": cut(str(one.entry.config), MAX_DETAIL),
            }
            for one in comparison.tuned
        ],
        "matrix": [list(row.values()) for row in comparison.matrix.values()],
        "flips": {
            cut(name): [
                None if (value := row.get(one.folder)) is None else cut(str(value))
                for one in comparison.tuned
            ]
            for name, row in comparison.flips.items()
        },
        "agreed": cut(str(Config(comparison.agreed)), MAX_DETAIL),
        "portable": _portable_json(comparison.portable),
        "mostPortable": comparison.most_portable and _portable_json(comparison.most_portable),
        "portfolio": [
            [cut(str(config), MAX_DETAIL), cut(", ".join(devices), MAX_DETAIL)]
            for config, devices in comparison.portfolio
        ],
    }


def _portable_json(portable: Portable) -> dict[str, Any]:
    return {
        "config": cut(str(portable.config), MAX_DETAIL),
        "slowdowns": list(portable.slowdowns.values()),
        "worst": portable.worst,
    }
