"""Every kernel computes what its reference says, on the CPU: all landmarks and every pair of values.

They are compiled without optimisation, which would take several times as long and checks the compiler rather
than the kernel; the sizes are the spaces' own awkward ones.
"""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from autotune.compilers.kernel_source import read_source
from autotune.core.trials import Failure, Verdict
from autotune.devices import BACKENDS, Address, backend, cold_environment
from autotune.evaluation.compiler_pool import CompilerPool, compiler_opener
from autotune.evaluation.device_process import verify_once
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.worker import Worker
from autotune.space import load_space
from tests.sampled_configurations import sampled

SPACES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
pytestmark = pytest.mark.xdist_group("kernels")  # each starts a process per core
MOST = 60  # of the covering array: 81% of convolution's pairs, 95% of reduce's, 99% or all of any other's
UNOPTIMISED = "-cl-opt-disable"
CPU = Address("opencl", 0)


def candidates(spec, device):
    """What to compile and run."""
    for space, known, pairwise in sampled(spec, device, MOST):
        maker = InstanceMaker(space, read_source(spec.source), BACKENDS[CPU.backend].dialect, "")
        yield from map(maker.make, (*known, *pairwise))


def what_is_wrong(worker, candidate, binary):
    """The first failure of a configuration at its sizes, or None."""
    if isinstance(binary, Failure):
        return binary
    for problem in candidate.checks or (candidate.problem,):  # some are right for the main size only
        verdict = worker.run(verify_once, binary, problem, timeout_s=60)
        failure = verdict.failure if isinstance(verdict, Verdict) else verdict
        if failure is not None:
            return failure
    return None


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_and_every_pair_of_values_are_right(path, tmp_path):
    spec = load_space(path)
    if spec.dialect not in BACKENDS[CPU.backend].accepts:
        pytest.skip(f"{spec.kernel} is written in dialect {spec.dialect}, which no OpenCL device takes")
    device = backend(CPU.backend).list_devices()[CPU.index]
    # kernels that are specialised at their first launch would be compiled a second time there
    environment = cold_environment(str(tmp_path)) | {"POCL_WORK_GROUP_SPECIALIZATION": "0"}
    with ExitStack() as opened:
        pool = CompilerPool(
            compiler_opener(CPU, device, spec.compiler),
            workers=len(os.sched_getaffinity(0)),
            timeout_s=120,
            environment=environment,
        )
        opened.callback(pool.close)
        worker = Worker(CPU, spec.reference, (), environment)
        opened.callback(worker.close)
        wanted = list(candidates(spec, device))
        compiled = [pool.submit(one.source, (*one.options, UNOPTIMISED)) for one in wanted]
        wrong = {}
        for one, compilation in zip(wanted, compiled, strict=True):
            failure = what_is_wrong(worker, one, compilation.result())
            if failure is not None:
                wrong[str(one.config)] = f"{failure.status.value}: {failure.detail}"
    assert not wrong
