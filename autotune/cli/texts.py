"""Problems, rates and times in the commands' wording."""

from __future__ import annotations

from autotune.core.records import Config
from autotune.core.text import per_second, problem_text
from autotune.core.trials import Measurement
from autotune.evaluation.instance import work
from autotune.space import ValidSpace
from autotune.space.spec import DTYPES


def space_problem(space: ValidSpace) -> str:
    """The problem of a bound space: `n=4,194,304, int32`, without the type if the space names none."""
    problem, spec = space.problem, space.spec
    is_typed = spec.dtypes != DTYPES or any(argument.dtype == "DTYPE" for argument in spec.arguments)
    return problem_text(problem.sizes, problem.dtype if is_typed else None, problem.data)


def rate_text(space: ValidSpace, config: Config, time_ms: float) -> str:
    """The rates that follow from a time, if the space states its work: `13.6 GB/s, 3.4 GFLOP/s`."""
    done = work(space, config, space.problem.sizes)
    units = {"bytes": "B/s", "flops": "FLOP/s"}
    return ", ".join(per_second(amount / time_ms * 1e3, units[name]) for name, amount in done.items())


def measured_text(space: ValidSpace, config: Config, measured: Measurement) -> str:
    """A time with its interval and rates: `1.23 ms (1.22 to 1.25), 13.6 GB/s`."""
    low_ms, high_ms = measured.interval_ms
    time = f"{measured.median_ms:.4g} ms ({low_ms:.4g} to {high_ms:.4g})"
    return ", ".join(filter(None, (time, rate_text(space, config, measured.median_ms))))
