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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long address;
int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
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
struct attribute { int id; char pad[4]; unsigned value[16]; };
struct config {
    unsigned grid[3], block[3], shared_bytes; void *stream; struct attribute *attributes; unsigned count;
};
int cuCtxPushCurrent_v2(void *context) { return 0; }
int cuCtxPopCurrent_v2(void **context) { return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cuModuleLoadData(void **to, void *code) { *to = code; return 0; }
int cuModuleUnload(void *module) { return 0; }
int cuModuleGetFunction(void **to, void *module, const char *name) { *to = "K"; return 0; }
int cuModuleGetGlobal_v2(address *to, size_t *size, void *module, const char *name) {
    *to = 77;
    *size = 4;
    return 0;
}
int cuFuncSetAttribute(void *kernel, int attribute, int value) {
    printf("attribute %d=%d of %s\n", attribute, value, (char *)kernel);
    return 0;
}
int cuLaunchKernelEx(const struct config *c, void *kernel, void **arguments, void **extra) {
    const unsigned *g = c->grid, *b = c->block;
    printf("%s<<<%u %u %u, %u %u %u, ", (char *)kernel, g[0], g[1], g[2], b[0], b[1], b[2]);
    printf("%u, %p>>>", c->shared_bytes, c->stream);
    printf("(%llx %d %.1f)", *(address *)arguments[0], *(short *)arguments[1], *(double *)arguments[2]);
    for (unsigned i = 0; i < c->count; ++i)
        printf(" %d: %u %u %u", c->attributes[i].id, c->attributes[i].value[0], c->attributes[i].value[1],
               c->attributes[i].value[2]);
    puts("");
    return fflush(stdout) || extra ? 1 : 0;
}
int cuGetErrorName(int code, const char **name) {
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
}
"""
PROGRAM = """
from ctypes import c_void_p
import numpy as np
from autotune.errors import DeviceLost, OutOfMemory
from autotune.devices.cuda_memory import CudaMemory

class Gpu(CudaMemory):
    context, stream = c_void_p(3), c_void_p(7)

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
    gpu.stream = c_void_p(13)

from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.cuda.module import Module
from autotune.devices.cuda_arrays import CudaArrays
from autotune.errors import LaunchError

module = Module(Binary(b"cubin", "", "", 0.0), c_void_p(3), stays=False)
plain = Launch("scale", (1, 2, 3), (4, 5, 6), 70, ("x", "n", "by"))
special = Launch("scale", (32, 1, 1), (8, 1, 1), 0, ("x", "n", "by"), True, (16, 1, 1), True)
for step in (plain, special):
    arguments = {"x": 0xABC0000000, "n": np.int16(-7), "by": np.float64(2.5)}
    CudaArrays.launch(gpu, module, step, arguments, c_void_p(9))()
print(module.variable("v"))
try:
    module.variable("v", 5)
except LaunchError as error:
    print(error)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_what_is_written_is_there_before_the_stream_goes_on(tmp_path, root):
    (tmp_path / "driver.c").write_text(DRIVER)
    command = ["cc", "-shared", "-fPIC", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | {"PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1,099,511,627,776 bytes: CUDA_ERROR_OUT_OF_MEMORY",
        "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS",
        "attribute 8=70 of K",
        "K<<<1 2 3, 4 5 6, 70, 0x9>>>(abc0000000 -7 2.5)",
        "attribute 14=1 of K",
        "K<<<32 1 1, 8 1 1, 0, 0x9>>>(abc0000000 -7 2.5) 2: 1 0 0 4: 16 1 1 6: 1 0 0",
        "(77, 4)",
        "v: the array has 5 bytes, the variable 4",
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
