"""What no run on PoCL shows of the shipped kernels: races that its order of threads hides, and code for GPUs.

A landmark for each, bound to a GPU and run as C++ on the CPU under the sanitizers of g++.
"""

from dataclasses import replace

import pytest

from autotune.checks.deadline import Deadline
from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.compilers.kernel_source import read_source
from autotune.core.checks import PASSED
from autotune.evaluation.instance import InstanceMaker
from tests.kernel_space import GPU, bound, spec_of

CUDA = replace(GPU, backend="cuda", architecture="sm_90")


@pytest.mark.parametrize(
    ("kernel", "landmark"),
    [
        ("reduce", "reduce1_block_atomic"),  # a cell that thread 0 clears: PoCL runs thread 0 first
        ("bicgk", "bicgk3_fused_shared_sums"),  # a barrier after a loop, which PoCL has there anyway
        ("reduce", "reduce6_last_warp"),  # barriers of a warp
        ("matmul", "matmul11_wide_pipeline"),  # copies in the background, patches of warps, groups of blocks
    ],
)
def test_a_landmark_has_no_race_and_stays_inside(kernel, landmark):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    spec = spec_of(kernel)
    (config,) = (mark.config for mark in spec.landmarks if mark.name == landmark)
    instance = InstanceMaker(bound(spec, CUDA), read_source(spec.source), "cuda", {}).make(config)
    assert host.check(instance.source, instance.verify_workloads, Deadline()) is PASSED
