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
