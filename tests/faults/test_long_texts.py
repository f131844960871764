"""Sources with 2,500 of the same sign or comment line: every reader takes a moment, and none hangs."""

import signal
import subprocess
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

from autotune.compilers.host_code import device_part
from autotune.compilers.source_text import missing_headers, perturbed, read_source, render
from autotune.devices.fake import list_devices
from autotune.errors import AutotuneError
from autotune.scaffold import scaffold
from autotune.sources.bare_code import bare_lines
from autotune.sources.triton_module import is_triton, triton_part
from autotune.space import bind, lint_source, load_space, problem_of
from tests.conftest import LIMIT_S

MAX_CPU_S = 1  # for one reader of one text, which takes a tenth of that; exponential time never ends
COUNT = 2500
PIECES = [*"/* \"'([{\n", "// note \n", "/* note */\n", "*/ "]
PLACES = (0, 2, 3)  # before the code, in a kernel, and after it
PARTS = {
    "cl": (
        "#ifndef WPT\n#define WPT 1\n#endif\n",
        "__kernel void add(__global float *y, __global const float *x, int n) {\n",
        "int i = get_global_id(0) * WPT;\nif (i < n) y[i] = x[i] + 2.0f;\n}\n",
    ),
    "cu": (
        '#include "portable.h"\n#ifndef WPT\n#define WPT 1\n#endif\n',
        "template <int B>\n__global__ void add(float *y, const float *x, int n) {\n",
        "int i = blockIdx.x * B + threadIdx.x;\nif (i < n) y[i] = x[i] + WPT;\n}\n"
        "int main() { add<32><<<8, 32>>>(0, 0, 1); }\n",
    ),
    "py": (
        "import triton\nimport triton.language as tl\n",
        "@triton.jit\ndef add(x, y, n, B: tl.constexpr):\n",
        "    i = tl.program_id(0) * B + tl.arange(0, B)\n    tl.store(y + i, tl.load(x + i))\n",
    ),
}
SPACE = """\
schema: 1
kernel: add
dialect: {dialect}
source: add.{suffix}
reference: reference.py
sizes: {{default: {{n: 1024}}}}
dtypes: [float32]
parameters: {{WPT: [1, 2], B: [32, 64]}}
default: {{WPT: 1, B: 32}}
arguments:
  - {{name: y, dtype: float32, shape: [n], role: out}}
  - {{name: x, dtype: float32, shape: [n], role: in, fill: {{uniform: [0, 1]}}}}
  - {{name: n, dtype: int32, value: n}}
launch:
  - {{entry: add, grid: ["ceil_div(n, B)"], block: [B], arguments: [y, x, n]}}
"""


def read(file, text):
    file.write_text(text)
    source = read_source(file)
    missing_headers(file)
    perturbed(render(source, {"WPT": 1}), 1)


def new(file, text):
    own = device_part(text)
    scaffold(file.name, "add", own, own=own, host=text if file.suffix == ".cu" else "")


def lint(file, text):
    (file.parent / "reference.py").write_text("")
    dialect = {".cl": "opencl", ".cu": "cuda"}[file.suffix]
    path = file.with_suffix(".yaml")
    path.write_text(SPACE.format(dialect=dialect, suffix=file.suffix[1:]))
    spec, device = load_space(path), list_devices()[0]
    lint_source(bind(spec, device, problem_of(spec, device)), text)


def triton(file, text):
    bare_lines(text, is_python=True)
    if is_triton(text):
        triton_part(text, file)


def main(folder: Path) -> None:
    """Read every text with every reader, naming each first; the system ends a process that takes too long."""
    for (suffix, parts), piece, place in product(PARTS.items(), PIECES, PLACES):
        file = folder / f"add.{suffix}"
        text = "".join((*parts[:place], piece * COUNT, "\n", *parts[place:]))
        for reader in (triton,) if suffix == "py" else (read, new, lint):
            sys.stdout.write(f"{reader.__name__} of {suffix} with {piece!r} at {place}\n")
            sys.stdout.flush()
            signal.setitimer(signal.ITIMER_VIRTUAL, MAX_CPU_S)
            with suppress(AutotuneError):
                reader(file, text)


def test_no_reader_of_sources_takes_long_for_many_of_the_same_sign(tmp_path, root):
    command = [sys.executable, "-m", "tests.faults.test_long_texts", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=LIMIT_S)
    read = done.stdout.splitlines()
    assert done.returncode == 0, (read[-1:], done.stderr[-2000:])
    assert len(read) == len(PIECES) * len(PLACES) * 7


if __name__ == "__main__":
    main(Path(sys.argv[1]))
