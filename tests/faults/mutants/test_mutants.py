"""Kernels that are wrong in ways a search might reward: each fails in the search, and in the last round.

`mutants.yaml` has the table. They are compiled for the CPU without optimisation, and run as in a search.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from autotune.compilers.source_text import read_source
from autotune.core.records import Config
from autotune.core.trials import Failure
from autotune.devices import Address, backend
from autotune.evaluation.device_process import DeviceSetting, verify_and_time, verify_once
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.evaluation.worker import Worker
from autotune.space import bind, problem_of
from autotune.tuning.remeasure import FRESH_SEEDS
from tests.kernel_space import spec_of

CPU = Address("opencl", 0)
MUTANTS = yaml.safe_load((Path(__file__).parent / "mutants.yaml").read_text())
FEW = MeasurementPolicy(samples=3, seconds=0.0)


@pytest.fixture(scope="module")
def worker_of():
    """A worker for a reference; each has its own child, for mutants write where they should not."""
    workers = {}

    def opened(reference):
        return workers.setdefault(reference, Worker(DeviceSetting(CPU, reference)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_WORK_GROUP_SPECIALIZATION", "0")
        yield opened
    for worker in workers.values():
        worker.discard_child()


def mutated(mutant):
    """The maker, the mutant's candidate and its binary."""
    spec = spec_of(mutant["kernel"])
    (device, *_) = backend(CPU.backend).list_devices()
    space = bind(spec, device, problem_of(spec, device, mutant["sizes"], mutant.get("dtype")))
    source = read_source(spec.source)
    assert source.text.count(mutant["old"]) == 1, "the kernel has changed: change the mutant with it"
    text = source.text.replace(mutant["old"], mutant["new"])
    maker = InstanceMaker(space, replace(source, text=text), "opencl", environment(space.device, ""))
    config = Config({**spec.default, **mutant.get("config", {})})
    assert config in space
    candidate = maker.make(config)
    compiler = backend(CPU.backend).open_compiler(CPU.index)
    return maker, candidate, compiler.compile(candidate.source, (*candidate.options, "-cl-opt-disable"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_a_mutant_never_wins(mutant, worker_of):
    maker, candidate, binary = mutated(mutant)
    worker = worker_of(maker.space.spec.reference)
    searched = worker.run(verify_and_time, candidate.work_item(binary, FEW, None, None), timeout_s=60)
    assert isinstance(searched, Failure), f"{mutant['why']}, and the search does not see it"
    if not mutant.get("last_round", True):
        return
    problem = candidate.workload.problem
    problems = [maker.workload(candidate.config, replace(problem, seed=seed)) for seed in (*FRESH_SEEDS, 0)]
    verdicts = [worker.run(verify_once, binary, problem, timeout_s=60) for problem in problems]
    assert any(isinstance(verdict, Failure) for verdict in verdicts), (
        f"{mutant['why']}, and the last round does not see it"
    )
