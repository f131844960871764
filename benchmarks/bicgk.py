"""The tuned fused products beside a plan of two kernels and the two calls of cuBLAS.

    python benchmarks/bicgk.py [--cache DIR | --config 'NAME=VALUE ...'] [--split 'NAME=VALUE ...']
                               [--rows N] [--columns N]

Needs an NVIDIA GPU, PyTorch and CuPy, and a tuned result in the cache (`autotune search bicgk`) or a
configuration; `--split` is the plan of two kernels to compare with, by default the landmark split_shuffles:
give the best one that a search has found. Both are compared with products in float64 first, and must equal
them, for the numbers are whole. Rates count the matrix once, however often it is read.
"""

from __future__ import annotations

from collections.abc import Callable

import cupy
import torch
from beside_libraries import cached, parser, plan, show, take_turns, task, written

from autotune.core.records import Config
from autotune.space import ValidSpace


def checked(space: ValidSpace, config: Config, inputs: dict[str, cupy.ndarray]) -> Callable[[], None]:
    """The plan of a configuration, after a run whose results are right."""
    arrays = dict(inputs)
    run = plan(space, config, arrays)
    run()
    cupy.cuda.Device().synchronize()
    matrix, p, r = (inputs[name].astype(cupy.float64) for name in ("matrix", "p", "r"))
    if not ((arrays["q"] == matrix @ p).all() and (arrays["s"] == r @ matrix).all()):
        raise SystemExit(f"a wrong result: {config}")
    return run


def main() -> None:
    """Check, let them take turns, print medians and ratios."""
    options = parser(__doc__ or "", rows=16384, columns=16384)
    options.add_argument("--split", help="a plan of two kernels (default: the landmark split_shuffles)")
    parsed = options.parse_args()
    space = task("bicgk", {"rows": parsed.rows, "columns": parsed.columns})
    config = written(space, parsed.config) if parsed.config else cached(space, parsed.cache)
    landmarks = {landmark.name: landmark.config for landmark in space.spec.landmarks}
    split = written(space, f"{parsed.split} FUSED=False") if parsed.split else landmarks["split_shuffles"]
    shapes = {"matrix": (parsed.rows, parsed.columns), "p": (parsed.columns,), "r": (parsed.rows,)}
    inputs = {
        name: cupy.random.randint(-8, 9, shape, dtype=cupy.int32).astype(cupy.float32)
        for name, shape in shapes.items()
    }
    matrix, p, r = (torch.as_tensor(inputs[name], device="cuda") for name in shapes)
    q, s = torch.empty_like(r), torch.empty_like(p)

    def two_calls() -> None:
        torch.mv(matrix, p, out=q)
        torch.mv(matrix.t(), r, out=s)

    contenders = {
        "autotune": checked(space, config, inputs),
        "two kernels": checked(space, split, inputs),
        "cuBLAS, two calls": two_calls,
    }
    show(take_turns(contenders), dict.fromkeys(contenders, 4 * parsed.rows * parsed.columns))


if __name__ == "__main__":
    main()
