"""One contract for every searcher: what reaches the evaluator, when a search ends, and what a seed fixes."""

import random
import subprocess
import sys

import numpy as np
import pytest

from autotune.errors import BudgetSpent, InputError
from autotune.searchers import default_strategy, engine_names, make_searcher, strategy_names
from autotune.space import bind, load_space, problem_of
from autotune.trials import Status
from tests.in_process_evaluator import InProcessEvaluator
from tests.space_example import GPU, write_space

PARAMETERS = """\
  ALGORITHM: [tree, shuffle, atomic]
  BLOCK_SIZE: [32, 64, 128, 256, 512, 1024]
  VECTOR: [1, 2, 4, 8]
  SCALE: [0.5, 1.0, 2.0]
  UNROLL: [false, true]
"""
CONSTRAINTS = """\
  - BLOCK_SIZE * VECTOR <= 2048
  - ALGORITHM != "atomic" or VECTOR <= 2
  - not UNROLL or BLOCK_SIZE >= 64 * SCALE
"""
DEFAULT = "{ALGORITHM: tree, BLOCK_SIZE: 32, VECTOR: 2, SCALE: 1.0, UNROLL: false}"
SEARCHERS = [(engine, name) for engine in engine_names() for name in strategy_names(engine) or (None,)]
SEEDLESS = {("exhaustive", None), ("kernel_tuner", "brute_force")}  # their order is that of the space
UNREPEATABLE = {  # they draw from a generator that Kernel Tuner does not let anybody seed
    ("kernel_tuner", "diff_evo"),
    ("kernel_tuner", "bayes_opt"),
    ("kernel_tuner", "skopt"),
}
FAILED_MS = 9.0  # counts for a failure where times are averaged
pytestmark = [
    pytest.mark.filterwarnings("error:Kernel Tuner's .* broke down:UserWarning"),
    pytest.mark.filterwarnings("ignore:Kernel Tuner's .* (loses|takes):UserWarning"),
]


def make_space(folder, parameters, constraints, default):
    text = f"""\
schema: 1
kernel: example
source: reduce.cu
reference: reduce.py
sizes:
  default: {{n: 1024}}
parameters:
{parameters}constraints:
{constraints}default: {default}
arguments:
  - {{name: x, dtype: int32, shape: [n], role: out}}
launch:
  - {{entry: example, grid: [1], block: [1], arguments: [x]}}
"""
    spec = load_space(write_space(folder, text))
    return bind(spec, GPU, problem_of(spec, GPU))


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space"), PARAMETERS, CONSTRAINTS, DEFAULT)


@pytest.fixture(params=SEARCHERS, ids=[f"{engine}-{name}" if name else engine for engine, name in SEARCHERS])
def which(request):
    return request.param


@pytest.fixture
def searcher(which):
    try:
        return make_searcher(*which)
    except InputError as error:
        if "which is not installed" not in str(error):
            raise
        pytest.skip(str(error))


def outcome(config):
    """A bowl with a valley and a step; an eighth of the configurations fails, near the best ones too."""
    if config["BLOCK_SIZE"] == 256 and config["SCALE"] == 2.0:
        return Status.WRONG_RESULT if config["UNROLL"] else Status.COMPILE_ERROR
    steps = {"shuffle": 0.0, "tree": 1.0, "atomic": 4.0}[config["ALGORITHM"]]
    away = abs(np.log2(config["BLOCK_SIZE"] / 256)) + abs(np.log2(config["VECTOR"] / 4))
    return 1.0 + steps + 0.5 * away + 0.1 * config["SCALE"] - 0.2 * config["UNROLL"]


def spend(searcher, evaluate, seed=0):
    with pytest.raises(BudgetSpent):
        searcher.search(evaluate.space, evaluate, seed=seed)


def test_only_valid_configurations_are_asked_for_and_the_search_stops_when_the_budget_is_spent(
    space, searcher
):
    evaluate = InProcessEvaluator(space, outcome, budget=60)
    spend(searcher, evaluate)
    assert all(config in space for config in evaluate.asked)
    assert len(evaluate.tried) == 60 and evaluate.refusals == 1


def test_the_seed_decides_on_the_proposals(space, searcher, which):
    runs = []
    for seed in (7, 7, 8):
        np.random.seed(len(runs))
        random.seed(len(runs))
        evaluate = InProcessEvaluator(space, outcome, budget=40)
        spend(searcher, evaluate, seed)
        runs.append(evaluate.tried)
    if which not in UNREPEATABLE:
        assert runs[0] == runs[1]
    if which not in SEEDLESS:
        assert runs[0] != runs[2]


def test_global_generators_and_standard_output_are_left_alone(space, searcher, capsys):
    before, before_numpy = random.getstate(), np.random.get_state()
    spend(searcher, InProcessEvaluator(space, outcome, budget=30))
    assert random.getstate() == before
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), before_numpy, strict=True))
    assert capsys.readouterr() == ("", "")


def test_a_search_resumed_with_what_is_known_goes_on_from_there(space, searcher, which):
    evaluate = InProcessEvaluator(space, outcome, budget=30)
    spend(searcher, evaluate)
    first = evaluate.tried
    evaluate.budget = 50
    spend(searcher, evaluate)
    assert evaluate.tried[:30] == first and len(evaluate.tried) == 50
    if which not in UNREPEATABLE:
        whole = InProcessEvaluator(space, outcome, budget=50)
        spend(searcher, whole)
        assert evaluate.tried == whole.tried


@pytest.mark.parametrize("valid", [1, 2, 3])
def test_tiny_spaces_are_tried_whole(tmp_path, searcher, valid):
    values = list(range(1, valid + 1))
    tiny = make_space(tmp_path, f"  A: {values}\n  B: [x]\n", "  - A >= 1\n", "{A: 1, B: x}")
    evaluate = InProcessEvaluator(tiny, lambda config: float(config["A"]))
    searcher.search(tiny, evaluate, seed=0)
    assert set(evaluate.tried) == set(tiny)


@pytest.mark.parametrize("result", [outcome, lambda config: Status.TIMEOUT], ids=["exhausted", "all fail"])
def test_a_search_without_a_budget_ends(tmp_path, searcher, which, result):
    constraints = CONSTRAINTS + "  - SCALE <= 1\n  - VECTOR in [2, 4]\n  - BLOCK_SIZE <= 256\n"
    small = make_space(tmp_path, PARAMETERS, constraints, DEFAULT)
    assert 64 <= len(small) < 80
    if which == ("kernel_tuner", "skopt"):
        pytest.skip("scikit-optimize thinks for half a second before each of 1500 proposals")
    evaluate = InProcessEvaluator(small, result)
    searcher.search(small, evaluate, seed=0)
    assert len(evaluate.tried) == len(small) or which[0] == "kernel_tuner"
    assert len(evaluate.tried) >= len(small) / 4


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


def test_an_error_of_the_evaluator_is_not_taken_for_one_of_the_library(space, searcher):
    def broken(configs):
        raise ValueError("the evaluator's own")

    with pytest.raises(ValueError, match="the evaluator's own"):
        searcher.search(space, broken, seed=0)


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
    with pytest.warns(UserWarning, match="greedy_ils broke down and starts again"):
        spend(make_searcher("kernel_tuner", "greedy_ils"), evaluate)
    assert len(evaluate.tried) == 10


def test_every_strategy_of_kernel_tuner_is_offered_but_one():
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
    monkeypatch.setattr("autotune.searchers.find_spec", lambda name: None)
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
