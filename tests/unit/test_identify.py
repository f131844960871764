"""Which GPU is meant by what a program holds: asked of a driver library that this test builds itself."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from autotune import best_config, opencl_devices
from autotune.devices import backend
from autotune.errors import InputError
from autotune.hardware.identify import identify
from tests.cache_example import DEVICE

DRIVER = r"""
#include <string.h>
#include <unistd.h>
static int started = 0, current = -1;
int cuInit(unsigned flags) { started = getpid(); return flags; }
int cuDeviceGetCount(int *count) { *count = GPUS; return started ? 0 : 3; }
int cuDeviceGet(int *device, int number) {
    *device = number;
    return started != getpid() ? 3 : number < 0 || number >= GPUS ? 101 : 0;
}
int cuPointerGetAttribute(void *data, int attribute, size_t address) { return started != getpid() ? 3 : 1; }
int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, device ? "NVIDIA A100-SXM4-40GB" : "NVIDIA H200", length);
    return 0;
}
int cuDeviceGetAttribute(int *value, int code, int device) {
    static const int codes[] = {16, 10, 1, 97, 12, 36, 37, 38, 75, 76};
    static const int values[2][10] = {
        {132, 32, 1024, 232448, 65536, 3201000, 6016, 62914560, 9, 0},
        {108, 32, 1024, 166912, 65536, 1215000, 5120, 41943040, 8, 0}};
    for (int i = 0; i < 10; ++i) if (codes[i] == code) { *value = values[device][i]; return 0; }
    return 1;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = device ? 42949672960u : 150109880320u;
    return 0;
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuCtxGetDevice(int *device) { *device = CURRENT; return CURRENT < 0 ? 201 : 0; }
int cuDeviceGetByPCIBusId(int *device, const char *address) {
    *device = 1;
    return strcmp(address, "0000:65:00.0") ? 101 : 0;
}
"""
PROGRAM = """
import json, sys
from types import SimpleNamespace as Thing
from autotune.hardware.identify import identify
from autotune.errors import InputError
found = {}
things = {
    "none": None, "number": 1, "text": "cuda:1",
    "cuda.core": Thing(device_id=1, pci_bus_id="x"), "cupy": Thing(id=1, pci_bus_id="x"),
    "pycuda": Thing(pci_bus_id=lambda: "0000:65:00.0"), "torch": Thing(type="cuda", index=1),
    "torch, any": Thing(type="cuda", index=None), "torch.cuda.device": Thing(idx=1),
    "no such number": 7, "no such bus": Thing(pci_bus_id=lambda: "0000:00:00.0"),
}
for name, thing in things.items():
    try:
        known = identify(thing)
        found[name] = known and known.name
    except InputError as error:
        found[name] = str(error)
first = identify(0) if sys.argv[1] == "gpus" else None
found["first"] = first and {name: getattr(first, name) for name in first.__dataclass_fields__}
print(json.dumps(found))
"""


FORKING = """
import json, os
from autotune.hardware.cuda_driver import cuda_device, pointer_device
from autotune.errors import InputError
from autotune.cuda.driver import check
assert cuda_device(0).name == "NVIDIA H200" and pointer_device(4096) is None
if os.fork():
    os.wait()
else:
    found = []
    for call in (lambda: cuda_device(1), lambda: pointer_device(4096), lambda: check("the launch", 3)):
        try:
            call()
        except InputError as error:
            found.append(str(error))
    print(json.dumps(found), flush=True)
    os._exit(0)
"""


@pytest.fixture
def ask(tmp_path, root):
    """Run a program with a driver of so many GPUs, one of them current or none."""

    def run(gpus: int, current: int = -1, program: str = PROGRAM) -> dict:
        if gpus:
            source = tmp_path / "driver.c"
            source.write_text(DRIVER)
            macros = [f"-DGPUS={gpus}", f"-DCURRENT={current}"]
            library = str(tmp_path / "libcuda.so.1")
            subprocess.run(["cc", "-shared", "-fPIC", *macros, str(source), "-o", library], check=True)
        environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", program, "gpus" if gpus else "none"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    return run


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_process_forked_after_the_driver_was_used_says_so(ask):
    found = ask(2, program=FORKING)
    assert len(found) == 3
    assert all(line.startswith("CUDA was used before this process was forked") for line in found)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_every_object_is_found_by_its_number(ask):
    found = ask(2)
    kinds = ("number", "text", "cuda.core", "cupy", "pycuda", "torch", "torch.cuda.device")
    assert {found[kind] for kind in kinds} == {"NVIDIA A100-SXM4-40GB"}
    assert found["none"] == found["torch, any"] == "NVIDIA H200"
    assert found["no such number"] == "device 7: the CUDA driver shows no GPU with this number"
    assert found["no such bus"] == "device 0000:00:00.0: the CUDA driver shows no GPU at that address"
    first = found["first"]
    assert first.pop("driver")
    assert first == {
        "backend": "cuda",
        "name": "NVIDIA H200",
        "slug": "nvidia-h200",
        "kind": "gpu",
        "vendor": "NVIDIA",
        "architecture": "sm_90",
        "compute_units": 132,
        "warp_size": 32,
        "max_threads_per_block": 1024,
        "shared_bytes_per_block": 232_448,
        "registers_per_block": 65_536,
        "memory_bytes": 150_109_880_320,
        "memory_bandwidth_bytes_per_s": 4_814_304_000_000.0,
        "cache_bytes": 62_914_560,
        "has_shuffle": True,
        "runtime": "CUDA 13.0",
        "limits": "",  # only a search asks the management library
    }


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_gpu_of_the_current_context_is_the_current_one(ask):
    found = ask(2, current=1)
    assert found["none"] == found["torch, any"] == "NVIDIA A100-SXM4-40GB"


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a driver")
def test_without_a_driver_there_is_no_current_gpu(ask):
    found = ask(0)
    assert found["none"] is None
    assert found["number"] == "device 1: the CUDA driver shows no GPU with this number"


def test_an_opencl_device_is_what_a_search_calls_it():
    assert [identify(device) for device in opencl_devices()] == backend("opencl").list_devices()


def test_names_and_descriptions_stay_as_they_are():
    assert identify("NVIDIA H200") == "NVIDIA H200"
    assert identify(DEVICE) is DEVICE


def test_a_number_in_a_text_is_no_name(tmp_path):
    with pytest.raises(InputError, match="opencl's numbers; give the device's name"):
        identify("opencl:0")
    with pytest.raises(InputError, match="opencl's numbers"):
        best_config("reduce", "opencl:0", cache=tmp_path)


@pytest.mark.parametrize("thing", [True, 1.5, object(), SimpleNamespace(type="cpu", index=None)])
def test_what_is_no_device_is_refused(thing):
    with pytest.raises(InputError, match="expected a name, a slug, the number of a GPU"):
        identify(thing)
