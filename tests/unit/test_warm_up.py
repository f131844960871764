"""How long a configuration runs before its samples count."""

import pytest

from autotune.evaluation.measure import MAX_WARMUPS, SETTLING_MS, Stopwatch


class Steady(Stopwatch):
    """Every run takes the same time, on a GPU (cold) or a CPU."""

    def __init__(self, run_ms: float, *, cold: bool) -> None:
        self._run_ms, self.on_gpu = run_ms, cold

    def _sample_ms(self) -> float:
        return self._run_ms


@pytest.mark.parametrize(
    ("run_ms", "cold", "runs"),
    [(0.5, True, 1), (0.5, False, SETTLING_MS / 0.5), (50.0, False, 1), (1e-3, False, MAX_WARMUPS)],
)
def test_a_cpu_warms_up_for_a_while_and_a_gpu_once(run_ms, cold, runs):
    assert Steady(run_ms, cold=cold).warm_up(1) == (run_ms,) * int(runs)


def test_a_first_run_on_a_cpu_may_take_longer_before_it_is_hopeless():
    assert Steady(1.0, cold=False).first_run_ms > Steady(1.0, cold=True).first_run_ms
