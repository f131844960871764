"""Several processes share a GPU: what one has written is there before it is copied on."""

import os
import subprocess
import sys

import pytest

from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

PROCESSES = 8
PROGRAM = """
import sys
import numpy as np
from autotune.devices import backend

device, wrong = backend(sys.argv[1]).open_device(0), 0
for round in range(500):  # new memory each time, as for each problem of a search
    size = 1 + 4099 * (1 + round % 60)
    data = np.random.default_rng(round).integers(0, 256, size, np.uint8)
    image, memory = device.allocate(size), device.allocate(size)
    device.fill(image, 0, size)
    device.write(image, data)
    device.copy(memory, image, size)
    wrong += not np.array_equal(device.read(memory, size), data)
print(wrong)
"""


@pytest.mark.parametrize("name", ["cuda", "pycuda"])
def test_no_copy_overtakes_what_it_copies(name, root):
    devices_here(name)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", PROGRAM, name]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESSES)
    ]
    assert [process.communicate(timeout=300)[0].strip() for process in running] == ["0"] * PROCESSES
