"""The tuned convolution beside cuDNN's, by PyTorch, in float32 throughout, and its share of the GPU's peak.

    python benchmarks/convolution.py [--cache DIR | --config 'NAME=VALUE ...'] [--width N] [--height N]

Needs an NVIDIA GPU, PyTorch and CuPy, and a tuned result in the cache (`autotune search convolution`) or a
configuration. TF32 is off. Both are compared with the reference's result first, within the space's tolerance.
The peak is two operations per lane and clock, at the highest clock that the GPU states.
"""

from __future__ import annotations

import cupy
import torch
from beside_libraries import cached, parser, plan, show, take_turns, task, written

FILTER_SIZE = 17
LANES = {(7, 5): 64, (8, 0): 64}  # per multiprocessor, by compute capability; 128 elsewhere


def expected(image: cupy.ndarray, weights: cupy.ndarray) -> cupy.ndarray:
    """The result in float64, added up weight by weight."""
    height, width = (extent - FILTER_SIZE + 1 for extent in image.shape)
    wide, result = image.astype(cupy.float64), cupy.zeros((height, width))
    for v, row in enumerate(weights.tolist()):
        for u, weight in enumerate(row):
            result += wide[v : v + height, u : u + width] * weight
    return result


def peak_gflops() -> float:
    """What the GPU could do at its highest clock."""
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    lanes = LANES.get((properties["major"], properties["minor"]), 128)
    clock_khz = cupy.cuda.Device().attributes["ClockRate"]
    return float(2 * lanes * properties["multiProcessorCount"] * clock_khz * 1e-6)


def main() -> None:
    """Check, let them take turns, print medians and ratios."""
    parsed = parser(__doc__ or "", width=4096, height=4096).parse_args()
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # cuDNN times its own algorithms first
    space = task("convolution", {"width": parsed.width, "height": parsed.height})
    config = written(space, parsed.config) if parsed.config else cached(space, parsed.cache)
    halo = FILTER_SIZE - 1
    image = cupy.random.uniform(-1, 1, (parsed.height + halo, parsed.width + halo), dtype=cupy.float32)
    weights = cupy.random.uniform(-1, 1, (FILTER_SIZE, FILTER_SIZE), dtype=cupy.float32)
    arrays = {"image": image, "weights": weights}
    run = plan(space, config, arrays)
    batch, kernel = (torch.as_tensor(array, device="cuda")[None, None] for array in (image, weights))

    def by_torch() -> torch.Tensor:
        return torch.nn.functional.conv2d(batch, kernel)

    run()
    cupy.cuda.Device().synchronize()
    wanted = expected(image, weights)
    for name, found in (("autotune", arrays["result"]), ("torch", cupy.asarray(by_torch()[0, 0]))):
        error = float(abs(found - wanted).max())
        if not error <= 5e-7 * FILTER_SIZE**2:
            raise SystemExit(f"{name} is wrong: off by {error}")
        print(f"{name}: largest error {error:.2g}")
    contenders = {"autotune": run, "torch conv2d (cuDNN)": by_torch}
    flops, peak = 2 * parsed.width * parsed.height * FILTER_SIZE**2, peak_gflops()
    times_ms = take_turns(contenders)
    show(times_ms, dict.fromkeys(contenders, flops), "GFLOP/s")
    print(f"autotune: {flops / times_ms['autotune'] * 1e-6 / peak:.2f} of the peak of {peak:,.0f} GFLOP/s")


if __name__ == "__main__":
    main()
