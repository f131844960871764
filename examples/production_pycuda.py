"""Sum an array of PyCUDA with the configuration that was tuned for the GPU at hand.

    autotune search reduce --size n=134217728 --dtype float32     # once per kind of GPU; commit the cache
    python examples/production_pycuda.py

The launch is PyCUDA's own, to show what a `Best` holds; `load_kernel("reduce")` takes the same arrays in one
call, as production_cupy_or_torch.py shows.
"""

from pathlib import Path

import numpy as np
import pycuda.autoinit
import pycuda.gpuarray as gpuarray
from pycuda.compiler import SourceModule

from autotune import best_config, include_dir

n = 134_217_728
best = best_config("reduce", pycuda.autoinit.device, dtype="float32", n=n)
print(f"{best.match.tier.value}: {best.match.detail}")

source = Path(include_dir(), "reduce.cu").read_text()
options = [*best.flags, *best.options("cuda")]
module = SourceModule(source, options=options, include_dirs=[include_dir()], no_extern_c=True)

numbers = np.random.default_rng(0).integers(-100, 101, n).astype(np.float32)
arrays = {
    "x": gpuarray.to_gpu(numbers),
    "work": gpuarray.to_gpu(numbers),
    "sum": gpuarray.empty(1, np.float32),
    "ticket": gpuarray.zeros(1, np.uint32),
}
arguments = {}
for argument in best.arguments(n=n):
    if argument.role == "scalar":
        arguments[argument.name] = np.dtype(argument.dtype).type(argument.value)
    elif argument.role == "scratch":
        arguments[argument.name] = gpuarray.empty(argument.shape, argument.dtype)
    else:
        arguments[argument.name] = arrays[argument.name]

for launch in best.launch(n=n):
    kernel = module.get_function(launch.entry)
    kernel(
        *(arguments[name] for name in launch.arguments),
        grid=launch.grid,
        block=launch.block,
        shared=launch.shared_bytes,
    )
print("right" if arrays["sum"].get()[0] == numbers.sum(dtype=np.float64) else "wrong")
