"""What a kernel is allowed is the most that any of its launches needs."""

from dataclasses import replace

from autotune.core.records import Launch
from autotune.hardware.cuda_launch import Permissions

SMALL = Launch("sum", (1, 1, 1), (32, 1, 1), 1000, ())


def test_a_smaller_launch_takes_nothing_back():
    permissions, limits = Permissions(), {}

    def allow(step):
        permissions.allow(
            step, lambda attribute, value, what: limits.update({(step.entry, attribute): value})
        )

    large, other = replace(SMALL, shared_bytes=60_000), replace(SMALL, entry="other")
    for step, allowed in ((SMALL, [1000]), (large, [60_000]), (SMALL, [60_000]), (other, [60_000, 1000])):
        allow(step)
        assert list(limits.values()) == allowed
