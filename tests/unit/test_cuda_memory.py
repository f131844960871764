"""Copies to and from a GPU keep its stream's order: asked of a driver library that this test builds itself.

Its streams do nothing until somebody waits for them. What a function that names no stream was given is on the
legacy stream, and arrives when that is waited for: the latest that CUDA allows.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

DRIVER = r"""
#include <stdlib.h>
#include <string.h>
typedef unsigned long long address;
static struct { void *stream; char *to; const char *from; int byte; size_t size; } work[64];
static int count;
static int queue(void *stream, address to, const void *from, int byte, size_t size) {
    work[count].stream = stream; work[count].to = (char *)to; work[count].from = from;
    work[count].byte = byte; work[count++].size = size;
    return 0;
}
int cuStreamSynchronize(void *stream) {
    for (int i = 0; i < count; ++i)
        if (work[i].to && work[i].stream == stream) {
            if (work[i].from) memcpy(work[i].to, work[i].from, work[i].size);
            else memset(work[i].to, work[i].byte, work[i].size);
            work[i].to = 0;
        }
    return stream == (void *)13 ? 700 : 0;
}
int cuMemAlloc_v2(address *to, size_t size) {
    *to = size > 1 << 30 ? 0 : (address)malloc(size);
    return *to ? 0 : 2;
}
int cuMemFree_v2(address to) {
    for (int i = 0; i < count; ++i) cuStreamSynchronize(work[i].stream);
    free((void *)to);
    return 0;
}
int cuMemcpyHtoD_v2(address to, const void *from, size_t size) {
    return queue(0, to, memcpy(malloc(size), from, size), 0, size);
}
int cuMemcpyDtoH_v2(void *to, address from, size_t size) { memcpy(to, (void *)from, size); return 0; }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t size, void *stream) {
    return queue(stream, to, from, 0, size);
}
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t size, void *stream) {
    return queue(stream, (address)to, (void *)from, 0, size);
}
int cuMemcpyDtoDAsync_v2(address to, address from, size_t size, void *stream) {
    return queue(stream, to, (void *)from, 0, size);
}
int cuMemsetD8Async(address to, unsigned char byte, size_t size, void *stream) {
    return queue(stream, to, 0, byte, size);
}
int cuGetErrorName(int code, const char **name) {
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
}
"""
PROGRAM = """
import numpy as np
from autotune.errors import DeviceLost, OutOfMemory
from autotune.devices.cuda_memory import CudaMemory

class Gpu(CudaMemory):
    stream = 7

gpu, size = Gpu(), 3 * 4096
image, memory = gpu.allocate(size), gpu.allocate(size)
for round in range(4):
    data = np.arange(round, round + size, dtype=np.uint64).astype(np.uint8)
    gpu.fill(memory, 0xFF, size)
    gpu.write(image, data.copy())
    gpu.copy(memory, image, size)
    gpu.write(gpu.region(image, 4096, 10), np.broadcast_to(np.uint8(9), 10))
    assert np.array_equal(gpu.read(memory, size), data)
    assert gpu.read(gpu.region(image, 4096, 11), 11).tolist() == [9] * 10 + [data[4106]]
assert gpu.read(image, 0).size == 0
for failing, kind in ((lambda: gpu.allocate(2**40), OutOfMemory), (lambda: gpu.read(image, 1), DeviceLost)):
    try:
        failing()
    except kind as error:
        print(error)
    gpu.stream = 13
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_what_is_written_is_there_before_the_stream_goes_on(tmp_path, root):
    (tmp_path / "driver.c").write_text(DRIVER)
    command = ["cc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY",
        "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS",
    ]


def test_no_transfer_is_left_to_the_legacy_stream(root):
    """The functions without a stream, by the driver's names and by PyCUDA's."""
    transfer = re.compile(r"\b(?:cu)?mem(?:cpy|set)_?\w+", re.IGNORECASE)
    found = {
        f"{file.name}: {word}"
        for file in (root / "autotune").rglob("*.py")
        for word in transfer.findall(file.read_text())
        if "async" not in word.lower()
    }
    assert not found
