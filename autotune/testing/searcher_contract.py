"""The contract of searchers: valid proposals, the end of a search, and the effect of the seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest

from autotune.core.records import Config
from autotune.core.trials import Status, Trial
from autotune.devices import backend
from autotune.errors import NoMoreTrials
from autotune.searchers.base import Searcher
from autotune.space import ValidSpace, bind, load_space, problem_of
from autotune.testing.evaluator import InProcessEvaluator

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


def make_space(folder: Path, parameters: str, constraints: str, default: str) -> ValidSpace:
    """Write the files of a space with these sections to a folder, and load it."""
    (folder / "example.cu").write_text("")
    (folder / "example.py").write_text("def reference(inputs, sizes): ...\n")
    (folder / "example.yaml").write_text(f"""\
schema: 1
kernel: example
source: example.cu
reference: example.py
sizes:
  default: {{n: 1024}}
parameters:
{parameters}constraints:
{constraints}default: {default}
arguments:
  - {{name: x, dtype: int32, shape: [n], role: out}}
launch:
  - {{entry: example, grid: [1], block: [1], arguments: [x]}}
""")
    (fake,) = backend("fake").list_devices()
    spec = load_space(folder / "example.yaml")
    return bind(spec, replace(fake, name="Example GPU"), problem_of(spec, fake))


def outcome(config: Config) -> float | Status:
    """A convex function with a step; an eighth of the configurations fail, some of them near the best."""
    if config["BLOCK_SIZE"] == 256 and config["SCALE"] == 2.0:
        return Status.WRONG_RESULT if config["UNROLL"] else Status.COMPILE_ERROR
    steps = {"shuffle": 0.0, "tree": 1.0, "atomic": 4.0}[str(config["ALGORITHM"])]
    away = abs(log2(float(config["BLOCK_SIZE"]) / 256)) + abs(log2(float(config["VECTOR"]) / 4))
    return 1.0 + steps + 0.5 * away + 0.1 * float(config["SCALE"]) - 0.2 * bool(config["UNROLL"])


def spend(searcher: Searcher, evaluate: InProcessEvaluator, seed: int = 0) -> None:
    """Search until the budget is spent."""
    with pytest.raises(NoMoreTrials):
        searcher.search(evaluate.space, evaluate, seed=seed)


class SearcherContract:
    """Inherit this class and define the fixture `searcher`; pytest runs the contract on it.

    Override the fixtures `depends_on_seed`, `repeats` or `tries_all` for a searcher that cannot comply.
    """

    @pytest.fixture
    def searcher(self) -> Searcher:
        """The searcher to test."""
        raise NotImplementedError("define a fixture `searcher`")

    @pytest.fixture
    def depends_on_seed(self) -> bool:
        """True if another seed gives other proposals."""
        return True

    @pytest.fixture
    def repeats(self) -> bool:
        """True if the same seed gives the same proposals."""
        return True

    @pytest.fixture
    def tries_all(self) -> bool:
        """True if a search without a budget tries every configuration before it ends."""
        return True

    @pytest.fixture(scope="module")
    @classmethod
    def space(cls, tmp_path_factory: pytest.TempPathFactory) -> ValidSpace:
        """Some hundred valid configurations."""
        return make_space(tmp_path_factory.mktemp("space"), PARAMETERS, CONSTRAINTS, DEFAULT)

    def test_only_valid_configurations_are_asked_for_and_the_search_stops_when_the_budget_is_spent(
        self, space: ValidSpace, searcher: Searcher, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The evaluator refuses once. Global generators are left alone, and a library prints nothing."""
        before, before_numpy = random.getstate(), np.random.get_state()
        evaluate = InProcessEvaluator(space, outcome, budget=60)
        spend(searcher, evaluate)
        assert all(config in space for config in evaluate.asked)
        assert len(evaluate.tried) == 60 and evaluate.refusals == 1
        assert random.getstate() == before
        np.testing.assert_equal(np.random.get_state(), before_numpy)
        assert capsys.readouterr() == ("", "")

    def test_the_seed_decides_on_the_proposals(
        self, space: ValidSpace, searcher: Searcher, repeats: bool, depends_on_seed: bool
    ) -> None:
        """Global generators do not."""
        runs: list[list[Config]] = []
        for seed, budget in ((7, 40), (7, 40), (8, 15)):
            np.random.seed(len(runs))
            random.seed(len(runs))
            evaluate = InProcessEvaluator(space, outcome, budget)
            spend(searcher, evaluate, seed)
            runs.append(evaluate.tried)
        assert runs[0] == runs[1] or not repeats
        assert runs[0][:15] != runs[2] or not depends_on_seed

    def test_a_search_resumed_with_what_is_known_goes_on_from_there(
        self, space: ValidSpace, searcher: Searcher, repeats: bool
    ) -> None:
        """It asks for the known trials again, which cost nothing."""
        evaluate = InProcessEvaluator(space, outcome, budget=25)
        spend(searcher, evaluate)
        tried = evaluate.tried
        evaluate.budget = 40
        spend(searcher, evaluate)
        assert evaluate.tried[:25] == tried and len(evaluate.tried) == 40
        if repeats:
            whole = InProcessEvaluator(space, outcome, budget=40)
            spend(searcher, whole)
            assert evaluate.tried == whole.tried

    @pytest.mark.parametrize("valid", [1, 2, 3])
    def test_tiny_spaces_are_tried_whole(self, tmp_path: Path, searcher: Searcher, valid: int) -> None:
        """The search ends by itself."""
        values = list(range(1, valid + 1))
        tiny = make_space(tmp_path, f"  A: {values}\n  B: [x]\n", "  - A >= 1\n", "{A: 1, B: x}")
        evaluate = InProcessEvaluator(tiny, lambda config: float(config["A"]))
        searcher.search(tiny, evaluate, seed=0)
        assert set(evaluate.tried) == set(tiny)

    @pytest.mark.parametrize("result", [outcome, lambda _: Status.TIMEOUT], ids=["exhausted", "all fail"])
    def test_a_search_without_a_budget_ends(
        self, tmp_path: Path, searcher: Searcher, tries_all: bool, result: Callable[[Config], float | Status]
    ) -> None:
        """Also where every configuration fails."""
        constraints = CONSTRAINTS + "  - SCALE <= 1\n  - VECTOR == 2\n  - BLOCK_SIZE <= 256\n"
        small = make_space(tmp_path, PARAMETERS, constraints, DEFAULT)
        assert 32 <= len(small) < 48
        evaluate = InProcessEvaluator(small, result)
        searcher.search(small, evaluate, seed=0)
        assert len(evaluate.tried) == len(small) or not tries_all
        assert len(evaluate.tried) >= len(small) / 4

    def test_an_error_of_the_evaluator_passes_through(self, space: ValidSpace, searcher: Searcher) -> None:
        """It is not taken for one of the searcher's library."""

        class Broken(InProcessEvaluator):
            def collect(self) -> list[Trial]:
                raise ValueError("the evaluator's own")

        with pytest.raises(ValueError, match="the evaluator's own"):
            searcher.search(space, Broken(space, outcome), seed=0)
