"""A cached configuration is compiled and called with a program's own arrays, here those of pyopencl."""

import gc
import json
import math
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

from autotune import StaleWarning, best_config, load_kernel, opencl_devices
from autotune.compilers.base import driver_compiler
from autotune.compilers.source_text import packaged, read_source
from autotune.core.records import ArgumentSpec, Config, LaunchSpec, Parameter, Tier
from autotune.errors import CacheError, InputError, LaunchError, NoConfig, SetupError
from autotune.hardware.identify import identify
from autotune.runtime import opencl
from autotune.runtime.background_tuning import BackgroundTuning
from autotune.runtime.opencl import OpenCLLauncher
from autotune.runtime.prepared import CallPlan, Workspace
from tests.cache_example import PROVENANCE, entry, record
from tests.cache_files import write

SOURCE = """\
#include "portable.h"

KERNEL scale(GLOBAL const DTYPE *x, GLOBAL DTYPE *part, DTYPE factor, int n)
{
    const int i = BLOCK_INDEX(x) * BLOCK + THREAD_INDEX(x);
    if (i < n) part[i] = factor * x[i];
}

KERNEL add(GLOBAL const DTYPE *part, GLOBAL DTYPE *out, int m, int n)
{
    const int row = BLOCK_INDEX(x) * BLOCK + THREAD_INDEX(x);
    if (row >= m) return;
    DTYPE sum = 0;
    for (int column = 0; column < n / m; ++column) sum += part[row * (n / m) + column];
    out[row] = sum;
}
"""


@pytest.fixture(scope="module")
def context():
    return cl.Context(opencl_devices()[:1])


@pytest.fixture(scope="module")
def queue(context):
    return cl.CommandQueue(context)


@pytest.fixture
def rows(tmp_path, queue, monkeypatch):
    """A kernel that sums the rows of a matrix times a factor, with one result for this device."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    path = tmp_path / "kernels/rows.cu"
    path.write_text(SOURCE)
    origin = replace(PROVENANCE, source_sha256=read_source(path).sha256)
    device = identify(queue.device)
    origin = replace(origin, driver=device.driver, runtime=device.runtime, compiler=driver_compiler(device))
    found = replace(
        entry(1, provenance=origin), sizes={"rows": 8, "columns": 32}, config=Config({"BLOCK": 64})
    )
    held = replace(
        record(found, kernel="rows", default=Config({"BLOCK": 32})),
        parameters=(Parameter("BLOCK", (32, 64, 128)),),
        constraints=("BLOCK <= device.max_threads_per_block",),
        derived={"n": "rows * columns"},
        compiler_options={},
        arguments=(
            ArgumentSpec("x", "DTYPE", "in", ("rows", "columns")),
            ArgumentSpec("part", "DTYPE", "scratch", ("n",)),
            ArgumentSpec("out", "DTYPE", "out", ("rows",)),
            ArgumentSpec("unused", "uint32", "inout", ("1",)),
            ArgumentSpec("factor", "DTYPE", "scalar", value="2"),
            ArgumentSpec("m", "int32", "scalar", value="rows"),
            ArgumentSpec("n", "int32", "scalar", value="n"),
        ),
        launch=(
            LaunchSpec("scale", ("ceil_div(n, BLOCK)",), ("BLOCK",), ("x", "part", "factor", "n")),
            LaunchSpec("add", ("ceil_div(rows, BLOCK)",), ("BLOCK",), ("part", "out", "m", "n")),
        ),
    )
    return write(tmp_path / "cache", device, held)


def matrix(rows: int, columns: int, dtype="int32"):
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_grid_scratch_and_sizes_follow_from_the_arrays(rows, queue, dtype):
    kernel = load_kernel("rows")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((8, 32), (3, 100), (100, 4)):
            x = matrix(*shape, dtype)
            out = cl_array.zeros(queue, shape[0], dtype)
            kernel(cl_array.to_device(queue, x), out).wait()
            assert (out.get() == 2 * x.sum(axis=1)).all()


def test_a_size_follows_from_an_array_with_one_element_more(rows, queue):
    """As the rows of a sparse matrix do from its row pointers."""
    stored = json.loads(rows.read_text())
    shapes = {"x": ["n"], "unused": ["columns + 1"]}
    for argument in stored["arguments"]:
        argument["shape"] = shapes.get(argument["name"], argument.get("shape"))
    rows.write_text(json.dumps(stored))
    kernel = load_kernel("rows")
    x, out = cl_array.arange(queue, 32, dtype=np.int32), cl_array.zeros(queue, 4, np.int32)
    kernel(x, out, cl_array.zeros(queue, 9, np.uint32)).wait()
    assert (out.get() == 2 * x.get().reshape(4, 8).sum(axis=1)).all()
    with pytest.raises(InputError, match=r"x: expected int32 of shape \(28,\)"):
        kernel(x, out, cl_array.zeros(queue, 8, np.uint32))


def test_a_size_follows_from_an_array_with_a_multiple_of_its_elements(rows, queue):
    """As the number of small matrices does from all their elements."""
    stored = json.loads(rows.read_text())
    shapes = {"x": ["8 * rows"], "out": ["rows * 1"], "unused": ["2 * columns + 1"]}
    for argument in stored["arguments"]:
        argument["shape"] = shapes.get(argument["name"], argument.get("shape"))
    rows.write_text(json.dumps(stored))
    kernel = load_kernel("rows")
    x, out = cl_array.arange(queue, 32, dtype=np.int32), cl_array.zeros(queue, 4, np.int32)
    kernel(x, out, cl_array.zeros(queue, 17, np.uint32)).wait()
    assert (out.get() == 2 * x.get().reshape(4, 8).sum(axis=1)).all()
    with pytest.raises(InputError, match=r"x: expected int32 of shape \(24,\)"):
        kernel(x[:31], out, cl_array.zeros(queue, 17, np.uint32))


def test_sizes_have_the_names_of_the_newest_result(rows, queue):
    """As after a size was renamed in the space: results of the former names stay in the file."""
    stored = json.loads(rows.read_text())
    (newest,) = stored["entries"]
    older = newest["provenance"] | {"tuned_at": "2020-01-01T00:00:00+00:00"}
    stored["entries"] = [{**newest, "sizes": {"length": 8, "width": 32}, "provenance": older}, newest]
    rows.write_text(json.dumps(stored))
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    load_kernel("rows")(x, out).wait()
    assert (out.get() == 2 * x.get().sum(axis=1)).all()


def test_arrays_and_scalars_may_be_named_and_buffers_need_sizes_and_a_queue(rows, queue):
    kernel = load_kernel("rows")
    x = matrix(4, 16)
    source = cl.Buffer(queue.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    target = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 16)
    out = np.empty(4, np.int32)
    event = kernel(out=target, x=source, factor=5, rows=4, columns=16, stream=queue)
    cl.enqueue_copy(queue, out, target, wait_for=[event])
    assert (out == 5 * x.sum(axis=1)).all()
    with pytest.raises(InputError, match="rows: no array's shape gives columns, rows; pass columns="):
        kernel(source, target, stream=queue)
    with pytest.raises(InputError, match=r"rows: x: expected int32 of shape \(9, 16\), 576 bytes, found 256"):
        kernel(source, target, rows=9, columns=16, stream=queue)
    with pytest.raises(InputError, match="have no queue; pass one as stream="):
        kernel(source, target, rows=4, columns=16)


def test_what_does_not_fit_is_said_before_anything_is_launched(rows, queue):
    kernel = load_kernel("rows")
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)

    def complaint(*arrays, **named) -> str:
        with pytest.raises(InputError) as caught:
            kernel(*arrays, **named)
        assert caught.value.__context__ is None or caught.value.__suppress_context__  # one traceback only
        return str(caught.value)

    assert complaint(x, cl_array.zeros(queue, 7, np.int32)) == (
        "rows: out has shape (7,), so rows would be 7, but it is 8"
    )
    assert complaint(x, out, rows=9).startswith("rows: x has shape (8, 32), so rows would be 8, but it is 9")
    assert complaint(x.ravel(), out) == (
        "rows: no array's shape gives columns; x has shape (256,), but the space declares [rows, columns]: "
        "reshape it, or pass columns=..."
    )
    assert "out: expected int32 of shape (8,), found float32" in complaint(x, out.astype(np.float32))
    assert "out: expected int32 of shape (8,), found none" in complaint(x)
    assert complaint(x[:, ::2], out) == "rows: x: is not contiguous, or does not begin where its buffer does"
    assert complaint(x, out, x=x).startswith("rows: x is given twice")
    assert complaint(x, out, speed=3).startswith("rows: speed is unknown; expected some of x, out")
    assert "x, out, unused; 4 were given; numbers are given by name: factor=..." in (
        complaint(x, out, None, None)
    )
    assert "dtype 'float64': expected one of int32, float32" in complaint(x.astype(np.float64), out)
    hosts = complaint(matrix(8, 32), np.zeros(8, np.int32), stream=queue)
    assert hosts.startswith(
        "numpy arrays run on the CPU in a plain call, without stream= and bind(); here, pass"
    )
    mixed = complaint(x, np.zeros(8, np.int32))
    assert mixed.startswith("rows: out: a numpy array is not on the device; copy it there first")
    assert complaint() == "rows: takes the arrays x, out, unused; none were given"
    swapped = cl_array.to_device(queue, matrix(8, 32, ">i4"))
    assert complaint(swapped, out) == (
        "rows: x: has bytes in the other order (>i4); copy it from x.astype('int32')"
    )


def test_memory_of_another_context_and_images_are_refused(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context)
    kernel = load_kernel("rows")
    kernel(x, out)  # a call that fits comes first: others must not be taken for it
    with pytest.raises(InputError, match="rows: out and x are on different devices or in different contexts"):
        kernel(x, cl_array.zeros(other, 8, np.int32))
    with pytest.raises(InputError, match="the queue and the arrays are in different contexts"):
        kernel(x, out, stream=other)
    pixels = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
    image = cl.create_image(queue.context, cl.mem_flags.READ_WRITE, pixels, shape=(8, 32))
    with pytest.raises(InputError, match="rows: x: expected an Array or a Buffer of pyopencl, found Image"):
        kernel(image, out, rows=8, columns=32)


def test_arrays_of_numpy_run_on_the_cpu_and_outputs_are_changed_in_place(rows):
    kernel = load_kernel("rows")
    x, out = matrix(8, 32), np.zeros((8, 2), np.int32)[:, 0]  # also where the memory is not contiguous
    assert kernel(x, out, factor=3) is None
    assert (out == 3 * x.sum(axis=1)).all() and (x == matrix(8, 32)).all()
    best = kernel.best(x, out, factor=3)
    assert best.match.source_sizes == {"rows": 8, "columns": 32} and (out == 3 * x.sum(axis=1)).all()
    with pytest.raises(InputError, match="rows: x: expected an array of numbers, found one of objects"):
        kernel(x.astype(object), out)
    with pytest.raises(
        InputError, match=r"rows: x: has a mask, which a kernel does not see; pass x\.filled\(0\)"
    ):
        kernel(np.ma.masked_equal(x, 3), out)
    kernel(x.astype(">i4"), swapped := np.zeros(8, ">i4"))
    assert (swapped == 2 * x.sum(axis=1)).all()
    with pytest.raises(InputError, match=r"rows: out: expected arrays of torch, cupy, .* found list"):
        kernel(x, [0])
    out.flags.writeable = False
    with pytest.raises(InputError, match="rows: out: the kernel writes it, but the array is read-only"):
        kernel(x=x, out=out)


@pytest.mark.parametrize("most_kept_bytes", [2**30, 0])
def test_calls_with_arrays_of_numpy_share_memory_up_to_a_limit(rows, monkeypatch, most_kept_bytes):
    monkeypatch.setattr(opencl, "_MOST_KEPT_BYTES", most_kept_bytes)
    kernel = load_kernel("rows")
    for columns in (1, 513, 8209, 1):  # also more than a page, and no multiple of one
        x, out = matrix(2, columns), np.zeros(2, np.int32)
        kernel(x, out)
        assert (out == 2 * x.sum(axis=1)).all()
    assert (opencl._cpu().pool.held_blocks > 0) == (most_kept_bytes > 0)


FORKING = """
import os, signal
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
from autotune import best_config, load_kernel, opencl_devices

x = np.ones((8, 32), np.int32)
context = cl.Context(opencl_devices()[:1])
queue = cl.CommandQueue(context)
there, out = cl_array.to_device(queue, x), cl_array.zeros(queue, 8, np.int32)
kernel, new = load_kernel("rows"), load_kernel("rows")
bound = kernel.bind(there, out)
calls = (lambda: kernel(x, np.zeros(8, np.int32)), lambda: kernel(there, out), bound, lambda: new(there, out))
for call in calls[:3]:
    call()
queue.finish()
for call in calls:
    if os.fork():
        os.wait()
        continue
    signal.alarm(200)
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
calls[1]()
print("the parent goes on")
"""


def test_a_call_in_a_process_forked_after_another_call_is_refused(rows):
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True)
    *refused, last = done.stdout.splitlines()
    assert last == "the parent goes on" and len(refused) == 4
    assert {line.split(":")[0] for line in refused} == {
        "Forked OpenCL was used before this process was forked, and does not survive a fork"
    }


def test_scalars_sizes_and_streams_of_a_wrong_kind_are_bad_input(rows, queue):
    kernel = load_kernel("rows")
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    wrong = {
        r"factor = 2\.5: expected a value of type int32": {"factor": 2.5},
        "factor = 'two': expected a value of type int32": {"factor": "two"},
        f"factor = {2**40}: expected a value of type int32": {"factor": 2**40},
        "factor = None: expected a value of type int32": {"factor": None},
        "stream 7: expected a pyopencl.CommandQueue": {"stream": 7},
        r"stream \[\]: expected a pyopencl.CommandQueue": {"stream": []},
        "sizes are whole numbers; found rows='eight'": {"rows": "eight"},
    }
    for complaint, named in wrong.items():
        with pytest.raises(InputError, match=complaint):
            kernel(x, out, **named)
    kernel(x, out, factor=np.float64(3), rows=np.int64(8)).wait()
    assert (out.get() == 3 * matrix(8, 32).sum(axis=1)).all()


def test_scratch_memory_that_cannot_be_had_is_said(rows, queue):
    data = json.loads(rows.read_text())
    data["arguments"][1]["shape"] = ["n * 2 ** 45"]
    rows.write_text(json.dumps(data))
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.raises(SetupError, match=r"rows\.cu: .* bytes of scratch memory"):
        load_kernel("rows")(x, out)


def test_a_plan_that_names_no_argument_is_a_damaged_cache(rows, queue):
    data = json.loads(rows.read_text())
    data["launch"][0]["arguments"][1] = "parts"
    rows.write_text(json.dumps(data))
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.raises(
        CacheError, match=r"rows\.json: damaged: launch\[0\]\.arguments: .*, found 'x, parts, factor, n'"
    ):
        load_kernel("rows")(x, out)


@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
def test_a_kernel_for_another_compiler_is_refused_in_one_line(rows, queue):
    rows.write_text(json.dumps(json.loads(rows.read_text()) | {"compiler": "nvcc"}))
    (rows.parents[2] / "kernels/rows.cu").write_text("__global__ void scale() {}")
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.raises(SetupError, match=r"needs an NVIDIA GPU: it is compiled with nvcc$"):
        load_kernel("rows")(x, out)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_match": "exact"},
        {"on_miss": "record"},
        {"budget_s": "1", "on_miss": "tune"},
        {"budget_s": math.inf, "on_miss": "tune"},
    ],
)
def test_options_of_a_wrong_kind_are_bad_input(rows, wrong):
    with pytest.raises(InputError, match=f": {next(iter(wrong))}: expected .*, found"):
        load_kernel("rows", **wrong)


def test_a_plan_without_a_launch_for_the_sizes_is_refused(rows, queue):
    held = json.loads(rows.read_text())
    for step in held["launch"]:
        step["when"] = "rows > 8"
    rows.write_text(json.dumps(held))
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.raises(NoConfig, match="nothing is launched, because no `when` holds"):
        load_kernel("rows")(x, out)


def test_a_package_without_unsigned_types_may_pass_signed_ones(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.uint32)
    load_kernel("rows", dtype="int32")(x, out).wait()
    assert (out.get() == 2 * matrix(8, 32).sum(axis=1)).all()


@pytest.mark.parametrize("on_device", [False, True])
def test_what_is_stale_is_told_at_the_line_of_the_call(rows, queue, on_device):
    source = rows.parents[2] / "kernels/rows.cu"
    source.write_text(SOURCE + "\n/* changed */\n")
    x, out = matrix(8, 32), np.zeros(8, np.int32)
    arrays = [cl_array.to_device(queue, one) for one in (x, out)] if on_device else (x, out)
    with pytest.warns(StaleWarning) as said:
        load_kernel("rows")(*arrays)
    assert said.pop(StaleWarning).filename == __file__


def test_a_host_program_next_to_the_kernels_is_left_out(rows, queue):
    source = rows.parents[2] / "kernels/rows.cu"
    source.write_text(
        f'#include <cstdio>\n{SOURCE}\nint main() {{ scale<<<1, 64>>>(); std::puts("done"); }}\n'
    )
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.warns(StaleWarning):
        load_kernel("rows")(x, out).wait()
    assert out.get().tolist() == (2 * matrix(8, 32).sum(axis=1)).tolist()


def test_another_source_than_the_tuned_one_is_said_once(rows, queue):
    source = rows.parents[2] / "kernels/rows.cu"
    source.write_text(SOURCE + "\n/* changed */\n")
    kernel = load_kernel("rows")
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.warns(StaleWarning, match="rows.cu is not the source that was tuned"):
        kernel(x, out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(x, out).wait()


def test_another_compiler_than_the_tuned_one_is_said_and_none_that_nobody_noted(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    held = rows.read_text()
    noted = f'"compiler": "{driver_compiler(identify(queue.device))}",'
    assert noted in held
    rows.write_text(held.replace(noted, '"compiler": "another 7.1",'))
    with pytest.warns(StaleWarning, match=r"the compiler was another 7\.1 when this was tuned and is .*now"):
        load_kernel("rows")(x, out)
    rows.write_text(held.replace(noted, ""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_kernel("rows")(x, out).wait()


def test_another_driver_that_brings_its_compiler_is_said_once(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    now = identify(queue.device)
    before = replace(now, driver="driver 7")
    held = json.loads(rows.read_text())
    held["entries"][0]["provenance"] |= {"driver": "driver 7", "compiler": driver_compiler(before)}
    rows.write_text(json.dumps(held))
    with pytest.warns(StaleWarning) as said:
        load_kernel("rows")(x, out)
    message = str(said.pop(StaleWarning).message)
    changed = f"the driver was driver 7 when this was tuned and is {now.driver} now."
    assert message.endswith(f"is stale: {changed} Run `autotune search` again.")
    with pytest.warns(StaleWarning, match="the compiler was"):
        load_kernel("rows", now.slug)(x, out)


def test_the_compiler_of_another_device_s_driver_is_not_told(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    held = json.loads(rows.read_text())
    held["entries"][0]["provenance"] |= {"driver": "driver 7", "compiler": "another 7.1"}
    rows.write_text(json.dumps(held))
    other = json.loads((rows.parent / "device.json").read_text())
    other["compute_units"] *= 2
    (rows.parent / "device.json").write_text(json.dumps(other))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_kernel("rows")(x, out).wait()


def test_the_source_is_found_where_it_was_tuned(rows, queue, tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "kernels/rows.cu").rename(tmp_path / "deep/sums.cu")
    rows.write_text(json.dumps(json.loads(rows.read_text()) | {"source": "../deep/sums.cu"}))
    monkeypatch.chdir(tmp_path / "deep")
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    kernel = load_kernel("rows", cache=tmp_path / "cache")
    assert repr(kernel) == f"LoadedKernel(rows, {kernel.source.path})"
    with pytest.warns(StaleWarning, match=f"{tmp_path}/deep/sums.cu is not the source"):  # its name is new
        kernel(x, out).wait()
    assert kernel.source.path.samefile("sums.cu") and (out.get() == 2 * matrix(8, 32).sum(axis=1)).all()


def test_a_kernel_that_does_not_compile_or_is_not_there_is_named(rows, queue, tmp_path):
    (tmp_path / "broken.cu").write_text("KERNEL scale(")
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    with pytest.raises(SetupError, match=r"broken\.cu: .*BLOCK=64") as caught, pytest.warns(StaleWarning):
        load_kernel("rows", source=tmp_path / "broken.cu")(x, out)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(set(lines)) and all("error" in line for line in lines)
    (tmp_path / "kernels/rows.cu").unlink()
    with pytest.raises(InputError, match=r"rows: no source at kernels/rows\.cu or .*; pass it as source="):
        load_kernel("rows")
    with pytest.raises(
        NoConfig, match=r"no results for a kernel 'cows' in .*/cache.* or .*; did you mean rows"
    ):
        load_kernel("cows", source=tmp_path / "broken.cu")


def test_a_match_that_is_not_close_enough_is_refused(rows, queue):
    x, out = cl_array.to_device(queue, matrix(4, 8)), cl_array.zeros(queue, 4, np.int32)
    load_kernel("rows", min_match=Tier.NEAREST_SIZE)(x, out)
    with pytest.raises(NoConfig):
        load_kernel("rows", min_match=Tier.EXACT)(x, out)


def test_what_was_not_tuned_is_tuned_beside_the_calls_if_asked(rows, queue, monkeypatch):
    asked = SimpleQueue()
    monkeypatch.setattr(BackgroundTuning, "_search", lambda self, words: asked.put((self._space, *words)))
    sum_rows = load_kernel("rows", on_miss="tune", space="rows.yaml")
    for columns in (32, 8, 8):  # the first was tuned
        x, out = cl_array.to_device(queue, matrix(8, columns)), cl_array.zeros(queue, 8, np.int32)
        sum_rows(x, out)
        assert np.array_equal(out.get(), 2 * matrix(8, columns).sum(axis=1))
    device = f"--device={identify(queue.device).slug}"
    assert asked.get(timeout=30) == (
        "rows.yaml",
        device,
        "--dtype=int32",
        "--size=columns=8",
        "--size=rows=8",
    )
    assert asked.empty()
    with pytest.raises(InputError, match='on_miss: expected "tune" or None'):
        load_kernel("rows", on_miss="record")


def test_the_device_of_the_arrays_decides_and_a_queue_s_device_is_one(rows, queue):
    best = best_config("rows", queue.device, rows=8, columns=32)
    assert best.match.tier is Tier.EXACT and best.config == Config(best)
    assert best.device == identify(queue.device)


@pytest.mark.parametrize("name", ["production_opencl.py"])
def test_the_example_gets_a_right_sum(root, tmp_path, name):
    done = subprocess.run(
        [sys.executable, root / "examples" / name], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "right" and "None" not in done.stdout


@pytest.fixture
def natural(rows, queue):
    """The same kernel where the caller gives a matrix and gets the sums; a counter starts at 7."""
    held = json.loads(rows.read_text())
    held["call"] = {"inputs": ["x"], "returns": ["out"], "kept": {"unused": 7}}
    held["launch"].append(
        {"entry": "count", "grid": ["1"], "block": ["1"], "arguments": ["unused", "out"]}
        | {"shared_bytes": "0", "when": "columns == 3"}
    )
    rows.write_text(json.dumps(held))
    source = rows.parents[2] / "kernels/rows.cu"
    source.write_text(SOURCE + "KERNEL count(GLOBAL unsigned int *at, GLOBAL DTYPE *out) { out[0] = *at; }")
    return load_kernel("rows")


@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
def test_outputs_that_are_not_given_are_returned_and_the_rest_is_the_kernel_s_business(natural, queue):
    x = cl_array.to_device(queue, matrix(8, 32))
    first, second = natural(x), natural(x, factor=3)
    assert (first.get() == 2 * matrix(8, 32).sum(axis=1)).all()
    assert (second.get() == 3 * matrix(8, 32).sum(axis=1)).all()
    out = cl_array.zeros(queue, 8, np.int32)
    natural(x, out=out).wait()
    assert (out.get() == first.get()).all()
    assert natural(cl_array.to_device(queue, matrix(2, 3))).get()[0] == 7
    with pytest.raises(
        InputError, match=r"takes the inputs x, or all of x, out, unused; 2 were given; .*out="
    ):
        natural(x, out)
    assert natural.best(x).match.source_sizes == {"rows": 8, "columns": 32} and natural.best(x)["BLOCK"] == 64
    run = natural.bind(x)
    assert run() is run() and (run().get() == first.get()).all()


@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
@pytest.mark.parametrize(
    "default",
    [
        {"TREE_MEMORY": "global", "WORK_PER_THREAD": 1, "UNROLL": 1},
        {"FINISH": "last_block"},
    ],
    ids=["copies its input", "counts its blocks"],
)
def test_a_shipped_kernel_is_called_with_its_input_only(tmp_path, queue, default):
    shutil.copytree(packaged("cache") / "nvidia-h200", tmp_path / "nvidia-h200")
    path = tmp_path / "nvidia-h200/reduce.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"default": record["default"] | default}))
    x = np.arange(100_000, dtype=np.int32)
    given = cl_array.to_device(queue, x)
    reduce = load_kernel("reduce", cache=tmp_path)
    assert [int(reduce(given).get()[0]) for _ in range(3)] == 3 * [x.sum(dtype=np.int32)]
    assert (given.get() == x).all()
    assert reduce(x[::2]) == [x[::2].sum(dtype=np.int32)] and isinstance(reduce(x=x), np.ndarray)


def programs():
    """The programs of this process."""
    gc.collect()
    return sum(isinstance(one, cl.Program) for one in gc.get_objects())


def test_kernels_that_are_loaded_again_and_again_share_their_program(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    kept = load_kernel("rows")
    kept(x, out).wait()
    before = programs()
    for _ in range(50):
        kernel = load_kernel("rows")
        kernel(x, out, factor=3).wait()
        assert (out.get() == 3 * matrix(8, 32).sum(axis=1)).all()
        kernel.close()
    assert programs() == before
    kept(x, out).wait()
    assert (out.get() == 2 * matrix(8, 32).sum(axis=1)).all()


@pytest.mark.filterwarnings("ignore::autotune.StaleWarning")
def test_another_source_and_another_context_have_programs_of_their_own(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    load_kernel("rows")(x, out).wait()
    source = rows.parents[2] / "kernels/rows.cu"
    source.write_text(SOURCE.replace("factor * x[i]", "factor + x[i]"))
    load_kernel("rows")(x, out).wait()
    assert (out.get() == (2 + matrix(8, 32)).sum(axis=1)).all()
    for _ in range(3):  # a context that is gone may leave its address to the next
        context = cl.Context([queue.device])
        own = cl.CommandQueue(context)
        x, out = cl_array.to_device(own, matrix(8, 32)), cl_array.zeros(own, 8, np.int32)
        load_kernel("rows")(x, out).wait()
        assert (out.get() == (2 + matrix(8, 32)).sum(axis=1)).all()
        del context, own, x, out


def test_bound_arrays_are_read_at_every_run(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    run = load_kernel("rows").bind(x, out, factor=3)
    for numbers in (matrix(8, 32), 7 - matrix(8, 32)):
        x.set(numbers)
        run().wait()
        assert (out.get() == 3 * numbers.sum(axis=1)).all()


def test_a_queue_out_of_order_runs_a_call_after_what_was_queued_before(rows, queue):
    context = queue.context
    unordered = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    x, out = cl_array.zeros(unordered, (8, 32), np.int32), cl_array.zeros(unordered, 8, np.int32)
    load_kernel("rows")(x, out).wait()
    numbers = matrix(8, 32)
    source, sums = cl_array.to_device(queue, numbers), cl_array.zeros(queue, 8, np.int32)
    queue.finish()
    before = cl.UserEvent(context)
    cl.enqueue_copy(unordered, x.base_data, source.base_data, wait_for=[before])
    load_kernel("rows")(x, out)
    cl.enqueue_copy(unordered, sums.base_data, out.base_data)  # waits for no event of the call
    before.set_status(cl.command_execution_status.COMPLETE)
    unordered.finish()
    assert (sums.get() == 2 * numbers.sum(axis=1)).all()


def test_calls_of_all_threads_get_their_own_sums(rows, queue):
    kernel = load_kernel("rows")

    def sums(factor: int) -> bool:
        x, out = cl_array.to_device(queue, factor * matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
        for _ in range(20):
            out.fill(0)
            kernel(x, out, factor=factor).wait()
            if not (out.get() == factor**2 * matrix(8, 32).sum(axis=1)).all():
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(sums, range(1, 9)))


def test_a_cache_that_is_replaced_while_a_program_runs_is_seen(rows, queue, monkeypatch):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    monkeypatch.setattr("autotune.runtime.call_signature.CHECK_S", 0)
    kernel = load_kernel("rows")
    kernel(x, out)
    held = json.loads(rows.read_text())
    held["arguments"][4]["value"] = "5"
    rows.write_text(json.dumps(held))
    before = kernel.best(x, out)
    assert before.record.arguments[4].value == "5" and kernel.best(x, out) is before
    kernel(x, out).wait()
    assert (out.get() == 5 * matrix(8, 32).sum(axis=1)).all()
    rows.write_text("{")
    with pytest.raises(CacheError, match=r"rows\.json: damaged"):
        kernel(x, out)


@pytest.mark.parametrize("is_bound_first", [True, False])
def test_a_bound_kernel_keeps_the_order_of_its_arrays_and_calls_take_the_new_one(
    rows, queue, monkeypatch, is_bound_first
):
    monkeypatch.setattr("autotune.runtime.call_signature.CHECK_S", 0)
    held = json.loads(rows.read_text())
    x_spec, part, out_spec, *others = held["arguments"]
    out_spec["shape"] = x_spec["shape"]  # only their names tell them apart
    rows.write_text(json.dumps(held | {"arguments": [x_spec, part, out_spec, *others]}))
    x, out = (cl_array.to_device(queue, matrix(8, 32)) for _ in range(2))
    kernel = load_kernel("rows")
    kernel(x=x, out=out)
    bound = kernel.bind(x, out)
    rows.write_text(json.dumps(held | {"arguments": [out_spec, part, x_spec, *others]}))
    assert kernel.best(x=x, out=out) and kernel.record.arguments[0].name == "out"
    queue.finish()
    x.queue = out.queue = cl.CommandQueue(queue.context)  # where nothing is prepared
    runs = (bound, lambda: kernel(out, x))
    for run in runs if is_bound_first else reversed(runs):
        out.fill(0)
        run().wait()
        assert (out.get()[0, :8] == 2 * matrix(8, 32).sum(axis=1)).all()
    assert (x.get() == matrix(8, 32)).all()


def test_a_size_that_gets_another_name_while_a_program_runs_is_seen(rows, queue, monkeypatch):
    monkeypatch.setattr("autotune.runtime.call_signature.CHECK_S", 0)
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    kernel = load_kernel("rows")
    kernel(x, out)
    rows.write_text(rows.read_text().replace("columns", "width"))
    out.fill(0)
    kernel(x, out).wait()
    assert (out.get() == 2 * matrix(8, 32).sum(axis=1)).all()
    assert kernel.record.size_names == {"rows", "width"}


@pytest.fixture
def elsewhere(rows):
    """The newest result of the kernel, on another device."""
    folder = rows.parent.with_name("example-gpu-100")
    shutil.copytree(rows.parent, folder)
    (device,) = folder.glob("device*.json")
    known = json.loads(device.read_text())
    device.write_text(json.dumps(known | {"slug": folder.name, "name": "Example GPU 100"}))
    path = folder / rows.name
    path.write_text(path.read_text().replace('"tuned_at": "2', '"tuned_at": "3'))
    return path


def test_what_callers_pass_is_read_again_once_a_damaged_file_is_mended(rows, elsewhere, queue, monkeypatch):
    monkeypatch.setattr("autotune.runtime.call_signature.CHECK_S", 0)
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    kernel, newest = load_kernel("rows"), json.loads(elsewhere.read_text())
    kernel(x=x, out=out)
    held = json.loads(rows.read_text())
    held["arguments"][4]["value"] = newest["arguments"][4]["value"] = "5"
    rows.write_text(json.dumps(held))
    elsewhere.write_text("{")
    with pytest.raises(CacheError, match=r"rows\.json: damaged"):
        kernel(x=x, out=out)
    elsewhere.write_text(json.dumps(newest))
    kernel(x=x, out=out).wait()
    assert (out.get() == 5 * matrix(8, 32).sum(axis=1)).all() and kernel.record.arguments[4].value == "5"


@pytest.mark.parametrize("returns", [[], ["sums"]])
def test_a_result_without_an_array_of_the_newest_version_is_refused(rows, elsewhere, queue, returns):
    held = json.loads(elsewhere.read_text())
    held["arguments"][2]["name"] = held["launch"][1]["arguments"][1] = "sums"
    elsewhere.write_text(json.dumps(held | {"call": {"inputs": ["x"], "returns": returns}}))
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    given = {} if returns else {"sums": out}
    expected = (
        "rows: the result for these sizes comes from a version of the kernel without sums; tune these sizes"
    )
    with pytest.raises(InputError, match=expected):
        load_kernel("rows")(x, **given)


def test_a_closed_kernel_can_be_called_again(rows, queue):
    x, out = cl_array.to_device(queue, matrix(8, 32)), cl_array.zeros(queue, 8, np.int32)
    kernel = load_kernel("rows")
    kernel(x, out)
    kernel.close()
    kernel(x, out, factor=4).wait()
    assert (out.get() == 4 * matrix(8, 32).sum(axis=1)).all()


@pytest.mark.filterwarnings("ignore:Pre-build attribute access")
def test_a_program_without_kernels_is_a_launch_error(context, queue):
    program = cl.Program(context, "__kernel void f() {}")  # was never built
    with pytest.raises(LaunchError, match="INVALID_PROGRAM_EXECUTABLE"):
        OpenCLLauncher(queue).prepare(program, CallPlan((), {}, (), (), ()), Workspace())
