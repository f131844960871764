"""One program serves calls of several sizes, streams and threads, and none of them spoils another."""

from threading import Thread

import pytest

from autotune import load_kernel, tune
from autotune.runtime.prepared import PER_THREAD

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::autotune.StaleWarning")]

KERNEL = """
__constant__ float weights[4];

extern "C" __global__ void reversed(const float *x, float *y, int n)
{
    extern __shared__ float held[];
    for (int i = threadIdx.x; i < n; i += BLOCK) held[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += BLOCK) y[i] = weights[i % 4] * held[n - 1 - i];
}
"""
REFERENCE = """
import numpy as np

def reference(inputs, sizes):
    x, w = inputs["x"], inputs["w"]
    return {"y": np.resize(w, x.size) * x[::-1]}
"""
SPACE = """\
schema: 1
kernel: reversed
dialect: cuda
source: reversed.cu
reference: reference.py
sizes: {default: {n: 20000}}
dtypes: [float32]
parameters: {BLOCK: [128, 256]}
default: {BLOCK: 256}
arguments:
  - {name: x, dtype: float32, shape: [n], role: in, fill: {uniform: [0, 1]}}
  - {name: w, dtype: float32, shape: [4], role: in, fill: {uniform: [0, 1]}, symbol: weights}
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: reversed, grid: [1], block: [BLOCK], arguments: [x, y, n], shared_bytes: 4 * n}
verify: {rtol: 1.0e-6, atol: 0}
"""


@pytest.fixture(scope="module")
def torch():
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("no GPU")
    return found


@pytest.fixture(scope="module")
def kernel(torch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reversed")
    for name, text in (("reversed.cu", KERNEL), ("reference.py", REFERENCE), ("reversed.yaml", SPACE)):
        (folder / name).write_text(text)
    journal = folder / "reversed.jsonl"  # of its own, as another worker may run tests of this file, too
    tune(folder / "reversed.yaml", device="cuda:0", budget=2, cache=folder / "cache", journal=journal)
    return load_kernel("reversed", cache=folder / "cache", source=folder / "reversed.cu")


def arrays(torch, n, weight):
    x = torch.arange(n, dtype=torch.float32, device="cuda")
    return x, torch.full((4,), float(weight), device="cuda"), torch.empty_like(x)


def test_a_call_with_little_shared_memory_leaves_later_ones_theirs(torch, kernel):
    for n in (20_000, 1000, 20_000, 12_500):
        x, w, y = arrays(torch, n, 3)
        kernel(x, w, y)
        assert torch.equal(y, 3 * x.flip(0)), n


def test_variables_of_calls_on_several_streams_do_not_mix(torch, kernel):
    wrong = []

    def work(weight):
        with torch.cuda.stream(torch.cuda.Stream()):
            x, w, y = arrays(torch, 4000, weight)
            wanted = weight * x.flip(0)
            for _ in range(300):
                kernel(x, w, y)
                if not torch.equal(y, wanted):
                    wrong.append(weight)

    threads = [Thread(target=work, args=(weight,)) for weight in (2, 5, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_that_run_bound_kernels_on_their_own_stream_share_no_memory(torch):
    reduce, wrong = load_kernel("reduce"), []

    def bound(factor):
        x = torch.full((1_000_003,), factor, dtype=torch.int32, device="cuda")
        total = torch.zeros(1, dtype=torch.int32, device="cuda")
        return reduce.bind(x, sum=total, stream=PER_THREAD), total, factor * x.numel()

    def work(run, total, wanted):
        for _ in range(100):
            run()
            torch.cuda.synchronize()
            wrong.extend([int(total)] if int(total) != wanted else [])

    threads = [Thread(target=work, args=bound(factor)) for factor in (1, 2, 3)]
    torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
