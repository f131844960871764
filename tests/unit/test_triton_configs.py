"""The list of `@triton.autotune` is read from the file's text, and nothing of the file is run."""

import ast

import pytest

from autotune.sources.triton_module import TritonModule
from autotune.sources.triton_values import NotRead
from tests.conftest import run_in_process

KERNEL = """
@triton.autotune(configs={configs}, key=["n"])
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)
"""
HEAD = "import os\nimport triton\nimport triton.language as tl\nfrom itertools import product\n"
TUTORIAL = """
def is_cuda():
    "As the tutorials have it."
    return triton.runtime.driver.active.get_current_target().backend == "cuda"
def for_cuda():
    return [triton.Config({"BLOCK": 128}, num_stages=3, num_warps=8),
            triton.Config({"BLOCK": 64}, 4, pre_hook=lambda nargs: os.abort())]
def for_hip():
    return [triton.Config({"BLOCK": 32, "waves_per_eu": 2})]
def all_of_them():
    if is_cuda():
        return for_cuda()
    else:
        return for_hip()
"""
FILTERED = """
configs = [triton.Config({"BLOCK": b}, num_warps=w) for b in [64, 128] for w in (2, 4) if b > 64 or w < 4]
configs += [triton.Config(kwargs=dict(BLOCK=2 ** n)) for n in range(3, 5)]
def keep(config):
    BLOCK = config.kwargs["BLOCK"]
    return not (BLOCK == 128 and config.num_warps == 2)
"""
LISTS = {
    "[triton.Config({'BLOCK': 64, 'EVEN': True}, num_warps=4, num_ctas=1)]": (
        "",
        [{"BLOCK": 64, "EVEN": True, "num_warps": 4, "num_ctas": 1}],
    ),
    "all_of_them()": (
        TUTORIAL,
        [{"BLOCK": 128, "num_stages": 3, "num_warps": 8}, {"BLOCK": 64, "num_warps": 4}],
    ),
    "list(filter(keep, configs))": (
        FILTERED,
        [*({"BLOCK": b, "num_warps": w} for b, w in ((64, 2), (128, 4))), {"BLOCK": 8}, {"BLOCK": 16}],
    ),
    "[triton.Config({'BLOCK': b}, num_warps=w) for b, w in product([1, 2], [4])]": (
        "",
        [{"BLOCK": 1, "num_warps": 4}, {"BLOCK": 2, "num_warps": 4}],
    ),
    "[triton.Config(dict(BLOCK=SIZES[name])) for name in SIZES if torch.version.hip is None]": (
        "SIZES = {**{'a': 1}, 'b': 2 if torch.cuda.get_device_capability()[0] >= 9 else 3}\n",
        [{"BLOCK": 1}, {"BLOCK": 2}],
    ),
    "[triton.Config({'BLOCK': 1 if platform.is_rocm() else 2})]": ("", [{"BLOCK": 2}]),
    "chosen()": (
        "from a_framework import is_npu_available, newer\n"
        "def chosen():\n    if newer('3.0') and not is_npu_available():\n"
        "        return [triton.Config({'BLOCK': 8})]\n    return [triton.Config({'BLOCK': 16})]\n",
        [{"BLOCK": 8}],
    ),
}
RUNNING = [
    ("made()", "def made():\n    open('hit', 'w')\n    return []\n"),
    ("made()", "def made():\n    while True: pass\n"),
    ("made()", "def made():\n    raise SystemExit\n"),
    ("made()", "def made(): return made()\n"),
    ("made()", "@open('hit', 'w').write\ndef made(): return []\n"),
    ("made(open('hit', 'w'))", "def made(file): return []\n"),
    ("[triton.Config({'BLOCK': open('hit', 'w')})]", ""),
    ("(lambda: open('hit', 'w'))()", ""),
    ("[__import__('os').abort()]", ""),
    ("eval('1')", ""),
    ("os.environ['X']", ""),
    ("[c for c in ().__class__.__base__.__subclasses__()]", ""),
    ("[triton.Config({'BLOCK': 9 ** 9 ** 9})]", ""),
    ("[triton.Config({'BLOCK': 'x' * 10 ** 12})]", ""),
    ("[triton.Config({'BLOCK': max(range(10 ** 12))})]", ""),
    ("list(product([1, 2], repeat=10 ** 9))", ""),
    ("list(product(*[range(1000)] * 9))", ""),
    ("[a for a in range(1000) for b in range(1000) for c in range(1000) if a + b + c < 0]", ""),
    ("sizes", "sizes = []\nfor n in range(3):\n    sizes.append(triton.Config({'BLOCK': n}))\n"),
    ("sizes", "try:\n    sizes = []\nexcept Exception:\n    open('hit', 'w')\n"),
    ("sizes", "class Odd:\n    open('hit', 'w')\nsizes = Odd\n"),
    ("3", ""),
    ("[3]", ""),
    ("[triton.Config({'BLOCK': [1]})]", ""),
    ("[triton.Config({'BLOCK': torch.cuda})]", ""),
    ("[" * 150 + "]" * 150, ""),
    ("sizes", "sizes = [triton.Config({'BLOCK': 1})]\nsizes.append(triton.Config({'BLOCK': 2}))\n"),
    ("[]", ""),
    ("[triton.Config(3)]", ""),
    ("[triton.Config({1: 2}).nothing]", ""),
    ("missing", ""),
    ("[1 / 0]", ""),
    ("min()", ""),
]


def read_configs(path, text):
    return TritonModule(path.read_text(), path).reader.configs(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(("text", "found"), LISTS.items())
def test_the_lists_that_people_write_are_read(tmp_path, text, found):
    head, expected = found
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + head + KERNEL.format(configs=text))
    assert read_configs(path, text) == expected


@pytest.mark.parametrize(("text", "head"), RUNNING)
def test_nothing_of_the_file_runs_and_no_list_takes_long(tmp_path, monkeypatch, text, head):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + head + KERNEL.format(configs="[]"))
    with pytest.raises(NotRead):
        read_configs(path, text)
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.py"]


def test_new_says_what_it_did_not_read(tmp_path):
    (tmp_path / "add.py").write_text(HEAD + "import sys\n" + KERNEL.format(configs="sys.exit(0)"))
    done = run_in_process(tmp_path, "new", "add.py")
    assert done.returncode == 0, done.stderr
    said = "the list of @triton.autotune was not read, for nothing of the file is run: add.py:7: sys; "
    assert said in done.stdout
    assert (
        "# the list of @triton.autotune was not read: add.py:7: sys\n" in (tmp_path / "add.yaml").read_text()
    )


def test_new_writes_the_configurations_that_it_read(tmp_path):
    (tmp_path / "add.py").write_text(HEAD + TUTORIAL + KERNEL.format(configs="all_of_them()"))
    done = run_in_process(tmp_path, "new", "add.py")
    assert "2 configurations of @triton.autotune became landmarks" in done.stdout, done.stderr
    space = (tmp_path / "add.yaml").read_text()
    assert "config_0: {BLOCK: 128, num_warps: 8, num_stages: 3}" in space


def test_new_names_the_search_of_all_combinations_that_are_no_landmarks(tmp_path):
    configs = "[triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 128, 256, 512) for w in (1, 2, 4)]"
    (tmp_path / "add.py").write_text(HEAD + KERNEL.format(configs=configs))
    done = run_in_process(tmp_path, "new", "add.py")
    said = " ".join(done.stdout.split())
    assert "verify all without a GPU: autotune search add.yaml --device interpreter --budget 12" in said
