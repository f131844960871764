"""The pool of compilers: binaries or failures, and which of them were kept from an earlier run."""

import json
from concurrent.futures import CancelledError

import pytest
from cuda.pathfinder import DynamicLibNotFoundError
from hypothesis import given
from hypothesis import strategies as st

from autotune.compilers import nvrtc
from autotune.compilers.known_compilers import cuda_compiler
from autotune.core.records import Config
from autotune.core.trials import Binary, Failure, Measurement, Rule, Status, Trial
from autotune.errors import Blame, MissingExtra
from autotune.evaluation.compiler_pool import CompilerPool, cuda_setting
from autotune.evaluation.journal import read_trials
from autotune.evaluation.journal_rows import decode_trial, encode_trial

SOURCE = 'extern "C" __global__ void kernel(float* x) { x[threadIdx.x] *= %s; }'
CL_SPACE = """
schema: 1
kernel: double
dialect: opencl
source: double.cl
reference: reference.py
sizes:
  default: {n: 1000}
dtypes: [int32]
parameters:
  A: [1, 2]
default: {A: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
launch:
  - {entry: twice, grid: [n], block: [1], arguments: [x, y]}
"""
CL_KERNEL = """
__kernel void twice(__global const int *x, __global int *y)
{
    y[get_global_id(0)] = x[get_global_id(0)] * 4 / (A + 2 - A);
}
"""


def compiled(sources, kept, architecture="sm_90", size=2, scratch=None):
    pool = CompilerPool(
        cuda_setting(architecture),
        size=size,
        timeout_s=60,
        binaries=kept or scratch,
        are_kept=kept is not None,
    )
    try:
        return [future.result() for future in [pool.compile_source(source, ()) for source in sources]]
    finally:
        pool.close()


def test_a_second_pool_takes_what_the_first_one_made(tmp_path):
    sources = [SOURCE % number for number in range(4)]
    first, second = compiled(sources, tmp_path), compiled(sources, tmp_path)
    assert all(isinstance(item, Binary) and not item.cached and item.compile_ms > 0 for item in first)
    assert all(item.cached and item.compile_ms == 0 for item in second)
    for new, kept in zip(first, second, strict=True):
        assert (new.data, new.sha256, new.registers) == (kept.data, kept.sha256, kept.registers)
    (other,) = compiled(sources[:1], tmp_path, architecture="sm_80", size=1)
    (anew,) = compiled(sources[:1], None, size=1)
    assert not other.cached and not anew.cached and anew.data == first[0].data


def test_without_a_cache_one_run_compiles_nothing_twice(tmp_path):
    first, second = compiled([SOURCE % 1] * 2, None, size=1, scratch=tmp_path)
    assert first.compile_ms > 0 and second.compile_ms == 0  # and neither is of an earlier run:
    assert not first.cached and not second.cached and first.data == second.data


def test_sources_that_are_the_same_are_compiled_once_though_they_are_queued_together(tmp_path):
    found = compiled([SOURCE % 1, SOURCE % 1, SOURCE % 2, SOURCE % 1], tmp_path)
    assert [one.cached for one in found] == [False, True, False, True]
    assert len({one.sha256 for one in found}) == 2


def test_a_source_that_waits_for_the_same_one_is_dropped_with_it(tmp_path):
    pool = CompilerPool(cuda_setting("sm_90"), size=1, timeout_s=60, binaries=tmp_path)
    try:
        first, second = (pool.compile_source(SOURCE % 1, ()) for _ in range(2))
        pool.drop([first, second])
        with pytest.raises(CancelledError):
            second.result(60)
    finally:
        pool.close()


def test_what_does_not_compile_fails_every_time(tmp_path):
    for _ in range(2):
        (failure,) = compiled([SOURCE % "nothing"], tmp_path, size=1)
        assert isinstance(failure, Failure) and failure.status is Status.COMPILE_ERROR
        assert 'identifier "nothing" is undefined' in failure.detail


def test_a_search_says_which_binaries_were_kept(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.path / "cache-home"))  # other tests compile the same
    (folder.path / "double.cl").write_text(CL_KERNEL)
    folder.space.write_text(CL_SPACE)
    states = []
    words = ("double.yaml", "--device", "opencl", "--fresh", "--journal", "j.jsonl", "--no-sanitizer")
    for _ in range(2):
        done = folder.run("search", *words)
        assert done.returncode == 0, done.stderr
        assert ("2 with a binary of an earlier run" in done.stdout) is bool(states)
        trials = read_trials(folder.path / "j.jsonl")
        states.append([(trial.binary_cached, trial.compile_ms > 0) for trial in trials])
    assert states == [[(False, True)] * 2, [(True, False)] * 2]


numbers = st.none() | st.integers(0, 255)
FAILURES = st.builds(
    Failure,
    status=st.sampled_from(list(Status)[1:]),  # the first is no failure
    detail=st.text(),
    blame=st.sampled_from((Blame.CONFIGURATION, Blame.MACHINE)),
)


def trials(**more):
    return st.builds(
        Trial,
        config=st.just(Config({"A": 1})),
        key=st.text(),
        measurement=st.none()
        | st.just(Measurement((1.0, 2.0), Rule.STEADY, (3.0,), 4, conditions={"clock": 5})),
        compile_ms=st.floats(0, 1e6),
        cost_s=st.floats(0, 1e6),
        binary_sha256=st.text(),
        binary_cached=st.booleans(),
        registers=numbers,
        spill_bytes=numbers,
        shared_bytes=numbers,
        **more,
    )


@given(trials(note=st.text()) | trials(failure=FAILURES))
def test_a_trial_comes_back_from_its_row_as_it_was(trial):
    assert decode_trial(json.loads(json.dumps(encode_trial(trial)))) == trial


@pytest.mark.parametrize("value", [0, None])
def test_no_spills_and_unknown_spills_are_two_things(value):
    trial = Trial(Config({"A": 1}), "key", spill_bytes=value)
    assert encode_trial(trial).get("spill_bytes") == value


def test_bindings_without_nvrtc_name_the_extra(monkeypatch):
    def nowhere(name):
        raise DynamicLibNotFoundError(name)

    monkeypatch.setattr(nvrtc, "load_nvidia_dynamic_lib", nowhere)
    with pytest.raises(MissingExtra, match=r"NVRTC is not installed.*\.\[cuda\]"):
        cuda_compiler("sm_90")


TRITON_SOURCE = """
import triton
import triton.language as tl

@triton.jit(do_not_specialize=["n"])
def scale(x, n, m, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + places, tl.load(x + places, mask=places < n * m), mask=places < n)
"""
ENTRIES = tuple(
    f"scale('*fp32:16', '{n}', '{m}', BLOCK=64)" for m in ("i32", "i32:16") for n in ("i32", "i32:16")
)


def triton_binary(names, kept):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    setting = cuda_setting("sm_90", "triton")
    pool = CompilerPool(setting, size=2, timeout_s=60, binaries=kept)
    try:
        return pool.compile_source(TRITON_SOURCE, (), names).result()
    finally:
        pool.close()


def test_kernels_of_one_triton_configuration_are_compiled_and_kept_one_by_one(tmp_path):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    found = triton_binary(ENTRIES, tmp_path)
    alone = cuda_compiler("sm_90", "triton").compile(TRITON_SOURCE, (), ENTRIES)
    assert (found.data, found.registers, found.symbols) == (alone.data, alone.registers, alone.symbols)
    assert len(list(tmp_path.iterdir())) == 2  # nothing is compiled for what n is
    assert triton_binary(ENTRIES[::2], tmp_path).cached


def test_the_first_triton_kernel_that_cannot_be_compiled_says_why(tmp_path):
    pytest.importorskip("triton.runtime", reason="needs the extra triton")
    unset = "scale('*fp32:16', 'i32', 'i32')"
    assert "no value for BLOCK" in triton_binary((ENTRIES[0], unset), tmp_path).detail
    odd = ENTRIES[0].replace("64", "63")
    failed = triton_binary((odd, *ENTRIES), tmp_path)
    assert failed.status is Status.COMPILE_ERROR and "power of 2" in failed.detail
