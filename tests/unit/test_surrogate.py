"""The parts of the default search: encoding, kernel, posterior, design, candidates, transfer, stopping."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from operator import itemgetter

import numpy as np
import pytest
from replay import recorded_space
from scipy.optimize import approx_fprime
from threadpoolctl import threadpool_info, threadpool_limits

from autotune.analysis.external_results import unknown_device
from autotune.core.records import Config, Parameter
from autotune.core.trials import Status
from autotune.errors import NoMoreTrials
from autotune.hardware.names import Traits
from autotune.searchers.base import PriorResults, StoppingEstimate, evaluate
from autotune.searchers.surrogate import SurrogateSearch, model, run, stopping_estimate, transfer
from autotune.searchers.surrogate.blas_threads import one_blas_thread
from autotune.searchers.surrogate.candidate_set import MAX_CANDIDATES, candidate_set
from autotune.searchers.surrogate.encoding import Encoding
from autotune.searchers.surrogate.gaussian_process import (
    Kernel,
    _NegativeLogPosterior,
    default_hyper_prior,
    fit,
)
from autotune.searchers.surrogate.model import log_expected_improvement
from autotune.searchers.surrogate.posterior import Posterior
from autotune.searchers.surrogate.run import maximin_order
from autotune.searchers.surrogate.search import DESIGN_SIZE, MAX_PENDING
from autotune.searchers.surrogate.stopping import improvement
from autotune.searchers.surrogate.time_model import TimeFit, TimeModel, plain_prior
from autotune.searchers.surrogate.transfer import SourceModel, results_in_space
from autotune.testing import InProcessEvaluator
from autotune.tuning.prior_results import priors_text

PARAMETERS = (
    Parameter("BLOCK", (16, 32, 64, 128, 256, 512)),
    Parameter("TILE", (1, 2, 3, 4, 6, 8)),
    Parameter("UNROLL", (0, 1, 2, 4)),
    Parameter("MEMORY", ("global", "shared", "texture")),
    Parameter("PAD", (False, True)),
    Parameter("FIXED", (7,)),
)


def configs(parameters=PARAMETERS):
    grid = np.indices([len(parameter.values) for parameter in parameters]).reshape(len(parameters), -1).T
    return [
        Config({p.name: p.values[place] for p, place in zip(parameters, row, strict=True)})
        for row in grid.tolist()
    ]


@pytest.fixture(scope="module")
def space():
    return recorded_space("example", unknown_device("Some GPU", "some-gpu"), PARAMETERS, configs())


def valley(block, tile, memory="shared"):
    """Times with one best region, and a tenth that fails."""

    def time_ms(config):
        if config["BLOCK"] * config["TILE"] > 2048:
            return Status.LAUNCH_ERROR
        away = abs(np.log2(config["BLOCK"] / block)) + 2 * abs(np.log2(config["TILE"] / tile))
        wrong = 0.0 if config["MEMORY"] == memory else 1.0
        return float(np.exp(0.3 * away + wrong + 0.1 * (config["UNROLL"] != 2) - 0.2 * config["PAD"]))

    return time_ms


def best_after(space, searcher, outcome, budget, seeds=range(3)):
    """Mean over seeds of the best time after so many evaluations over the best there is."""
    optimum = min(t for c in space if not isinstance(t := outcome(c), Status))
    ratios = []
    for seed in seeds:
        evaluate = InProcessEvaluator(space, outcome, budget)
        with pytest.raises(NoMoreTrials):
            searcher.search(space, evaluate, seed=seed)
        times = [trial.time_ms for trial in evaluate.trials.values() if trial.time_ms is not None]
        ratios.append(min(times) / optimum)
    return np.mean(ratios)


def prior_of(space, outcome, source="elsewhere"):
    results = [(config, outcome(config)) for config in space]
    return PriorResults(source, tuple((c, None if isinstance(t, Status) else t) for c, t in results))


def test_numbers_lie_on_a_log_axis_and_names_do_not(space):
    block, tile, unroll, memory, pad = Encoding(space).axes
    assert block.is_ordinal and np.allclose(block.coordinates, np.linspace(0, 1, 6))
    assert tile.distances[0, 1] == pytest.approx(tile.distances[1, 3])  # 1 to 2 is as far as 2 to 4
    assert np.allclose(unroll.coordinates, [0, 1 / 3, 2 / 3, 1])  # a zero has no logarithm: by order
    assert not memory.is_ordinal and np.array_equal(memory.distances, 1 - np.eye(3))
    assert not pad.is_ordinal


@pytest.mark.parametrize(("left", "right"), [(1, 1), (3, 500), (500, 3), (500, 500), (0, 5), (5, 0), (0, 0)])
def test_a_covariance_is_the_product_of_the_correlations_on_all_axes(space, left, right):
    rng, encoding = np.random.default_rng(3), Encoding(space)
    some, others = (encoding.positions(rng.integers(0, len(space), count)) for count in (left, right))
    kernel = Kernel(encoding.axes, default_hyper_prior(len(encoding.axes)).mean)
    product = np.full((left, right), kernel.variance)
    for axis, table in enumerate(kernel.correlations()):
        product *= table[some[:, axis][:, None], others[:, axis]]
    assert np.allclose(kernel.covariance(some, others), product, rtol=1e-12)


def test_a_small_space_is_predicted_once_with_the_same_times(space, monkeypatch):
    rows, log_ms = results_in_space(space, prior_of([*space][::20], valley(64, 4)))
    model = SourceModel(Encoding(space), rows, log_ms, np.random.default_rng(0))
    asked = np.arange(1, len(space), 5)
    whole = model.predict(asked)
    monkeypatch.setattr(transfer, "MAX_CANDIDATES", 0)
    for at_once, alone in zip(whole, model.predict(asked), strict=True):
        assert np.allclose(at_once, alone, rtol=1e-12)


def test_the_gradient_of_the_fit_is_that_of_its_loss(space):
    rng = np.random.default_rng(0)
    encoding = Encoding(space)
    axes = encoding.axes
    positions = encoding.positions(rng.choice(len(space), 20, replace=False))
    targets, basis = rng.standard_normal(20), rng.standard_normal((20, 2))
    prior = default_hyper_prior(len(axes), 2)
    objective = _NegativeLogPosterior(axes, prior, positions, targets, basis)
    values = prior.mean + 0.3 * rng.standard_normal(len(prior.mean))
    numeric = approx_fprime(values, lambda v: objective(v)[0], 1e-6)
    assert np.allclose(objective(values)[1], numeric, rtol=1e-3, atol=1e-3)


def test_points_added_one_by_one_give_the_posterior_of_all_at_once(space):
    rng = np.random.default_rng(1)
    encoding = Encoding(space)
    axes = encoding.axes
    positions = encoding.positions(slice(None))
    basis = rng.standard_normal((len(positions), 1))
    kernel = Kernel(axes, default_hyper_prior(len(axes), 1).mean)
    points = [int(point) for point in rng.choice(len(positions), 40, replace=False)]
    measured = rng.standard_normal((40, 2))
    whole, grown = (
        Posterior(kernel, positions, basis, points),
        Posterior(kernel, positions, basis, []),
    )
    for point in points:
        grown.add(point)
    assert np.allclose(whole.means(measured), grown.means(measured), atol=1e-4)
    assert np.allclose(whole.variance, grown.variance, atol=1e-4)
    some = np.array(points[:5])
    assert np.allclose(np.diag(whole.joint_covariance(some)), whole.variance[some], atol=1e-4)


def test_what_is_under_way_changes_no_expected_time_or_cost(space):
    rng = np.random.default_rng(2)
    encoding = Encoding(space)
    axes, positions = encoding.axes, encoding.positions(slice(None))
    *points, first, second, third = (int(point) for point in rng.choice(len(positions), 23, replace=False))
    log_ms, log_cost = rng.standard_normal((2, 20))
    fitted = TimeFit(axes, positions, points, log_ms, plain_prior(len(axes), len(positions)), None)

    def conditioned(more, more_ms, more_cost):
        data = np.append(log_ms, more_ms), np.append(log_cost, more_cost)
        return TimeModel(fitted, positions, [*points, *more], *data)

    def are_as_in(other):
        return np.allclose(model.expectations(), other.expectations(), atol=1e-4)

    model = conditioned([], [], [])
    for point in (first, second, third):
        model.add_pending(point)
    assert are_as_in(conditioned([], [], []))
    model.tell(second, 0.3, 0.5)
    assert are_as_in(conditioned([second], [0.3], [0.5]))
    average, predicted = log_ms.mean() / fitted.scale, model.expectations()[0][third]
    model.tell(third, np.nan, np.nan)
    assert abs(model.expectations()[0][third] - average) < abs(predicted - average) / 2
    assert are_as_in(conditioned([second, third], [0.3, np.nan], [0.5, np.nan]))


def test_a_fit_finds_out_which_parameters_matter(space):
    rng = np.random.default_rng(2)
    encoding = Encoding(space)
    axes = encoding.axes
    positions = encoding.positions(rng.choice(len(space), 80, replace=False))
    targets = np.where(positions[:, 4] == 1, 1.0, -1.0)  # PAD alone
    prior = default_hyper_prior(len(axes))
    kernel, _ = fit(Kernel(axes, prior.mean), prior, positions, targets, np.empty((80, 0)))
    correlations = [table.min() for table in kernel.correlations()]
    assert correlations[4] < 0.6 < min(correlations[:4])


def test_expected_improvement_is_exact_and_finite_far_away():
    rng = np.random.default_rng(3)
    drawn = rng.normal(0.5, 2.0, 400_000)
    exact = log_expected_improvement(0.0, np.array([0.5]), np.array([2.0]))
    assert np.exp(exact[0]) == pytest.approx(np.maximum(-drawn, 0).mean(), rel=0.02)
    far = log_expected_improvement(0.0, np.array([0.9, 1.1, 50.0, 5e3, 1e6]), np.ones(5))
    assert np.isfinite(far).all() and (np.diff(far) < 0).all()


def test_a_design_begins_in_the_middle_and_covers_every_value(space):
    encoding = Encoding(space)
    axes = encoding.axes
    positions = encoding.positions(slice(None))
    order = list(maximin_order(axes, positions, positions[:0], np.random.default_rng(0)))
    assert sorted(order) == list(range(len(space)))
    first = positions[order[0]]
    assert first[0] in (2, 3) and first[1] in (2, 3) and first[2] in (1, 2)
    for column in range(len(axes)):
        assert {0, positions[:, column].max()} <= set(positions[order[:12], column].tolist())


def test_a_large_space_is_looked_at_around_the_best_of_it():
    parameters = tuple(Parameter(name, tuple(range(1, 13))) for name in "ABCD")
    large = recorded_space("large", unknown_device("Some GPU", "some-gpu"), parameters, configs(parameters))
    required = np.array([7, 9000])
    rows = candidate_set(Encoding(large), required, np.random.default_rng(0))
    assert MAX_CANDIDATES / 2 < len(rows) <= MAX_CANDIDATES + len(required) < len(large)
    assert np.array_equal(rows, np.unique(rows)) and np.isin(required, rows).all()
    apart = (large.rows != large.rows[9000]).sum(axis=1)
    assert np.isin(np.flatnonzero(apart == 1), rows).all()


@pytest.mark.parametrize("batch", [1, 8])
def test_it_finds_the_best_soon_one_at_a_time_and_in_batches(space, monkeypatch, batch):
    monkeypatch.setattr(run, "MAX_BATCH", batch)
    assert best_after(space, SurrogateSearch(), valley(128, 4), 60) < 1.05


class Compilers(InProcessEvaluator):
    """Notes how many configurations were still under way when others were submitted."""

    most = 0

    def submit(self, configs):
        self.most = max(self.most, len(self._ended))
        super().submit(configs)


def test_a_part_of_what_is_under_way_runs_while_the_rest_compiles(space):
    ratios = []
    for seed in range(3):
        evaluate = Compilers(space, valley(128, 4), 60)
        with pytest.raises(NoMoreTrials):
            SurrogateSearch().search(space, evaluate, seed=seed)
        assert 0 < evaluate.most < MAX_PENDING
        best = min(trial.time_ms for trial in evaluate.trials.values() if trial.time_ms)
        ratios.append(best / min(t for c in space if isinstance(t := valley(128, 4)(c), float)))
    assert np.mean(ratios) < 1.05


def test_a_search_that_may_stop_chooses_nothing_while_others_are_under_way(space):
    evaluate = Compilers(space, valley(128, 4), 30)
    with pytest.raises(NoMoreTrials):
        SurrogateSearch(stop_when_unlikely=True).search(space, evaluate, seed=0)
    assert not evaluate.most


def test_a_good_prior_helps_and_a_misleading_one_does_not_hurt(space):
    here = valley(128, 4)
    some = [*space][::5]
    alike, opposite = prior_of(some, valley(256, 4)), prior_of(some, valley(16, 1, "global"))
    assert best_after(space, SurrogateSearch([alike]), here, 10) < 1.1
    assert best_after(space, SurrogateSearch(), here, 10) > 1.1
    for misled in ([opposite], [alike, opposite]):
        assert best_after(space, SurrogateSearch(misled), here, 40) < 1.05


def test_blas_has_one_thread_until_the_last_of_several_searches_has_ended():
    def threads():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        at_first = threads()
        with ExitStack() as second:
            with one_blas_thread():
                second.enter_context(one_blas_thread())
            assert set(threads()) == {1}
        assert threads() == at_first


def test_blas_has_one_thread_whichever_thread_searches():
    """The library that limits it obeys one thread at a time, and does not say so."""

    def threads():
        with one_blas_thread():
            return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as another:
        assert threads() == another.submit(threads).result() == threads() == {1}


def test_a_source_that_grows_during_the_search_is_learnt_from(space):
    """A hidden optimum of one configuration: only the other search, which runs meanwhile, has seen it."""
    hidden = space.config(777)

    def outcome(config):
        return 0.01 if config == hidden else valley(64, 4)(config)

    def trials_until_found(sources):
        def told(config):
            if len(evaluator.trials) == 12:
                sources.append(prior_of(space, outcome))
            return outcome(config)

        evaluator = InProcessEvaluator(space, told, budget=60)
        with pytest.raises(NoMoreTrials):
            SurrogateSearch(sources).search(space, evaluator, seed=0)
        return evaluator.tried.index(hidden) if hidden in evaluator.tried else None

    found = trials_until_found([])
    assert found is not None and found > 12


def test_the_best_of_the_closest_device_is_tried_first_and_the_second_best_of_a_single_one(space):
    device = replace(space.device, vendor="nvidia", architecture="sm_80")
    here = recorded_space("example", device, PARAMETERS, configs())

    def tried(*sources):
        evaluate = InProcessEvaluator(here, valley(128, 4), budget=2)
        with pytest.raises(NoMoreTrials):
            SurrogateSearch(sources).search(here, evaluate, seed=0)
        return evaluate.tried

    some = [*here][::5]
    near = replace(prior_of(some, valley(32, 2)), traits=Traits("gpu", "nvidia", "sm_86"))
    far = replace(prior_of(some, valley(512, 3)), traits=Traits("gpu", "amd", "gfx1032"))
    ranked = sorted((result for result in near.results if result[1]), key=itemgetter(1))
    (best, best_ms), (_, second_ms) = ranked[:2]
    assert tried(far, near)[0] == tried(near, far)[0] == best
    assert [dict(near.results)[config] for config in tried(near)] == [best_ms, second_ms]


def test_where_nothing_near_ran_a_source_is_expected_to_be_as_slow_as_its_slowest(space):
    """A cache keeps the fastest only: their mean would promise too much of all others."""
    known = [c for c in space if c["BLOCK"] == 64 and c["TILE"] == 4]
    rows, log_ms = results_in_space(space, prior_of(known, valley(64, 4)))
    model = SourceModel(Encoding(space), rows, log_ms, np.random.default_rng(0))
    far, _ = model.predict(np.setdiff1d(np.arange(len(space)), rows))
    assert far.mean() > model.log_ms.mean()


def test_the_best_of_every_prior_is_tried_first(space):
    outcomes = valley(32, 2), valley(512, 3, "global")
    evaluate = InProcessEvaluator(space, valley(128, 4), budget=4)
    with pytest.raises(NoMoreTrials):
        SurrogateSearch([prior_of(space, o) for o in outcomes]).search(space, evaluate, seed=0)
    for outcome in outcomes:
        times = {c: t for c in space if not isinstance(t := outcome(c), Status)}
        assert min(times[config] for config in evaluate.tried) < 1.1 * min(times.values())


def test_likely_failures_are_left_alone_though_they_promise_the_best_times(space):
    def resources(config):
        return config["BLOCK"] * config["TILE"] * (1 + config["UNROLL"])

    limit = np.quantile([resources(config) for config in space], 2 / 3)

    def time_ms(config):
        used = resources(config)
        return Status.LAUNCH_ERROR if used > limit else 1e3 / used + (config["MEMORY"] != "shared")

    times = []
    for seed in range(2):
        evaluate = InProcessEvaluator(space, time_ms, budget=150)
        with pytest.raises(NoMoreTrials):
            SurrogateSearch().search(space, evaluate, seed=seed)
        times += [trial.time_ms for trial in evaluate.trials.values()]
    assert times.count(None) <= 0.2 * len(times)  # of all, a third fail
    assert min(t for t in times if t) == min(t for c in space if not isinstance(t := time_ms(c), Status))


def test_a_prior_of_few_or_foreign_results_is_no_obstacle(space):
    config = space.config(100)
    strange = Config({"BLOCK": 3, "TILE": 1, "UNROLL": 0, "MEMORY": "shared", "PAD": True, "FIXED": 7})
    priors = [
        PriorResults("one", ((config, 1.0),)),
        PriorResults("none", ((strange, 1.0), (Config({"A": 1}), None))),
    ]
    evaluate = InProcessEvaluator(space, valley(128, 4), budget=10)
    with pytest.raises(NoMoreTrials):
        SurrogateSearch(priors).search(space, evaluate, seed=0)
    assert config in evaluate.tried and len(evaluate.tried) == 10


@pytest.mark.parametrize("highest", [1, 5])
def test_scores_that_are_not_worked_out_again_change_no_proposal(space, monkeypatch, highest):
    def tried():
        evaluate = InProcessEvaluator(space, valley(128, 4), budget=100)
        with pytest.raises(NoMoreTrials):
            SurrogateSearch().search(space, evaluate, seed=1)
        return evaluate.tried

    monkeypatch.setattr(model, "RESCORED", len(space))
    all_again = tried()
    monkeypatch.setattr(model, "RESCORED", highest)
    assert tried() == all_again


def test_what_takes_long_to_find_out_must_be_worth_it(space):
    def mean_block(cost_s):
        class Timed(InProcessEvaluator):
            def collect(self):
                return [replace(trial, cost_s=cost_s(trial.config["BLOCK"])) for trial in super().collect()]

        timed = Timed(space, lambda config: 1.0 + config["TILE"] / 100, budget=40)
        with pytest.raises(NoMoreTrials):
            SurrogateSearch().search(space, timed, seed=0)
        return np.mean([config["BLOCK"] for config in timed.tried[DESIGN_SIZE:]])

    assert mean_block(float) < 0.5 * mean_block(lambda block: 1.0)


def test_it_stops_when_nothing_better_is_likely(space):
    evaluate = InProcessEvaluator(space, valley(128, 4))
    SurrogateSearch(stop_when_unlikely=True).search(space, evaluate, seed=0)
    assert len(evaluate.tried) < len(space) / 2
    times = [trial.time_ms for trial in evaluate.trials.values() if trial.time_ms is not None]
    assert min(times) < 1.01 * min(t for c in space if not isinstance(t := valley(128, 4)(c), Status))


def test_a_stopping_estimate_says_what_is_left(space):
    trials = InProcessEvaluator(space, valley(128, 4))
    some = evaluate(trials, list(space)[:40])
    early = stopping_estimate(space, some)
    assert early.tried == 40
    assert early.improvement_probability > 0.5 and early.expected_improvement > 0.1
    best_ms = min(trial.time_ms for trial in some if trial.time_ms)
    bounded = stopping_estimate(space, some, floor=0.995 * best_ms)
    assert bounded.improvement_probability == 0.0 and 0.002 < bounded.expected_improvement < 0.00501
    assert stopping_estimate(space, some[:2]).improvement_probability is None
    whole = stopping_estimate(space, evaluate(trials, list(space)))
    assert whole == StoppingEstimate(len(space), len(space), 0.0, 0.0)


def test_nothing_is_expected_below_the_floor_and_what_is_slower_saves_nothing():
    class Drawn:
        def sample_best(self, count, generator):
            return np.log([0.5, 0.9, 0.995, 1.2])

    assert improvement(Drawn()) == (0.5, pytest.approx((0.5 + 0.1 + 0.005) / 4))
    assert improvement(Drawn(), np.log(0.95)) == (0.5, pytest.approx((0.05 + 0.05 + 0.005) / 4))


def test_a_summary_names_the_sources():
    config = Config({"A": 1})
    one = PriorResults("NVIDIA A100, n=1000, float32", ((config, 1.0),))
    assert priors_text([one]) == "started from 1 other result: NVIDIA A100, n=1000, float32 (1)"
