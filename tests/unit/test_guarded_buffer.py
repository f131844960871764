"""Arrays between guard zones: how their content comes to the device."""

from contextlib import contextmanager

import numpy as np
import pytest

from autotune.devices.fake import FakeDevice
from autotune.errors import DeviceLost, LaunchError
from autotune.evaluation import guarded_buffer
from autotune.evaluation.guarded_buffer import GuardedMemory
from autotune.evaluation.poison import GUARD_BYTES

LARGE_BYTES = 4 * GUARD_BYTES  # guard zones are not pinned
GUARD = np.full(GUARD_BYTES, 7, np.uint8)


class Pinning(FakeDevice):
    """Notes what is pinned, or refuses to pin it."""

    def __init__(self, error=None):
        super().__init__(0)
        self.error, self.pinned_bytes = error, []

    @contextmanager
    def pinned(self, data):
        self.pinned_bytes.append(data.size)
        if self.error:
            raise self.error
        yield


@pytest.mark.parametrize("error", [None, LaunchError("INVALID_VALUE"), DeviceLost("OPERATING_SYSTEM")])
def test_large_content_is_pinned_where_the_driver_can(monkeypatch, error):
    monkeypatch.setattr(guarded_buffer, "PINNED_BYTES", LARGE_BYTES)
    device = Pinning(error)
    for content in (
        np.arange(LARGE_BYTES).astype(np.uint8),
        np.arange(LARGE_BYTES - 1).astype(np.uint8),
        np.broadcast_to(np.uint8(3), LARGE_BYTES),  # takes one byte
    ):
        memory = GuardedMemory(device, content.size)
        memory.write(content, GUARD)
        assert np.array_equal(memory.read(0, content.size), content)
        assert all(np.array_equal(zone, GUARD) for zone in memory.guards())
    assert device.pinned_bytes == [LARGE_BYTES]
