"""`autotune.triton.tuned`: which constants a call gets; a recorder stands for the function."""

import re
import warnings
from dataclasses import replace
from inspect import Parameter, Signature
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from autotune.compilers.source_text import read_source
from autotune.core.records import Config, Entry
from autotune.errors import InputError, NoConfig
from autotune.hardware.architectures import architecture
from autotune.runtime.background_tuning import BackgroundTuning
from autotune.runtime.call_maker import StaleWarning
from autotune.serving.cache import store
from autotune.space import load_space
from autotune.triton import tuned
from autotune.tuning.cache_entry import record_of
from tests.cache_example import PROVENANCE

SPACE = Path(__file__).parents[2] / "spaces" / "triton_softmax.yaml"
DEVICE = architecture("sm_90").device


class Recorder:
    """Takes launches as a function under @triton.jit does."""

    arg_names = ("x", "y", "m", "n", "ROWS", "BLOCK", "ONE_STEP")

    def __init__(self, name="softmax", constant=("ROWS", "BLOCK", "ONE_STEP")):
        self.__name__ = name
        self.launched = []
        kinds = ("tl.constexpr" if one in constant else Parameter.empty for one in self.arg_names)
        taken = zip(self.arg_names, kinds, strict=True)
        parameters = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for one, kind in taken]
        self.fn = lambda: None
        self.fn.__signature__ = Signature(parameters)

    def __getitem__(self, grid):
        return lambda *arguments, **named: self.launched.append((grid, arguments, named))


def array(rows, columns, dtype="float16"):
    return SimpleNamespace(shape=(rows, columns), dtype=f"torch.{dtype}", device=DEVICE)


@pytest.fixture
def cache(tmp_path):
    spec = load_space(SPACE)
    best = Config({"ROWS": 1, "BLOCK": 4096, "num_warps": 8, "num_stages": 1})
    sizes = {"m": 64, "n": 4096}
    origin = replace(PROVENANCE, driver=DEVICE.driver, runtime=DEVICE.runtime)
    entry = Entry(sizes, "float16", best, 1.0, (0.9, 1.1), 2.0, (), origin)
    store(tmp_path, DEVICE, record_of(spec, "", entry))
    return tmp_path


JIT = """
import triton
import triton.language as tl

@triton.jit
def softmax(x, y, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, ONE_STEP: tl.constexpr):
    tl.store(y, tl.load(x) + 1)
"""


@pytest.mark.parametrize(
    ("tuned_now", "program_now", "reason"),
    [
        (JIT, JIT.replace("import triton\n", "import os, triton\nprint(os.name)\n"), ""),
        (JIT, JIT + "softmax = tuned('softmax')(softmax)\n", ""),
        (
            JIT,
            JIT.replace("+ 1", "+ 2"),
            r"softmax in .*program.py is not that of .*softmax.py, which was tuned",
        ),
        (JIT.replace("+ 1", "+ 2"), JIT, "softmax.py is not the source that was tuned"),
    ],
    ids=["the same kernel", "its name is bound again", "the program's was edited", "the file was edited"],
)
def test_a_kernel_that_is_not_the_one_that_was_tuned_is_told(tmp_path, tuned_now, program_now, reason):
    source, program = tmp_path / "softmax.py", tmp_path / "program.py"
    source.write_text(JIT)
    origin = replace(PROVENANCE, source_sha256=read_source(source, []).sha256)
    origin = replace(origin, driver=DEVICE.driver, runtime=DEVICE.runtime)
    best = Config({"ROWS": 1, "BLOCK": 4096, "num_warps": 8, "num_stages": 1})
    entry = Entry({"m": 64, "n": 4096}, "float16", best, 1.0, (0.9, 1.1), 2.0, (), origin)
    store(tmp_path / "cache", DEVICE, record_of(load_space(SPACE), "../softmax.py", entry))
    source.write_text(tuned_now)
    program.write_text(program_now)
    function = Recorder()
    names = {}
    exec(compile("def softmax(): ...", str(program), "exec"), names)
    names["softmax"].__signature__ = function.fn.__signature__
    function.fn = names["softmax"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuned("triton_softmax", cache=tmp_path / "cache")(function)[(64,)](*[array(64, 4096)] * 2, 64, 4096)
    told = [str(one.message) for one in caught if one.category is StaleWarning]
    assert len(told) == bool(reason) and all(re.search(reason, one) for one in told)


def test_a_call_gets_the_constants_of_the_cache_and_of_its_sizes(cache):
    function = Recorder()
    kernel = tuned("triton_softmax", cache=cache)(function)
    x, y = array(64, 4096), array(64, 4096)
    kernel[(64,)](x, y, 64, 4096)
    kernel[(64,)](x, y, m=64, n=2**20)
    (grid, arguments, first), (_, _, second) = function.launched
    assert (grid, arguments) == ((64,), (x, y, 64, 4096))
    assert first == {"ROWS": 1, "BLOCK": 4096, "ONE_STEP": True, "num_warps": 8, "num_stages": 1}
    assert second["ONE_STEP"] is False


def test_a_constant_of_the_caller_does_not_shift_the_sizes(cache):
    class WithAnother(Recorder):
        arg_names = ("x", "y", "MASKED", "m", "n", "ROWS", "BLOCK", "ONE_STEP")

    kernel = tuned("triton_softmax", cache=cache)(
        WithAnother(constant=("MASKED", "ROWS", "BLOCK", "ONE_STEP"))
    )
    served = kernel.constants(array(64, 4096), array(64, 4096), True, 64, 2**20)
    assert served["ONE_STEP"] is False  # a row of 2**20 numbers


def test_options_of_a_call_come_before_those_of_the_cache(cache):
    function = Recorder()
    tuned("triton_softmax", cache=cache)(function)[(1,)](*[array(64, 4096)] * 2, 64, 4096, num_warps=16)
    assert function.launched[0][2]["num_warps"] == 16


def test_a_new_result_is_served_to_the_same_call(cache, monkeypatch):
    monkeypatch.setattr("autotune.triton.CHECK_S", -1.0)
    kernel = tuned("triton_softmax", cache=cache)(Recorder())
    given = (array(64, 4096), array(64, 4096), 64, 4096)
    assert kernel.constants(*given)["num_warps"] == 8
    spec = load_space(SPACE)
    origin = replace(PROVENANCE, driver=DEVICE.driver, runtime=DEVICE.runtime)
    better = Config({"ROWS": 1, "BLOCK": 4096, "num_warps": 4, "num_stages": 1})
    entry = Entry({"m": 64, "n": 4096}, "float16", better, 0.5, (0.4, 0.6), 2.0, (), origin)
    later = replace(entry, provenance=replace(entry.provenance, tuned_at="2026-03-01T12:00:00+00:00"))
    store(cache, DEVICE, record_of(spec, "", later))
    assert kernel.constants(*given)["num_warps"] == 4


def test_a_size_without_a_result_is_tuned_in_the_background_where_that_is_asked_for(cache, monkeypatch):
    asked = SimpleQueue()
    monkeypatch.setattr(BackgroundTuning, "_search", lambda self, words: asked.put((self._space, *words)))
    kernel = tuned("triton_softmax", cache=cache, on_miss="tune", space="own.yaml")(Recorder())
    kernel.constants(array(64, 4096), array(64, 4096), 64, 4096)
    kernel.constants(array(64, 4096), array(64, 4096), 64, 2**20)
    expected = ("own.yaml", f"--device={DEVICE.slug}", "--dtype=float16", "--size=m=64", f"--size=n={2**20}")
    assert asked.get(timeout=60) == expected
    assert asked.empty()


def test_another_function_and_a_kernel_without_results_are_refused(cache):
    with pytest.raises(InputError, match="launches softmax, not the Triton function other"):
        tuned("triton_softmax", cache=cache)(Recorder("other"))
    with pytest.raises(NoConfig):
        tuned("nothing_of_this_name", cache=cache)(Recorder())
