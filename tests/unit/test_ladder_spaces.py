"""What every space with a ladder has: enough configurations, its steps in order, and nothing for lint."""

import pytest

from tests.kernel_space import CPU, GPU, bound, findings, invalid_landmarks, spec_of, steps

LADDERS = [
    ("bicgk", 8000, 7),
    ("divergence", 1000, 7),
    ("matadd", 1000, 6),
    ("transpose", 2000, 7),
]


@pytest.mark.parametrize(("kernel", "least", "count"), LADDERS, ids=[kernel for kernel, *_ in LADDERS])
def test_a_ladder_has_its_steps_and_enough_around_them(kernel, least, count):
    spec = spec_of(kernel)
    assert min(len(bound(spec, device)) for device in (GPU, CPU)) >= least
    assert invalid_landmarks(spec) == []
    assert steps(spec) == list(range(count))
    assert findings(spec) == ()
