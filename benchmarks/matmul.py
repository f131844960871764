"""The tuned matrix product beside cuBLAS, by PyTorch and by CuPy, in float32 throughout.

    python benchmarks/matmul.py [--cache DIR | --config 'NAME=VALUE ...'] [--m N] [--n N] [--k N]

Needs an NVIDIA GPU, PyTorch and CuPy, and a tuned result in the cache (`autotune search matmul`) or a
configuration. TF32 is off. All products are compared with one in float64 first, within the space's tolerance.
"""

from __future__ import annotations

from collections.abc import Callable

import cupy
import torch
from beside_libraries import cached, parser, plan, show, take_turns, task, written


def main() -> None:
    """Check, let them take turns, print medians and ratios."""
    parsed = parser(__doc__ or "", m=8192, n=8192, k=8192).parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    sizes = {"m": parsed.m, "n": parsed.n, "k": parsed.k}
    space = task("matmul", sizes)
    config = written(space, parsed.config) if parsed.config else cached(space, parsed.cache)
    a = cupy.random.uniform(-1, 1, (parsed.m, parsed.k), dtype=cupy.float32)
    b = cupy.random.uniform(-1, 1, (parsed.k, parsed.n), dtype=cupy.float32)
    arrays = {"a": a, "b": b}
    run = plan(space, config, arrays)
    first, second = (torch.as_tensor(matrix, device="cuda") for matrix in (a, b))
    by_torch, by_cupy = torch.empty((parsed.m, parsed.n), device="cuda"), cupy.empty_like(arrays["c"])
    contenders: dict[str, Callable[[], object]] = {
        "autotune": run,
        "torch.matmul (cuBLAS)": lambda: torch.matmul(first, second, out=by_torch),
        "cupy.matmul (cuBLAS)": lambda: cupy.matmul(a, b, out=by_cupy),
    }
    expected = a.astype(cupy.float64) @ b.astype(cupy.float64)
    results = (arrays["c"], cupy.asarray(by_torch), by_cupy)
    for (name, contender), found in zip(contenders.items(), results, strict=True):
        contender()
        torch.cuda.synchronize()
        error = float(abs(found - expected).max())
        if not error <= 5e-7 * parsed.k:
            raise SystemExit(f"{name} is wrong: off by {error}")
        print(f"{name}: largest error {error:.2g}")
    del expected
    flops = 2 * parsed.m * parsed.n * parsed.k
    show(take_turns(contenders), dict.fromkeys(contenders, flops), "GFLOP/s")


if __name__ == "__main__":
    main()
