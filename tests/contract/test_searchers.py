"""One contract for every searcher: what reaches the evaluator, when a search ends, and what a seed fixes."""

import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

from autotune.errors import BudgetSpent, InputError, MissingExtra
from autotune.model import Status
from autotune.searchers import default_strategy, engine_names, make_searcher, strategy_names
from autotune.space import bind, load_space, problem_of
from tests.in_process_evaluator import InProcessEvaluator
from tests.space_example import GPU, YAML, write_space

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
SEARCHERS = [(engine, name) for engine in engine_names() for name in strategy_names(engine) or (None,)]
SEEDLESS = {("exhaustive", None), ("kernel_tuner", "brute_force")}  # their order is that of the space
UNREPEATABLE = {  # they draw from a generator that Kernel Tuner does not let anybody seed
    ("kernel_tuner", "diff_evo"),
    ("kernel_tuner", "bayes_opt"),
    ("kernel_tuner", "skopt"),
}
pytestmark = pytest.mark.filterwarnings("ignore:Kernel Tuner's:UserWarning")


def make_space(folder, parameters, constraints, default):
    head, rest = YAML.split("parameters:\n")
    tail = rest.split("landmarks:\n")[1].partition("arguments:\n")[2]
    text = f"{head}parameters:\n{parameters}derived:\n  BLOCKS: n\nconstraints:\n{constraints}"
    tail = tail.split("launch:\n")[0]
    text += f"default: {default}\narguments:\n{tail}"
    text += "launch:\n  - {entry: reduce, grid: [1], block: [1], arguments: [x, sum, n]}\n"
    spec = load_space(write_space(folder, text))
    return bind(spec, GPU, problem_of(spec, GPU))


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    default = "{ALGORITHM: tree, BLOCK_SIZE: 32, VECTOR: 1, SCALE: 1.0, UNROLL: false}"
    return make_space(tmp_path_factory.mktemp("space"), PARAMETERS, CONSTRAINTS, default)


@pytest.fixture(params=SEARCHERS, ids=[f"{engine}-{name}" if name else engine for engine, name in SEARCHERS])
def which(request):
    return request.param


@pytest.fixture
def searcher(which):
    try:
        return make_searcher(*which)
    except MissingExtra as missing:
        pytest.skip(str(missing))


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
    parameters = PARAMETERS.replace("512, 1024", "512").replace("tree, shuffle, atomic", "tree, shuffle")
    default = "{ALGORITHM: tree, BLOCK_SIZE: 32, VECTOR: 1, SCALE: 1.0, UNROLL: false}"
    small = make_space(tmp_path, parameters, CONSTRAINTS + "  - SCALE <= 1\n  - VECTOR >= 2\n", default)
    assert 64 < len(small) < 100
    evaluate = InProcessEvaluator(small, result)
    searcher.search(small, evaluate, seed=0)
    assert len(evaluate.tried) == len(small) or which[0] == "kernel_tuner"
    assert len(evaluate.tried) >= len(small) / 4
