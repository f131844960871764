"""Every kernel computes what its reference says, on the CPU: all landmarks and every pair of values.

They are compiled without optimisation, which would take several times as long and checks the compiler rather
than the kernel; kernels that would then run for longer than they compile are optimised, but not vectorised.
The sizes are the spaces' own awkward ones: the default runs on each of them, a landmark on two and everything
else on one. All are used equally often, each by configurations that need few threads.
"""

from collections import Counter
from contextlib import ExitStack
from math import prod
from pathlib import Path

import pytest

from autotune.compilers.source_text import read_source
from autotune.core.trials import Failure
from autotune.devices import BACKENDS, Address, backend
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting
from autotune.evaluation.device_process import DeviceSetting, verify_once
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.worker import Worker
from autotune.problem.stored_inputs import StoredInputs
from autotune.space import bind, problem_of
from tests.kernel_space import spec_of
from tests.sampled_configurations import sampled

FILES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
SPACES = [path for path in FILES if spec_of(path.stem).dialect != "triton"]
MAX_PAIRWISE = 24  # rows: 62% of convolution's pairs, 77% of reduce's, 80% or more of any other's
UNOPTIMISED = "-cl-opt-disable"
NOT_VECTORISED = {"CL_CONFIG_CPU_VECTORIZER_MODE": "1"}  # of Intel's runtime
LONG_RUNS = {"matadd", "matmul"}  # kernels that run five times as long without optimisation
CPU = Address("opencl", 0)


def instances(spec, device, folder):
    """What to compile, each with the problems to run it on."""
    stored = StoredInputs(spec, folder)
    for space, known, pairwise in sampled(spec, device, MAX_PAIRWISE):
        maker = InstanceMaker(space, read_source(spec.source), BACKENDS[CPU.backend].dialect, {}, stored)
        used = Counter()
        for number, config in enumerate((*known, *pairwise)):
            instance = maker.make(config)
            problems = instance.verify_workloads or (
                instance.workload,
            )  # some are right for the main size only
            if config != spec.default:
                by_use = sorted(problems, key=lambda problem: (used[problem.data_key], threads(problem)))
                problems = tuple(by_use[: 2 if number < len(known) else 1])
                used.update(problem.data_key for problem in problems)
            yield instance, problems


def threads(problem):
    """How many threads the launches of a problem have; one that is out of range costs as much as any."""
    return sum(prod(launch.grid) * prod(launch.block) for launch in problem.launches)


def what_is_wrong(worker, binary, problems):
    """The first failure of a configuration, or None."""
    if isinstance(binary, Failure):
        return binary
    failure = worker.load(*problems)
    if failure is not None:
        return failure
    for problem in problems:
        found = worker.run(verify_once, binary, problem, timeout_s=60)
        if isinstance(found, Failure):
            return found
    return None


def failures(spec, device, tried):
    """The failure of each configuration that has one; `tried` are instances with their problems."""
    # PoCL 3.0 would make code for the block of each launch, some of it wrong without optimisation (bicgk)
    variables = {"POCL_WORK_GROUP_SPECIALIZATION": "0"}
    if spec.kernel in LONG_RUNS:
        variables, more = variables | NOT_VECTORISED, ()
    else:
        more = (UNOPTIMISED,)
    with ExitStack() as opened:
        patch = opened.enter_context(pytest.MonkeyPatch.context())
        for name, value in variables.items():
            patch.setenv(name, value)
        pool = CompilerPool(
            compiler_setting(CPU, device, spec.compiler),
            size=1,
            timeout_s=120,
        )
        opened.callback(pool.close)
        worker = Worker(DeviceSetting(CPU, spec.reference))
        opened.callback(worker.end)
        compiled = [pool.compile_source(one.source, (*one.options, *more)) for one, _ in tried]
        found = [
            (one.config, what_is_wrong(worker, compilation.result(), problems))
            for (one, problems), compilation in zip(tried, compiled, strict=True)
        ]
    return {config: failure for config, failure in found if failure is not None}


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_and_every_pair_of_values_are_right(path, tmp_path):
    spec = spec_of(path.stem)
    if spec.dialect not in BACKENDS[CPU.backend].accepts:
        pytest.skip(f"{spec.kernel} is written in dialect {spec.dialect}, which no OpenCL device takes")
    device = backend(CPU.backend).list_devices()[CPU.index]
    wrong = failures(spec, device, list(instances(spec, device, tmp_path)))
    assert not {str(config): str(failure) for config, failure in wrong.items()}


@pytest.mark.parametrize("path", [path for path in SPACES if spec_of(path.stem).declared_wrong])
def test_a_landmark_that_is_declared_wrong_is_refused_as_declared(path, tmp_path):
    spec = spec_of(path.stem)
    device = backend(CPU.backend).list_devices()[CPU.index]
    space, stored = bind(spec, device, problem_of(spec, device)), StoredInputs(spec, tmp_path)
    maker = InstanceMaker(space, read_source(spec.source), BACKENDS[CPU.backend].dialect, {}, stored)
    tried = [(one, one.verify_workloads) for one in map(maker.make, spec.declared_wrong)]
    wrong = failures(spec, device, tried)
    assert {config: failure.status for config, failure in wrong.items()} == spec.declared_wrong
