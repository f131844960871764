"""How many configurations the next job has."""

from concurrent.futures import Future

import pytest

from autotune.core.stages import Stage, unobserved
from autotune.evaluation.jobs import Jobs, RunningItem


class Devices:
    """Devices that never finish a job."""

    stage = Stage("measuring")

    def __init__(self, count, slots, job_items):
        self.count, self.slots, self.job_items = count, slots, job_items

    def submit(self, items, timeout_s):
        return Future()


ONE = (1, 1, 1)
FLEET = (2, 4, 10)


@pytest.mark.parametrize(
    ("devices", "running", "ready", "has_more", "count"),
    [
        (ONE, 0, 0, True, 0),
        (ONE, 0, 3, True, 1),
        (ONE, 1, 3, True, 0),  # the device is busy
        (FLEET, 0, 1, True, 1),
        (FLEET, 0, 12, True, 3),
        (FLEET, 1, 80, True, 10),  # no job has more
        (FLEET, 2, 12, False, 6),
        (FLEET, 2, 9, True, 0),  # both are busy: the job can wait for a tenth
        (FLEET, 2, 9, False, 4),
        (FLEET, 4, 12, False, 0),
    ],
)
def test_a_job_has_a_fair_share_and_waits_for_more_while_all_devices_are_busy(
    devices, running, ready, has_more, count
):
    jobs = Jobs(Devices(*devices), 30.0, lambda _: None, unobserved)
    for _ in range(running):
        jobs.begin([RunningItem(None, None, None)])
    assert jobs.next_count(ready, has_more) == count
