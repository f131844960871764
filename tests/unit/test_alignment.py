"""Arrays that begin where vectors do not: what a program needs, and that such calls are told from others."""

from dataclasses import replace

import pytest

from autotune.core.launch_plan import TRITON
from autotune.runtime.alignment import needed_alignment_bytes, widest_access_bytes
from autotune.runtime.packages import PER_THREAD, call_key
from tests.space_example import GPU

HOPPER = replace(GPU, architecture="sm_90")
COPY = """
extern "C" __global__ void copy(const float *x, float *y)
{
    __shared__ float4 kept[32];
    kept[threadIdx.x] = make_float4(x[threadIdx.x], 1, 2, 3);
    __syncthreads();
    ACCESS
}
"""
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
    assert needed_alignment_bytes(HOPPER, "nvrtc", text, (), ("copy",)) == needed_bytes


@pytest.mark.parametrize(("kind", "text"), [(TRITON, COPY), ("nvrtc", "")])
def test_what_no_compiler_tells_is_the_most_there_is(kind, text):
    assert needed_alignment_bytes(HOPPER, kind, text, (), ("copy",)) == 16


def test_calls_with_arrays_at_other_places_are_other_calls():
    look, places = ("like these",), [(256, 512), (256, 516), (256, 520), (260, 512), (256, 0)]
    keys = [call_key(stream, look, place) for stream in (1, PER_THREAD) for place in places]
    assert len(set(keys)) == len(keys)
    assert call_key(1, look, (256, 512)) == call_key(1, look, (1024, 16))
