"""Counters in PTX: where they go, and what their values mean."""

import shutil
import subprocess

import pytest

from autotune.compilers.ptx_counters import VARIABLE, counts_of, with_counters
from autotune.errors import MissingExtra

PTX = """\
.version 9.5
.target sm_90
.address_size 64

.visible .entry work(
	.param .u64 work_param_0
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	.reg .f32 	%f<4>;
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<4>;
	.shared .align 4 .b8 cells[1024];

	ld.param.u64 	%rd1, [work_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, 0;

$L__BB0_1:
	.pragma "nounroll";
	ld.global.v4.f32 	{%f0, %f1, %f2, %f3}, [%rd2+16];
	fma.rn.f32 	%f0, %f1, %f2, %f3;
	mul.lo.s64 	%rd3, %rd2, %rd2;
	st.shared.f32 	[%r1+4], %f0;
	bar.sync 	0;
	add.s32 	%r1, %r1, 1;
	setp.lt.s32 	%p1, %r1, 8;
	@%p1 bra 	$L__BB0_1;

	rcp.approx.ftz.f32 	%f1, %f0;
	red.global.add.u32 	[%rd2], 1;
	st.global.f32 	[%rd2+8], %f1;
	ret;
}
"""


def test_every_block_and_access_has_its_counters():
    counted = with_counters(PTX, "sm_90")
    start, loop, end = counted.blocks
    assert counted.counters == 3 * 2 + 4  # two for a block, one for an access to memory
    assert f".visible .global .align 8 .b8 {VARIABLE}[80];" in counted.text
    assert ".version 8.0" in counted.text  # what the driver of an older toolkit reads, too
    assert start.uses == {}
    assert loop.uses == {"float32": 1, "integer": 4 + 1 + 1} and loop.barriers == 1
    assert [(one.space, one.kind, one.bytes) for one in loop.accesses] == [
        ("global", "load", 16),
        ("shared", "store", 4),
    ]
    assert end.uses == {"special": 1}
    assert [(one.space, one.kind) for one in end.accesses] == [("global", "atomic"), ("global", "store")]
    pragma = counted.text.index(".pragma")
    assert counted.text.index("$L__BB0_1:") < pragma < counted.text.index("activemask", pragma)


@pytest.mark.parametrize(("kind", "size"), [("f16x2", 4), ("noftz.bf16x2", 4), ("u64", 8), ("v2.f32", 8)])
def test_an_atomic_has_the_bytes_of_its_type(kind, size):
    *_, end = with_counters(PTX.replace("red.global.add.u32", f"red.global.add.{kind}"), "sm_90").blocks
    assert end.accesses[0].bytes == size


def test_a_variable_keeps_its_name_whatever_letters_it_has():
    ptx = PTX.replace("[%r1+4], %f0", "[BATCH_OFFSET_SHIFT_BASE+4], %f0")
    assert "mov.u64 at_a, BATCH_OFFSET_SHIFT_BASE;" in with_counters(ptx, "sm_90").text


def test_counts_are_of_warps_and_their_threads():
    counted = with_counters(PTX, "sm_90")
    values = [0] * counted.counters
    start, loop, end = counted.blocks
    for block, warps, threads in ((start, 2, 64), (loop, 16, 256), (end, 2, 64)):
        values[block.counter : block.counter + 2] = [warps, threads]
    load, shared = loop.accesses
    atomic, store = end.accesses
    values[load.counter], values[shared.counter] = 128, 64
    values[atomic.counter], values[store.counter] = 2, 2
    found = counts_of(counted, values)
    assert found.pipe_lanes == {
        "float32": 16 * 32,
        "float64": 0,
        "special": 2 * 32,
        "integer": 16 * 6 * 32,
        "tensor": 0,
    }
    assert found.global_load_bytes == 256 * 16 and found.global_store_bytes == 64 * 4
    assert found.pipe_threads["float32"] == 256 and found.pipe_threads["special"] == 64
    assert (found.sectors, found.requests) == (128 + 2, 16 + 2)
    assert found.conflict_degree == 4.0  # each store of a warp in four passes
    assert (found.atomics, found.atomic_words, found.atomic_bytes) == (64, 2, 64 * 4)
    assert found.bytes_per_thread_in_flight == 16
    assert found.barriers == 16
    assert 16 < found.active_lanes < 24  # half of the loop's, all of the others'


@pytest.mark.parametrize(
    ("operation", "uses"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", {"tensor": 16 * 8 * 16 / 32}),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", {"tensor": 2 * 16 * 8 * 8 / 32}),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", {"tensor": 64}),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", {"float64": 8 * 8 * 4 / 32 / 2}),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", {"tensor": 16 * 16 * 16 / 32}),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16", {}),
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", {"tensor": 64 * 256 * 16 / 4 / 32}),
        ("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", {"tensor": 64 * 64 * 32 / 4 / 32 / 2}),
        ("wgmma.fence.sync.aligned", {}),
    ],
)
def test_tensor_cores_multiply_as_much_as_the_shape_says(operation, uses):
    ptx = PTX.replace("mul.lo.s64 	%rd3, %rd2, %rd2", f"{operation} {{%r0}}, {{%r1}}, {{%r2}}")
    without = {"float32": 1, "integer": 2}
    assert with_counters(ptx, "sm_90").blocks[1].uses == without | uses


def test_a_block_of_assembly_that_ends_behind_an_instruction_is_closed():
    ptx = PTX.replace("bar.sync 	0;", "{ .reg .pred %q; setp.eq.u32 %q, 0, 0;\nadd.s32 	%r2, %r2, 1; }")
    ptx = ptx + PTX[PTX.index(".visible .entry") :].replace("work", "other").replace("BB0", "BB1")
    assert len(with_counters(ptx, "sm_90").blocks) == 6


def test_counted_kernels_of_the_project_are_valid_ptx(tmp_path):
    assembler = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    if assembler is None:
        pytest.skip("ptxas is not installed")
    try:
        from autotune.compilers.nvrtc import CudaCompiler

        compiler = CudaCompiler("sm_90")
    except (ImportError, MissingExtra):
        pytest.skip("NVRTC is not installed")
    source = """
    extern "C" __global__ void work(float *data, int *counters, int n) {
        __shared__ float cells[64];
        cells[threadIdx.x] = data[threadIdx.x];
        __syncthreads();
        for (int i = 0; i < n; i++) {
            if (threadIdx.x % 3 == i % 3) cells[threadIdx.x] += sinf(cells[(i * 7 + threadIdx.x) % 64]);
            atomicAdd(&counters[i], 1);
            __syncwarp();
        }
        data[threadIdx.x] = cells[threadIdx.x];
    }"""
    counted = with_counters(compiler.ptx(source, ())[0], "sm_90")
    (tmp_path / "counted.ptx").write_text(counted.text)
    command = [assembler, "-arch=sm_90", tmp_path / "counted.ptx", "-o", tmp_path / "counted.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kinds = {(one.space, one.kind) for block in counted.blocks for one in block.accesses}
    assert {("global", "load"), ("global", "atomic"), ("shared", "load"), ("shared", "store")} <= kinds
