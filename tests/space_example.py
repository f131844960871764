"""A small complete space for tests, and a device to bind it to."""

from dataclasses import replace
from pathlib import Path

from autotune.devices import backend

(FAKE,) = backend("fake").list_devices()
GPU = replace(FAKE, name="Example GPU", slug="example-gpu", vendor="example", architecture="example")

YAML = """\
schema: 1
kernel: reduce
source: reduce.cu
reference: reduce.py
sizes:
  default: {n: 1_048_576}
  cpu: {n: 4096}
verify_sizes: [{n: 1}, {n: 1003}]
dtypes: [int32, float32]
parameters:
  ALGORITHM: [tree, shuffle]
  BLOCK_SIZE: [32, 64, 2048]
  VECTOR: [1, 2]
  UNROLL: [false, true]
derived:
  PER_BLOCK: BLOCK_SIZE * VECTOR
  BLOCKS: ceil_div(n, PER_BLOCK)
constraints:
  - BLOCK_SIZE <= device.max_threads_per_block
  - ALGORITHM != "shuffle" or device.has_shuffle
  - PER_BLOCK <= 64 and (not UNROLL or VECTOR == 1)
default: {ALGORITHM: tree, BLOCK_SIZE: 64, VECTOR: 1, UNROLL: false}
landmarks:
  first: {BLOCK_SIZE: 32, note: "29.45 ms"}
  second: {ALGORITHM: shuffle}
arguments:
  - {name: x, dtype: DTYPE, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: partial, dtype: DTYPE, shape: [BLOCKS], role: scratch}
  - {name: sum, dtype: DTYPE, shape: [1], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: reduce, grid: [BLOCKS], block: [BLOCK_SIZE], arguments: [x, partial, n], shared_bytes: 4 * VECTOR}
  - {entry: finish, grid: [1], block: [32], arguments: [partial, sum], when: BLOCKS > 1}
compiler_options:
  cuda: {--maxrregcount: 32 * VECTOR, --use_fast_math: UNROLL}
verify: {rtol: '0 if DTYPE == "int32" else 1e-5', atol: 0}
work: {bytes: 4 * n, flops: n}
"""

SOURCE = """\
// ALGORITHM_SHUFLE in a comment counts for nothing
#if ALGORITHM == ALGORITHM_SHUFFLE
#endif
int block[BLOCK_SIZE * VECTOR];
"""


def write_space(folder: Path, text: str = YAML, source: str = SOURCE) -> Path:
    """Write the space file, its source and its reference; return the space file's path."""
    (folder / "reduce.cu").write_text(source)
    (folder / "reduce.py").write_text("def reference(inputs, sizes): ...\n")
    path = folder / "reduce.yaml"
    path.write_text(text)
    return path
