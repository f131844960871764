"""PoCL makes machine code before the device process needs it, and a kernel that fails there costs nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.compilers.kernel_source import read_source
from autotune.core.trials import Binary
from autotune.devices import BACKENDS, Address, backend, cold_environment
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.machine_code import MachineCode
from autotune.problem.stored_inputs import StoredInputs
from autotune.space import bind, problem_of
from tests.devices_here import pocl_here
from tests.kernel_space import spec_of


@pytest.fixture
def address():
    return Address("opencl", pocl_here())


@pytest.fixture
def instance(address, tmp_path):
    spec, device = spec_of("matadd"), backend(address.backend).list_devices()[address.index]
    space = bind(spec, device, problem_of(spec, device))
    stored = StoredInputs(spec, tmp_path)
    maker = InstanceMaker(space, read_source(spec.source), BACKENDS[address.backend].dialect, "", stored)
    return maker.make(spec.default)


@pytest.fixture
def compiled(address, tmp_path):
    """A function that compiles in one thread, and has machine code made of the binary."""
    device = backend(address.backend).list_devices()[address.index]
    environment = cold_environment(str(tmp_path))
    code = MachineCode(DeviceSetting(address, spec_of("matadd").reference), environment)
    pool = CompilerPool(
        compiler_setting(address, device, ""),
        workers=1,
        timeout_s=60,
        environment=environment,
        finish=code.make,
    )
    yield lambda one: pool.compile(one).result()
    code.close()
    pool.close()


def machine_code(folder: Path):
    return list(folder.rglob("*.so"))


def test_a_binary_comes_with_machine_code(instance, compiled, tmp_path):
    assert isinstance(compiled(instance), Binary)
    assert machine_code(tmp_path)


def test_kernels_that_crash_cost_nothing_and_the_next_one_is_made(instance, compiled, tmp_path):
    crash = "* (volatile GLOBAL int*)8 = 1;"
    crashing = replace(instance, source=instance.source[: instance.source.rindex("}")] + crash + "}")
    for _ in range(2):
        assert isinstance(compiled(crashing), Binary)
    before = set(machine_code(tmp_path))
    assert isinstance(compiled(instance), Binary)
    assert set(machine_code(tmp_path)) > before


def test_a_closed_one_starts_no_process(address, instance, tmp_path):
    code = MachineCode(DeviceSetting(address, spec_of("matadd").reference), cold_environment(str(tmp_path)))
    code.close()
    code.make(Binary(b"", "", "", 0.0), instance)
    assert not code._children
