"""A kernel that repeats with two arrays exchanged: what its call returns, and what an odd count says."""

import re

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

from autotune import load_kernel, opencl_devices
from autotune.core.launch_plan import launches
from autotune.core.records import LaunchSpec
from autotune.errors import SpaceError
from autotune.space import load_space
from tests.conftest import run_in_process

SOURCE = """\
__kernel void heat(__global const float *u, __global float *v, int n) {
    int i = get_global_id(0);
    if (i > 0 && i < n - 1) v[i] = u[i] + 0.1f * (u[i - 1] - 2 * u[i] + u[i + 1]);
}
"""
REFERENCE = """\
def reference(inputs, sizes):
    u = inputs["u"].astype("float64")
    for _ in range(sizes["steps"]):
        u[1:-1] = u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return {"u": u}
"""
SPACE = """\
schema: 1
kernel: heat
dialect: opencl
source: heat.cl
reference: heat.py
sizes: {default: {n: 5000, steps: 21}}
verify_sizes: [{n: 1}, {n: 257, steps: 4}, {n: 129, steps: 1}]
parameters: {BLOCK: [64, 128]}
default: {BLOCK: 64}
arguments:
  - {name: u, dtype: float32, shape: [n], role: inout, fill: {uniform: [0, 1]}}
  - {name: v, dtype: float32, shape: [n], role: inout, fill: {copy: u}}
  - {name: n, dtype: int32, value: n}
launch:
  - entry: heat
    grid: ["ceil_div(n, BLOCK)"]
    block: [BLOCK]
    arguments: [u, v, n]
    repeat: steps
    swap: [u, v]
call: {inputs: [u], returns: u}
verify: {rtol: 1e-5, atol: 1e-6}
"""


@pytest.fixture
def heat(tmp_path):
    """Write the kernel; with a text of the space."""
    (tmp_path / "heat.cl").write_text(SOURCE)
    (tmp_path / "heat.py").write_text(REFERENCE)

    def written(space=SPACE):
        (tmp_path / "heat.yaml").write_text(space)
        return tmp_path

    return written


@pytest.fixture
def queue():
    context = cl.Context(opencl_devices()[:1])
    yield cl.CommandQueue(context)  # a queue need not keep its context


def after(u, steps):
    """What a number of steps make of an array."""
    names = {}
    exec(REFERENCE, names)
    return names["reference"]({"u": u}, {"steps": steps})["u"]


def test_a_call_returns_the_array_that_it_got_with_the_result_of_any_number_of_steps(heat, queue):
    folder = heat()
    done = run_in_process(folder, "search", "heat.yaml", "--device", "opencl", "--budget", "2")
    assert done.returncode == 0 and "output v" not in done.stdout + done.stderr, done.stdout + done.stderr
    kernel = load_kernel("heat", cache=folder / "cache", source=folder / "heat.cl")
    for steps in (1, 2, 20, 21):
        u = np.random.default_rng(steps).random(1000, "float32")
        expected = after(u, steps)
        on_device = cl_array.to_device(queue, u)
        assert kernel(on_device, steps=steps) is on_device
        assert np.allclose(on_device.get(), expected, 1e-5)
        assert kernel.bind(on_device, steps=steps)() is on_device
        assert np.allclose(on_device.get(), after(expected.astype("float32"), steps), 1e-5)
        assert kernel(u, steps=steps) is u and np.allclose(u, expected, 1e-5)
    both = [cl_array.to_device(queue, u) for _ in range(2)]
    event = kernel(*both, steps=1)
    event.wait()
    assert np.allclose(both[0].get(), after(u, 1), 1e-5)


def test_the_result_is_where_the_call_returns_it_for_every_number_of_launches():
    step = LaunchSpec("step", ("1",), ("1",), ("u", "v"), repeat="N", swap=("u", "v"), result="u")
    for count in range(1, 5):
        written = [one.arguments[1] for one in launches([step], {"N": count})]
        assert written == [["u"], ["v", "u"], ["u", "v", "u"], ["v", "u", "v", "u"]][count - 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "role: inout, fill: {copy: u}",
            "role: scratch",
            "call.returns: u swaps with v, which has the result after an odd number of repetitions; give v "
            "`role: inout` and `fill: {copy: u}`: then either may come first",
        ),
        (
            "inputs: [u]",
            "inputs: [u, v]",
            "give v `role: inout` and `fill: {copy: u}`: then either may come first",
        ),
        (
            "returns: u}",
            "returns: v}",
            "call.returns: v is inout: a call returns it where it is among the inputs",
        ),
    ],
)
def test_a_call_that_cannot_return_the_result_is_told_what_it_needs(heat, old, new, message):
    with pytest.raises(SpaceError) as error:
        load_space(heat(SPACE.replace(old, new)) / "heat.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize("fill", ["[0, 1]", "[1, 1.0001]"], ids=["far off", "as by rounding"])
def test_a_result_in_the_other_array_is_told_as_such(heat, fill):
    space = SPACE.replace("call: {inputs: [u], returns: u}\n", "").replace("1e-5, atol: 1e-6", "2e-6")
    folder = heat(space.replace("[0, 1]", fill))
    done = run_in_process(folder, "search", "heat.yaml", "--device", "opencl", "--budget", "2")
    assert "; v has the values expected of u (at n=" in done.stderr, done.stderr
    assert "heat.yaml:20: the default configuration fails" in done.stderr
    assert "help: the result is in v after an odd number of repetitions" in done.stderr
    assert "`call: {inputs: [u], returns: u}`" in done.stderr and "rounding" not in done.stderr


def test_two_outputs_that_are_exchanged_are_told_as_such(heat):
    plain = SPACE.replace("role: inout, fill: {copy: u}", "role: out").replace(", steps: 21", "")
    kept = [line for line in plain.splitlines() if not re.match(r" *(verify_sizes|repeat|swap|call):", line)]
    folder = heat("\n".join(kept))
    (folder / "heat.cl").write_text(
        "__kernel void heat(__global float *u, __global float *v, int n) {\n"
        "    int i = get_global_id(0);\n    if (i < n) { v[i] = u[i] + 1; u[i] = u[i] * 2; }\n}\n"
    )
    (folder / "heat.py").write_text(
        "def reference(inputs, sizes):\n    return {'u': inputs['u'] + 1, 'v': inputs['u'] * 2}\n"
    )
    done = run_in_process(folder, "search", "heat.yaml", "--device", "opencl", "--budget", "2")
    said = "help: the kernel writes to v what `reference` in heat.py gives for u: exchange them"
    assert said in done.stderr, done.stderr
