"""The contract of searchers, held by every engine and strategy, and what else is promised of some."""

import subprocess
import sys

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.searchers import default_strategy, engine_names, make_searcher, strategy_names
from autotune.searchers.surrogate import PooledSearch, PooledTrials
from autotune.testing import InProcessEvaluator, SearcherContract
from autotune.testing.searcher_contract import CONSTRAINTS, DEFAULT, PARAMETERS, make_space, outcome, spend

SEARCHERS = [(engine, name) for engine in engine_names() for name in strategy_names(engine) or (None,)]
POOLED = ("pooled", None)  # which only sweeps make
SEEDLESS = {("exhaustive", None), ("kernel_tuner", "brute_force")}  # their order is that of the space
UNREPEATABLE = {  # they draw from a generator that Kernel Tuner does not let anybody seed
    ("kernel_tuner", "diff_evo"),
    ("kernel_tuner", "bayes_opt"),
    ("kernel_tuner", "skopt"),
}
FAILED_MS = 9.0  # counts for a failure where times are averaged
pytestmark = [
    pytest.mark.filterwarnings("error:Kernel Tuner's .* broke down:UserWarning"),
    pytest.mark.filterwarnings("ignore:Kernel Tuner's .* (handles|loses|records|takes):UserWarning"),
]


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space"), PARAMETERS, CONSTRAINTS, DEFAULT)


class OfOneProblem:
    """A search with the model of several problems, of which no other is known."""

    def search(self, space, evaluate, *, seed):
        PooledSearch(PooledTrials([space])).search(space, evaluate, seed=seed)


class TestSearchers(SearcherContract):
    @pytest.fixture(
        params=[*SEARCHERS, POOLED],
        ids=[f"{engine}-{name}" if name else engine for engine, name in [*SEARCHERS, POOLED]],
    )
    def which(self, request):
        return request.param

    @pytest.fixture
    def searcher(self, which):
        if which == POOLED:
            return OfOneProblem()
        try:
            return make_searcher(*which)
        except InputError as error:
            if "which is not installed" not in str(error):
                raise
            pytest.skip(str(error))

    @pytest.fixture
    def depends_on_seed(self, which):
        return which not in SEEDLESS

    @pytest.fixture
    def repeats(self, which):
        return which not in UNREPEATABLE

    @pytest.fixture
    def tries_all(self, which, request):
        if which == ("kernel_tuner", "skopt"):
            pytest.skip("scikit-optimize thinks for half a second before each of 1500 proposals")
        if which[1] in ("nsga2", "nsga3") and "exhausted" in request.node.name:
            pytest.skip("pymoo thinks for ten seconds once nothing is new: `all fail` shows that it ends")
        return which[0] != "kernel_tuner"


@pytest.mark.parametrize("engine", ["exhaustive", "random", "surrogate"])
def test_what_a_search_begins_with_is_known_ahead(space, engine):
    searcher = make_searcher(engine)
    first = searcher.opening(space, seed=3)
    evaluate = InProcessEvaluator(space, outcome, budget=5)
    spend(searcher, evaluate, 3)
    assert len(first) >= 5 and evaluate.tried == first[:5]


def test_default_strategies_learn(space):
    def mean_of_the_last_twenty(engine):
        times = []
        for seed in range(5):
            evaluate = InProcessEvaluator(space, outcome, budget=60)
            spend(make_searcher(engine), evaluate, seed)
            times += [trial.time_ms or FAILED_MS for trial in list(evaluate.trials.values())[-20:]]
        return np.mean(times)

    at_random = mean_of_the_last_twenty("random")
    assert mean_of_the_last_twenty("kernel_tuner") < 0.8 * at_random
    assert mean_of_the_last_twenty("optuna") < 0.8 * at_random


def test_the_default_search_finds_the_best_soon(space):
    """It knows when a region is exhausted and looks elsewhere: its last trials need not be good."""
    best = min(time_ms for config in space if isinstance(time_ms := outcome(config), float))
    for seed in range(3):
        evaluate = InProcessEvaluator(space, outcome, budget=40)
        spend(make_searcher("surrogate"), evaluate, seed)
        assert min(trial.time_ms or FAILED_MS for trial in evaluate.trials.values()) == best


def test_optuna_says_nothing_and_its_verbosity_is_put_back(space, caplog):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.INFO)
    optuna.logging.enable_propagation()
    try:
        spend(make_searcher("optuna"), InProcessEvaluator(space, outcome, budget=20))
    finally:
        optuna.logging.disable_propagation()
    assert not caplog.records and optuna.logging.get_verbosity() == optuna.logging.INFO


@pytest.mark.parametrize("name", ["bayes_opt", "greedy_ils", "greedy_mls", "mls", "ordered_greedy_mls"])
def test_strategies_that_are_broken_in_the_library_say_so(space, name):
    with pytest.warns(UserWarning, match=f"Kernel Tuner's {name} "):
        spend(make_searcher("kernel_tuner", name), InProcessEvaluator(space, outcome, budget=5))


def test_a_strategy_that_breaks_down_starts_again_and_says_so(tmp_path):
    values = list(range(1, 81))
    isolated = make_space(tmp_path, f"  A: {values}\n  B: {values}\n", "  - A == B\n", "{A: 1, B: 1}")
    evaluate = InProcessEvaluator(isolated, lambda config: float(config["A"]), budget=10)
    with pytest.warns(UserWarning, match="greedy_ils broke down and is restarted"):
        spend(make_searcher("kernel_tuner", "greedy_ils"), evaluate)
    assert len(evaluate.tried) == 10


def test_every_strategy_of_kernel_tuner_is_offered():
    from kernel_tuner.interface import strategy_map

    assert set(strategy_names("kernel_tuner")) == set(strategy_map)


@pytest.mark.parametrize(
    ("engine", "strategy", "message"),
    [
        ("optunna", None, "unknown engine 'optunna'; did you mean optuna?"),
        (
            "zzz",
            None,
            "unknown engine 'zzz'; expected one of: adopt, exhaustive, kernel_tuner, optuna, random",
        ),
        ("optuna", "tpee", "engine optuna: unknown strategy 'tpee'; did you mean tpe?"),
        ("kernel_tuner", "tpe", "engine kernel_tuner: unknown strategy 'tpe'; "),
        ("random", "tpe", "engine random has no strategies; leave strategy 'tpe' out"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(engine, strategy, message):
    with pytest.raises(InputError) as error:
        make_searcher(engine, strategy)
    assert str(error.value).startswith(message)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        InputError, match="strategy gp needs torch, which is not installed: pip install torch"
    ):
        make_searcher("optuna", "gp")


def test_the_default_strategies():
    assert [default_strategy(engine) for engine in engine_names()] == ["", "", "", "hybrid_vndx", "tpe", ""]


def test_a_library_is_imported_only_for_its_own_engine():
    program = """if True:
        import sys
        from autotune.searchers import make_searcher, strategy_names
        make_searcher("random"), strategy_names("optuna")
        assert not {"optuna", "kernel_tuner"} & set(sys.modules)
        make_searcher("optuna")
        assert "kernel_tuner" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)
