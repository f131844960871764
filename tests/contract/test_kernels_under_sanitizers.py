"""What no run on PoCL shows of the shipped kernels: races that its order of threads hides, and code for GPUs.

A landmark for each, bound to a GPU and run on the CPU under the sanitizers of g++.
"""

import pytest

from autotune.analysis.host_run import run_on_host
from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.core.outcomes import PASSED
from autotune.tuning.task import Target
from tests.kernel_space import spec_of


@pytest.mark.parametrize(
    ("kernel", "landmark"),
    [
        ("reduce", "reduce1_block_atomic"),  # a cell that thread 0 clears: PoCL runs thread 0 first
        ("bicgk", "bicgk3_fused_shared_sums"),  # a barrier after a loop, which PoCL has there anyway
        ("reduce", "reduce6_last_warp"),  # barriers of a warp
        ("matmul", "matmul11_wide_pipeline"),  # copies in the background, patches of warps, groups of blocks
    ],
)
def test_a_landmark_is_right_has_no_race_and_stays_inside(kernel, landmark):
    if find_host_sanitizer() is None:
        pytest.skip("needs g++")
    spec = spec_of(kernel)
    (config,) = (mark.config for mark in spec.landmarks if mark.name == landmark)
    (found,) = run_on_host(Target(spec.path, "sm_90"), 600.0, config, at_tiles=False).runs
    assert found.outcome is PASSED
