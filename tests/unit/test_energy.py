"""Energy of a run: what restoring its arrays takes is not charged to it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from autotune.core.records import Launch
from autotune.core.trials import Problem
from autotune.devices import backend, fake
from autotune.evaluation.buffers import GUARD_BYTES, ProblemBuffers, SharedBuffers
from autotune.evaluation.measure import ENERGY_RESOLUTION, Stopwatch
from autotune.problem.inputs import prepare
from autotune.problem.problem_instance import Array, ProblemInstance

N = 2**20
RESTORE_J = (4 * N + 2 * GUARD_BYTES) * 1e-9  # as the fake device counts it


@pytest.fixture
def used_j(tmp_path, monkeypatch):
    """What a run of so many ms at 1 W takes, in J, by the stopwatch. A clock multiplies that of copies."""
    reference = tmp_path / "reference.py"
    reference.write_text("def reference(inputs, sizes):\n    return {}\n")
    arrays = (Array("w", "float32", (N,), "inout", ("constant", 1)),)
    launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("w",))
    problem = ProblemInstance(Problem({"n": N}, "float32"), arrays, (), (launch,))
    device = backend("fake").open_device(0)
    shared = SharedBuffers(device, prepare(problem, reference))
    copy_j = fake.COPY_J_PER_BYTE

    def apply(settings):
        monkeypatch.setattr(fake, "COPY_J_PER_BYTE", copy_j * dict(settings)["sm_clock_mhz"])

    device.clocks = SimpleNamespace(apply=apply)

    def measured(run_ms, repeatable, settings=()):
        source = f"def kernel(grid, block, w):\n    w[:] = 0\n    return {run_ms}\n"
        program = device.load(backend("fake").open_compiler(0).compile(source, ()))
        buffers = ProblemBuffers(replace(problem, settings=settings), shared)
        stopwatch = Stopwatch(program, buffers, changed=() if repeatable else None)
        return stopwatch.energy_j(run_ms, 0.02)

    return measured


@pytest.mark.parametrize("repeatable", [True, False])
def test_the_energy_is_that_of_the_run(used_j, repeatable):
    assert used_j(10.0, repeatable) == pytest.approx(0.01)


def test_restoring_takes_another_energy_at_another_clock(used_j):
    for clock in (1, 3):
        assert used_j(10.0, False, (("sm_clock_mhz", clock),)) == pytest.approx(0.01)


def test_a_run_that_its_restore_drowns_is_charged_what_can_be_told(used_j):
    assert used_j(0.001, False) == pytest.approx(ENERGY_RESOLUTION * (RESTORE_J + 1e-6))
