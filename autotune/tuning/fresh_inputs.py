"""The problems of the last round: the search's own, and the same with inputs of other seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autotune.core.records import Config
from autotune.evaluation.instance import InstanceMaker
from autotune.problem.problem_instance import ProblemInstance
from autotune.problem.reference import may_use_device
from autotune.space import SpaceSpec
from autotune.space.arguments import INPUTS
from autotune.tuning.context import TuningContext
from autotune.tuning.data_checks import small_data

FRESH_SEEDS = (1, 2)  # added to the search's seed
OWN_SEED = 0  # likewise: it gives the search's own inputs
SEEDS = (*FRESH_SEEDS, OWN_SEED)  # of the inputs to verify on, in this order


def distinct_seeds(maker: InstanceMaker, seeds: Sequence[int]) -> tuple[int, ...]:
    """Leave out fresh seeds that give the inputs of the search; return OWN_SEED if none is left."""
    problem = maker.space.problem
    found = tuple(
        seed
        for seed in seeds
        if seed == OWN_SEED or not maker.has_same_inputs(problem, replace(problem, seed=problem.seed + seed))
    )
    return found or (OWN_SEED,)


def with_seed(maker: InstanceMaker, config: Config, seed: int) -> ProblemInstance:
    """The problem of a configuration with the inputs of a seed, which is added to the search's."""
    problem = maker.space.problem
    return maker.problem_instance(config, replace(problem, seed=problem.seed + seed))


def fresh_problems(maker: InstanceMaker, config: Config, seeds: Sequence[int]) -> tuple[ProblemInstance, ...]:
    """The problems with fresh inputs, if the reference gives their results."""
    fresh = (with_seed(maker, config, seed) for seed in seeds if seed != OWN_SEED)
    return tuple(problem for problem in fresh if not problem.trusted)


def begin_references(context: TuningContext) -> None:
    """Begin to compute the references of the last round next to the search, where that disturbs no timing."""
    task = context.task
    if context.fleet is None and _can_run_aside(task.spec, task.device.kind):
        seeds = distinct_seeds(context.maker, SEEDS)
        fresh = fresh_problems(context.maker, task.spec.default, seeds)
        context.references.begin(fresh, small_data(context), context.worker.compared)


def _can_run_aside(spec: SpaceSpec, kind: str) -> bool:
    """True if a reference disturbs no times when it runs next to a search on a kind of device.

    Inputs that a file or a function gives are left out: to know them takes time as well.
    """
    fills = {item.fill.kind for item in spec.arguments if item.fill is not None}
    return kind == "gpu" and not fills & {"file", INPUTS} and not may_use_device(spec.reference)
