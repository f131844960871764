"""OpenCL finds the CPU through the runtime that pip installs, beside what the system and the user have."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from autotune.devices import Address
from autotune.devices.listing import _working
from autotune.devices.opencl_platforms import PACKAGE
from autotune.devices.trial_kernel import device_fault
from autotune.errors import SetupError
from tests.devices_here import devices_here

PROGRAM = """
import json, os, pyopencl
before = dict(os.environ)
from autotune import opencl_devices
found = [(device.platform.name, device.name) for device in opencl_devices()]
again = [(device.platform.name, device.name) for device in opencl_devices()]
platforms = sorted((platform.name for platform in pyopencl.get_platforms()), key=len)
same = found == again and before == dict(os.environ)
print(json.dumps({"found": found, "same": same, "platforms": platforms}))
"""
# A driver with one platform and no device: the table has its functions in the order of OpenCL's interface
DRIVER = r"""
#include <string.h>
typedef struct { void **functions; } platform_t;
static int info(void *platform, unsigned name, size_t size, void *value, size_t *needed)
{
    const char *text = name == 0x0902 ? "A driver of the user" : name == 0x0904 ? "cl_khr_icd" : "OpenCL 1.2";
    if (name == 0x0920)
        text = "TEST";
    if (value)
        memcpy(value, text, strlen(text) + 1);
    if (needed)
        *needed = strlen(text) + 1;
    return 0;
}
static int devices(void *platform, unsigned long kind, unsigned count, void **found, unsigned *number)
{
    if (number)
        *number = 0;
    return -1;
}
static void *table[256] = {0, (void *)info, (void *)devices};
static platform_t platform = {table};
int clIcdGetPlatformIDsKHR(unsigned count, void **found, unsigned *number)
{
    if (found)
        *found = &platform;
    if (number)
        *number = 1;
    return 0;
}
void *clGetExtensionFunctionAddress(const char *name)
{
    return strcmp(name, "clIcdGetPlatformIDsKHR") ? 0 : (void *)clIcdGetPlatformIDsKHR;
}
int clGetPlatformInfo(void *which, unsigned name, size_t size, void *value, size_t *needed)
{
    return info(which, name, size, value, needed);
}
"""
NOWHERE = Address("opencl", 99)


def asked(root, **variables):
    environment = os.environ | {"PYTHONPATH": str(root)} | variables
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture
def runtime():
    try:
        return distribution(PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed")


def test_the_installed_runtime_comes_first_and_leaves_the_environment_as_it_was(root, runtime):
    answer = asked(root)
    assert answer["found"][0][0] == "Intel(R) OpenCL"
    assert answer["same"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_drivers_in_a_folder_of_the_user_are_seen_beside_it(root, runtime, tmp_path):
    (tmp_path / "driver.c").write_text(DRIVER)
    library = tmp_path / "driver.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "driver.c", "-o", library], check=True)
    (tmp_path / "own.icd").write_text(f"{library}\n")
    answer = asked(root, OCL_ICD_VENDORS=str(tmp_path))
    assert answer["platforms"] == ["Intel(R) OpenCL", "A driver of the user"]
    assert [platform for platform, _ in answer["found"]] == ["Intel(R) OpenCL"]  # the other lists no device


def test_a_kernel_runs_on_every_device_here():
    faults = [device_fault(Address("opencl", index)) for index, _ in enumerate(devices_here("opencl"))]
    assert "" in faults


def test_a_device_that_runs_no_kernel_is_passed_over_and_named():
    (info, *_) = devices_here("opencl")
    broken, good = (NOWHERE, replace(info, name="Broken")), (Address("opencl", 0), info)
    with pytest.warns(UserWarning, match=r"not used, because it cannot run a kernel: opencl:99 \(Broken, "):
        assert _working(None, [broken, good]) == good
    assert _working("Broken", [broken, good]) == broken  # whoever names it gets it
    with pytest.raises(SetupError, match=r"no device works: opencl:99 \(Broken, "):
        _working(None, [broken])


# A driver with a GPU of AMD and one of Intel, each of which answers its own vendor's queries only
GPUS = r"""
#include <string.h>
typedef struct { void **functions; int number; } object_t;
static void *table[256];
static object_t platform = {table, 0}, gpus[2] = {{table, 0}, {table, 1}};
static int text(const char *answer, size_t size, void *value, size_t *needed)
{
    if (value)
        memcpy(value, answer, strlen(answer) + 1);
    if (needed)
        *needed = strlen(answer) + 1;
    return 0;
}
int clGetPlatformInfo(void *which, unsigned name, size_t size, void *value, size_t *needed)
{
    const char *answer = name == 0x0902 ? "GPUs" : name == 0x0904 ? "cl_khr_icd" : "OpenCL 3.0";
    return text(name == 0x0920 ? "TEST" : answer, size, value, needed);
}
static int devices(void *which, unsigned long kind, unsigned count, void **found, unsigned *number)
{
    for (unsigned i = 0; found && i < count && i < 2; i++)
        found[i] = &gpus[i];
    if (number)
        *number = 2;
    return 0;
}
static int device(object_t *which, unsigned name, size_t size, void *value, size_t *needed)
{
    int is_amd = which->number == 0;
    const char *chip = is_amd ? "gfx1100:xnack-" : "Intel(R) Arc(TM) B580 Graphics";
    const char *vendor = is_amd ? "Advanced Micro Devices, Inc." : "Intel(R) Corporation";
    unsigned long number = 0;
    switch (name) {
    case 0x102B: return text(chip, size, value, needed);
    case 0x102C: return text(vendor, size, value, needed);
    case 0x102D: return text("1.0", size, value, needed);
    case 0x102F: return text("OpenCL 3.0", size, value, needed);
    case 0x1030: return text("cl_khr_fp16", size, value, needed);
    case 0x4038: return is_amd ? text("AMD Radeon RX 7900 XTX", size, value, needed) : -30;
    case 0x1067: number = is_amd ? 32 : 16; break; // the width of a wavefront, or of a sub-group
    case 0x1000: number = 4; break;
    case 0x1002: number = is_amd ? 48 : 20; break;
    case 0x1004: number = 1024; break;
    case 0x1023: number = is_amd ? 65536 : 131072; break;
    case 0x101F: number = 1ul << 34; break;
    case 0x101E: number = 1ul << 22; break;
    case 0x1031: number = (unsigned long)&platform; break;
    default: return -30;
    }
    if (!number)
        return -30;
    if (value)
        memcpy(value, &number, size < 8 ? size : 8);
    if (needed)
        *needed = name == 0x1002 ? 4 : 8;
    return 0;
}
static long nothing(void) { return 0; }
int clIcdGetPlatformIDsKHR(unsigned count, void **found, unsigned *number)
{
    for (int i = 0; i < 256; i++)
        table[i] = (void *)nothing;
    table[1] = (void *)clGetPlatformInfo;
    table[2] = (void *)devices;
    table[3] = (void *)device;
    if (found)
        *found = &platform;
    if (number)
        *number = 1;
    return 0;
}
void *clGetExtensionFunctionAddress(const char *name)
{
    return strcmp(name, "clIcdGetPlatformIDsKHR") ? 0 : (void *)clIcdGetPlatformIDsKHR;
}
"""
DESCRIBE = """
import json
from dataclasses import asdict
import pyopencl
from autotune.hardware.identify import opencl_device
(platform,) = (one for one in pyopencl.get_platforms() if one.name == "GPUs")
found = [opencl_device(device) for device in platform.get_devices()]
print(json.dumps([[one.name, one.architecture, one.warp_size, one.shared_bytes_per_block] for one in found]))
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_gpus_of_amd_and_intel_tell_their_board_chip_warp_and_local_memory(root, tmp_path):
    (tmp_path / "driver.c").write_text(GPUS)
    library = tmp_path / "driver.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "driver.c", "-o", library], check=True)
    (tmp_path / "own.icd").write_text(f"{library}\n")
    environment = os.environ | {"PYTHONPATH": str(root), "OCL_ICD_VENDORS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", DESCRIBE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["AMD Radeon RX 7900 XTX", "gfx1100", 32, 65_536],
        ["Intel Arc B580 Graphics", "Intel Arc B580 Graphics", 16, 131_072],
    ]
