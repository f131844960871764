"""The search of one of several problems, which learns from the trials of the others."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from autotune.core.trials import Problem, Status, problem_distance
from autotune.errors import NoMoreTrials
from autotune.searchers.surrogate import PooledSearch, PooledTrials
from autotune.searchers.surrogate.pooled_trials import MAX_STEPS, OCTAVES
from autotune.space import bind
from autotune.testing import InProcessEvaluator
from autotune.testing.searcher_contract import CONSTRAINTS, DEFAULT, PARAMETERS, make_space

SIZES = (1024, 4096, 16_384)


@pytest.fixture(scope="module")
def spaces(tmp_path_factory):
    """One for each size; a configuration has a block for each BLOCK_SIZE elements."""
    space = make_space(tmp_path_factory.mktemp("space"), PARAMETERS, CONSTRAINTS, DEFAULT)
    (launch,) = space.spec.launch
    spec = replace(space.spec, launch=(replace(launch, grid=("ceil_div(n, BLOCK_SIZE)",)),))
    return [bind(spec, space.device, Problem({"n": n}, "int32")) for n in SIZES]


def outcome(n):
    """Times whose best has the same number of blocks at every size; the smallest blocks fail."""

    def time_ms(config):
        if config["BLOCK_SIZE"] <= 64:
            return Status.LAUNCH_ERROR
        away = abs(np.log2(n / config["BLOCK_SIZE"] / 16)) + abs(np.log2(config["VECTOR"] / 2))
        wrong = {"tree": 0.0, "shuffle": 0.5, "atomic": 2.0}[config["ALGORITHM"]]
        return float(n / 1000 * np.exp(0.3 * away + wrong + 0.1 * config["SCALE"] - 0.1 * config["UNROLL"]))

    return time_ms


def best_ms(space):
    times = map(outcome(space.problem.sizes["n"]), space)
    return min(time_ms for time_ms in times if isinstance(time_ms, float))


class SeveralDevices(InProcessEvaluator):
    """Evaluates what was submitted, one at a time."""

    parallel = 6

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.waiting = []

    def submit(self, configs):
        self.waiting += configs

    def collect(self):
        super().submit([self.waiting.pop(0)])
        return super().collect()


def searched(pool, space, budget, seed=0, first=(), kind=InProcessEvaluator):
    """Search a problem, and add its trials to the pool; returns them in order."""
    evaluate = kind(space, outcome(space.problem.sizes["n"]), budget)
    with pytest.raises(NoMoreTrials):
        PooledSearch(pool, first).search(space, evaluate, seed=seed)
    trials = list(evaluate.trials.values())
    pool.learn(space, trials)
    return trials


@pytest.fixture(scope="module")
def with_others_and_alone(spaces):
    """For each seed the trials of the largest problem: with those of the two others, and without."""
    found = []
    for seed in range(3):
        pool = PooledTrials(spaces)
        for space in spaces[:2]:
            searched(pool, space, 60, seed)
        found.append([searched(one, spaces[2], 12, seed) for one in (pool, PooledTrials(spaces))])
    return found


def test_problems_share_the_axes_in_which_they_differ(spaces):
    spec, device = spaces[0].spec, spaces[0].device
    other = bind(replace(spec, dtypes=("int32", "float32")), device, Problem({"n": 4096}, "float32"))
    one, two = (PooledTrials(some).problem(some[0]).encoding for some in (spaces[:1], [*spaces, other]))
    assert len(one.axes) == len(one.parameter_axes) + 2  # launches and blocks
    assert len(two.axes) == len(one.axes) + 2
    pool = PooledTrials([*spaces, other])
    (small, large, third) = (
        pool.problem(space).encoding.positions(slice(None)) for space in (*spaces[1:], other)
    )
    blocks, size, dtype = -3, -2, -1
    assert (large[:, size] - small[:, size] == 1).all()  # a doubling of a doubling
    assert np.allclose(two.axes[size].coordinates, np.log2(SIZES) / OCTAVES)
    assert np.isin(large[:, blocks] - small[:, blocks], (3, 4)).all()
    assert (third[:, :dtype] == small[:, :dtype]).all() and (third[:, dtype] != small[:, dtype]).all()
    assert max(positions.max() for positions in (small, large)) <= MAX_STEPS


def test_the_best_of_the_nearest_problems_are_tried_first(spaces):
    pool = PooledTrials(spaces)
    known = [searched(pool, space, 40) for space in spaces[:2]]
    trials = searched(pool, spaces[2], 10, first=[spaces[2].spec.default])
    fastest = {
        min((one for one in some if one.time_ms), key=lambda one: one.time_ms).config for some in known
    }
    tried = [one.config for one in trials[:5]]
    assert tried[0] == spaces[2].spec.default and fastest <= {*tried}


def test_trials_of_other_sizes_tell_of_the_next(spaces, with_others_and_alone):
    """Its best has more threads than what was best elsewhere, but as many blocks."""
    away = []
    for both in with_others_and_alone:
        away.append([min(one.time_ms for one in some if one.time_ms) for some in both])
    with_others, alone = np.mean(away, axis=0) / best_ms(spaces[2])
    assert with_others < 1.03 < alone


def test_what_failed_at_other_sizes_is_not_tried_soon(with_others_and_alone):
    failed = []
    for both in with_others_and_alone:
        failed.append([sum(one.status is not Status.OK for one in some[:9]) for some in both])
    with_others, alone = np.sum(failed, axis=0)
    assert 2 * with_others < alone


def test_a_search_with_several_devices_may_stop_while_some_are_under_way(spaces):
    """Rounding then leaves the joint covariance of what is left with values just below 0."""
    pool = PooledTrials(spaces)
    for space in spaces[:2]:
        evaluate = SeveralDevices(space, outcome(space.problem.sizes["n"]), 100)
        with suppress(NoMoreTrials):
            PooledSearch(pool, stop_when_unlikely=True).search(space, evaluate, seed=0)
        pool.learn(space, evaluate.trials.values())
        assert min(one.time_ms for one in evaluate.trials.values() if one.time_ms) < 1.2 * best_ms(space)


def test_another_element_type_is_nearer_than_another_size():
    here = Problem({"n": 1024}, "int32")
    distances = [
        problem_distance(here, Problem({"n": n}, dtype))
        for n, dtype in ((1024, "int32"), (1024, "float32"), (2048, "int32"), (2048, "float32"))
    ]
    assert distances == [0.0, 0.5, 1.0, 1.5]
