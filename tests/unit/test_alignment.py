"""Arrays that begin where vectors do not: what a program needs, and that such calls are told from others."""

import pytest

from autotune.core.launch_plan import TRITON
from autotune.runtime.alignment import needed_alignment_bytes, widest_access_bytes
from autotune.runtime.packages import call_key
from autotune.runtime.prepared import PER_THREAD

COPY = """
extern "C" __global__ void copy(const float *x, float *y)
{
    __shared__ float4 kept[32];
    kept[threadIdx.x] = make_float4(x[threadIdx.x], 1, 2, 3);
    __syncthreads();
    ACCESS
}
"""
EIGHT = ", ".join(f"%r{number}" for number in range(1, 9))
SCALAR = "y[threadIdx.x] = kept[threadIdx.x ^ 1].x;"
VECTORS = "reinterpret_cast<float2 *>(y)[threadIdx.x] = make_float2(kept[threadIdx.x ^ 1].x, 0);"


@pytest.mark.parametrize(
    ("instruction", "width_bytes"),
    [
        ("ld.global.nc.f32 \t%f1, [%rd4];", 4),
        ("ld.global.nc.L1::no_allocate.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];", 16),
        ("st.global.v2.u16 [%rd4], {%rs1, %rs2};", 4),
        ("red.relaxed.gpu.global.add.noftz.f16x2 [%rd1], %r1;", 4),
        ("ld.v2.f64 {%fd1, %fd2}, [%rd4];", 16),
        ("cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;", 16),
        ("ld.global.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd4];", 32),
        ("ld.global.L1::no_allocate.v4.b64 {%rd1, %rd2, %rd3, %rd5}, [%rd4];", 32),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];", 16),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], %r2;", 16),
        (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r4], 64, [%r3];",
            1,
        ),
        ("cp.async.bulk.wait_group 0;", 1),
        (f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{EIGHT}}}, [%rd1], %r9;", 32),
        ("wmma.store.d.sync.aligned.row.m16n16k16.f16 [%rd1], {%r1, %r2, %r3, %r4}, %r9;", 16),
        ("wmma.load.a.sync.aligned.row.m8n8k4.f64 {%fd1}, [%rd1], %r9;", 8),
        (f"wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {{{EIGHT}}}, [%r10], %r9;", 1),
        ("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];", 1),
        ("ld.shared::cta.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];", 1),
        ("ld.param.u64 %rd1, [copy_param_0];", 1),
        ("add.s64 %rd4, %rd2, %rd3;", 1),
    ],
)
def test_the_width_of_an_access_is_read_from_ptx(instruction, width_bytes):
    assert widest_access_bytes(f"\t{instruction}\n") == width_bytes


@pytest.mark.parametrize(("access", "needed_bytes"), [(SCALAR, 4), (VECTORS, 8), ("no code", 16)])
def test_a_program_needs_the_alignment_of_its_widest_access(access, needed_bytes):
    text = COPY.replace("ACCESS", access)
    assert needed_alignment_bytes("sm_90", "nvrtc", text, (), ("copy",)) == needed_bytes


@pytest.mark.parametrize(("kind", "text"), [(TRITON, COPY), ("nvrtc", "")])
def test_what_no_compiler_tells_is_what_most_programs_need(kind, text):
    assert needed_alignment_bytes("sm_90", kind, text, (), ("copy",)) == 16


def test_calls_with_arrays_at_other_places_are_other_calls():
    signature, places = ("like these",), [(256, 512), (256, 516), (256, 520), (260, 512), (256, 0)]
    keys = [call_key(stream, signature, place) for stream in (1, PER_THREAD) for place in places]
    assert len(set(keys)) == len(keys)
    assert call_key(1, signature, (256, 512)) == call_key(1, signature, (1024, 32))
