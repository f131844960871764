"""Every command and snippet of the guides runs in a folder like a clone; blocks that need a GPU say so."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_docs import NEEDS, PAGES, ROOT, blocks, commands, guide_pages, pages

RUN_AS_SCRIPTS = {"first-kernel.md", "first-kernel-in-triton.md"}  # in test_docs.py
KERNEL = """\
#ifndef BLOCK
#define BLOCK 256
#endif
__global__ void scale(const float *x, float *y, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
# names that a guide leaves to its reader, and sizes and budgets that take long
INSTEAD = {
    r"runs/(FILE|A|B)\.jsonl": "runs/first.jsonl",
    r"\browsum\.yaml": "spaces/reduce.yaml",
    r"2\*\*(28|30)": "2**14",
    r"--budget (all|\d+)": "--budget 3",
    r"--compile\b": "--compile --budget 3",
    r"\bconvolution(?=\.yaml)": "spaces/convolution",
    r"convolution/A4000_T4(\S+) \S+": r"A100_T4\1",  # there is one device here
    r"compare convolution": "compare reduce",
    r"width=4096 --size height=4096": "n=65536",
    r"path/to/\S+": "tuned",
}
# the same in Python
INSTEAD_IN_PYTHON = {
    r"10_000_000": "10_000",
    r"range\(10, 31, 2\)": "range(10, 13, 2)",
    r"budget=200": "budget=3",
    r'dtypes=\["int32", "float32"\]': "budget=3",
    r"tune\(space\)": "tune(space, budget=3)",
}
# what a page leaves to its reader, before its snippets
GIVEN = {
    "coming-from-kernel-tuner.md": """
import numpy as np
from autotune.kernel_tuner import tune_kernel
a, b = np.random.rand(2, 10_000).astype(np.float32)
c = np.zeros_like(a)
tune_kernel("vector_add", "vector_add.cl", 10_000, [c, a, b, np.int32(10_000)], {"block_size_x": [32, 64]})
""",
    "production.md": """
import numpy as np
x = np.arange(1000, dtype=np.int32)
shapes = [(512, 512, 512)]
""",
}
# calls of what a snippet defines, by a part of it
CALLS = {
    "def inputs(sizes, rng):": 'inputs({"rows": 4, "nnz": 16}, np.random.default_rng(0))',
    'variant == "empty_rows"': 'inputs({"rows": 4, "nnz": 16}, np.random.default_rng(0), "empty_rows")',
    'variant == "one_long_row"': 'inputs({"rows": 4, "nnz": 16}, np.random.default_rng(0), "one_long_row")',
    "3 * np.sum": 'assert reference({"x": np.ones(4)}, {})["total"] == 12',
    'indices["forces"]': 'reference({"x": np.ones(4)}, {}, {"forces": [0, 3]})',
    '"brc,bc->br"': 'reference({"a": np.ones((2, 3, 4)), "x": np.ones((2, 4))}, {})',
}
VECTOR_ADD = """\
__kernel void vector_add(__global float *c, __global const float *a, __global const float *b, int n) {
    int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}
"""
EXITS_WITH_1 = {"autotune space spaces/reduce.yaml --config BLOCK_SIZE=96,UNROLL=4"}  # as its guide says
MORE = {"search": "--budget 3", "check": "--time 5", "devices": "--only launch"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder with a few spaces, the cache that comes with autotune, and results of a small search."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "spaces").mkdir()
    for name in ("reduce", "transpose", "convolution"):
        shutil.copy(ROOT / "spaces" / f"{name}.yaml", folder / "spaces")
    shutil.copytree(ROOT / "kernels", folder / "kernels")
    shutil.copytree(ROOT / "cache", folder / "cache")
    (folder / "scale.cu").write_text(KERNEL)
    (folder / "vector_add.cl").write_text(VECTOR_ADD)
    entry = '{"4": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1, '
    entry += '"num_warps": 4, "num_stages": 2}}'
    (folder / "tuned").mkdir()
    for place in (folder, folder / "tuned"):
        (place / "E=8,N=4096,device_name=NVIDIA_H100_80GB_HBM3.json").write_text(entry)
    first = "--size n=65536 --journal runs/first.jsonl --cache other --timeline t.json"
    run(folder, f"autotune search spaces/reduce.yaml --budget 25 {first}")
    run(folder, "autotune search spaces/reduce.yaml --budget 3")
    run(folder, "autotune export runs/first.jsonl --format t4 -o A100_T4.json.gz")
    run(folder, "autotune export runs/first.jsonl --format kernel-tuner -o cache.json")
    landmarks = run(folder, "autotune run spaces/reduce.yaml --landmarks --json --size n=65536")
    (folder / "reduce.json").write_text(landmarks)
    for node in ("node1", "node2"):
        shutil.copytree(folder / "runs", folder / node / "runs")
    return folder


def run(folder: Path, command: str, exit_code: int = 0) -> str:
    """Run a module, as `autotune` is one; what it prints."""
    words = shlex.split(command)
    words = [
        found for word in words for found in (sorted(map(str, folder.glob(word))) if "*." in word else [word])
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("AUTOTUNE_CACHE", None)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.wide
@pytest.mark.parametrize(
    "command",
    list(
        dict.fromkeys(
            command
            for page in guide_pages()
            if page.name not in RUN_AS_SCRIPTS
            for command in commands(page, here=True)
            if "--live" not in command  # serves until it is interrupted
        )
    ),
)
def test_a_command_of_the_guides_runs(clone, command):
    exit_code = int(command in EXITS_WITH_1)
    for old, new in INSTEAD.items():
        command = re.sub(old, new, command)
    run(clone, f"{command} {MORE.get(command.split()[1], '')}", exit_code)


def snippets(page: Path) -> list[str]:
    """The Python of a page that does not say that it needs what is not on every machine."""
    return [code for code in blocks(page, "python") if not code.startswith(NEEDS)]


@pytest.mark.wide
@pages([page for page in PAGES if snippets(page) and page.name not in RUN_AS_SCRIPTS])
def test_the_snippets_of_a_page_run(clone, page):
    """One after the other in one program, as in a notebook."""
    program = GIVEN.get(page.name, "")
    for code in snippets(page):
        calls = [call for part, call in CALLS.items() if part in code]
        program += "\n".join((code, *calls, ""))
    for old, new in INSTEAD_IN_PYTHON.items():
        program = re.sub(old, new, program)
    (clone / "snippets.py").write_text(program)
    run(clone, "snippets")
