"""Programs in Triton and flash-linear-attention start with the results that autotune writes for them.

The program runs without a GPU, with Triton's own look-up: see autotuned_program.py. `.ci/frameworks` has each
version of Triton whose cache is known, and flash-linear-attention.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.core.records import ArgumentSpec, Config, Entry, KernelRecord, LaunchSpec, Parameter
from autotune.frameworks.lint import BESIDE
from autotune.hardware.architectures import architecture
from autotune.recording.tunings import READ_BY, read_recorded
from autotune.serving.cache import store
from tests.cache_example import PROVENANCE

pytest.importorskip("triton")
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "autotuned_program.py"
VARIABLE = "AUTOTUNE_FRAMEWORKS"  # a folder with packages
SITE = Path(os.environ.get(VARIABLE, ""))
FLA_READER = SITE / "fla/ops/utils/cache.py"
TRITONS = [SITE / f"triton-{version}" for version in READ_BY] if VARIABLE in os.environ else [None]
H200 = replace(architecture("sm_90").device, name="NVIDIA H200", slug="nvidia-h200")
TUNED = Config({"block": 2048, "num_warps": 16})  # not in the program's list
LISTED = Config({"block": 256, "num_warps": 4})  # what the program chooses by itself


def result(n, config=TUNED, ties=()):
    """A result for one size."""
    return Entry({"n": n}, "float32", config, 0.01, (0.009, 0.011), 0.02, tuple(ties), PROVENANCE)


class Desk:
    """A folder with a cache, a program, and the command line."""

    def __init__(self, folder, triton, capsys=None):
        self.folder, self.capsys = folder, capsys
        self.triton_cache = folder / "triton"
        paths = [*([str(triton)] if triton else []), str(ROOT)]
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "TRITON_CACHE_DIR": str(self.triton_cache),
            "AUTOTUNE_CACHE": str(folder / "cache"),
        }

    def python(self, *words):
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def record(self, *sizes):
        """Run the program under `autotune record` with an empty cache of Triton's."""
        said = self.python("-m", "autotune", "record", "--", sys.executable, PROGRAM, *sizes)
        for path in self.triton_cache.rglob("*.autotune.json"):
            path.unlink()
        return said

    def run(self, *sizes):
        """The number of timed configurations, and what each launch of `scale` used."""
        found = json.loads(self.python(PROGRAM, *sizes))
        return found["timed"], [constants for name, constants in found["launched"] if name == "scale"]

    def cached(self, *entries, function="scale", constants=("block", "num_warps", "even"), when="True"):
        """Store results of a kernel."""
        record = KernelRecord(
            kernel="double",
            dtypes=("float32",),
            parameters=(Parameter("block", (256, 2048)), Parameter("num_warps", (4, 16))),
            constraints=(),
            derived={"even": "n % block == 0"},
            compiler_options={},
            arguments=(
                ArgumentSpec("a", "DTYPE", "in", ("n",)),
                ArgumentSpec("b", "DTYPE", "out", ("n",)),
                ArgumentSpec("n", "int32", "scalar", (), "n"),
            ),
            launch=(LaunchSpec(function, ("1",), (), ("a", "b", "n"), when=when, constants=constants),),
            default=LISTED,
            entries=entries,
        )
        store(self.folder / "cache", H200, record)

    def export(self, *words, form="triton-cache"):
        recorded = self.folder / "recorded.json"
        cache = self.folder / "cache"
        code = main(
            ["export", "double", "--format", form, "--recorded", str(recorded), "--cache", str(cache), *words]
        )
        out, err = self.capsys.readouterr()
        return code, out + err


@pytest.fixture(scope="module", params=TRITONS, ids=lambda one: one.name if one else "installed")
def recording(request, tmp_path_factory):
    """The program recorded with n = 1000, by one version of Triton."""
    desk = Desk(tmp_path_factory.mktemp("recorded"), request.param)
    desk.record(1000)
    path = desk.folder / "recorded.json"
    if request.param:
        assert {one.triton for one in read_recorded(path)} == {
            f"{request.param.name.removeprefix('triton-')}.0"
        }
    return request.param, path


@pytest.fixture
def desk(recording, tmp_path, capsys):
    triton, recorded = recording
    shutil.copy(recorded, tmp_path)
    return Desk(tmp_path, triton, capsys)


def test_a_program_takes_the_result_and_times_nothing(desk):
    said = desk.record(1000, 4096)
    assert "scale: 2 keys" in said and "1000, torch.float32, torch.float32" in said
    desk.cached(result(1000), result(4096, LISTED))
    before, _ = desk.run(1000)
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 0, said
    assert said.count("tuned scale (") == 2
    timed, (first, second) = desk.run(1000, 4096)
    assert timed == 2 * (2 + 2) - 2  # the hooked kernel's at both sizes, the keyless one's once
    assert before == 2 + 2 + 2
    assert (first["block"], first["num_warps"], first["even"]) == (2048, 16, False)
    assert (second["block"], second["num_warps"]) == (256, 4)
    beside = json.loads(next(desk.triton_cache.rglob(f"*{BESIDE}")).read_text())
    assert beside["kernel"] == "double"


def test_what_the_program_chose_stays_if_it_is_not_slower(desk):
    desk.cached(result(1000, ties=[LISTED]))
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 0 and "keep what was served before" in said
    assert desk.run(1000)[1][0]["block"] == 256


def test_an_installed_file_is_kept_and_put_back(desk, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(desk.triton_cache))
    desk.run(1000)
    (path,) = desk.triton_cache.rglob("scale.autotune.json")
    own = path.read_text()
    desk.cached(result(1000))
    assert desk.export("--install")[0] == 0 and "2048" in path.read_text()
    assert main(["export", "double", "--format", "triton-cache", "--restore"]) == 0
    assert path.read_text() == own and not [*desk.triton_cache.rglob(f"*{BESIDE}")]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("hooked", "pre_hook"),
        ("single", "one configuration"),
        ("keyless", "key is empty"),
        ("unknown", "the recorded file has no call of unknown"),
    ],
)
def test_a_kernel_that_never_takes_a_result_is_refused_with_the_reason(desk, function, reason):
    desk.cached(result(1000), function=function, constants=("block", "num_warps"))
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 2 and reason in said
    assert not [*desk.triton_cache.rglob("*.autotune.json")]


def test_a_key_without_a_result_is_named_and_the_others_are_written(desk):
    desk.record(1000, 4096)
    desk.cached(result(1000))
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 0 and "left out: scale (4096, torch.float32, torch.float32): no result for n=4096" in said
    assert len([*desk.triton_cache.rglob("*.autotune.json")]) == 1


def test_a_result_that_launches_another_kernel_is_refused(desk):
    desk.cached(result(1000), when="block < 1024")
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 2 and "the best configuration does not launch scale: block=2048" in said


def recorded_with(desk, **changes):
    """Change a recorded file as a hand would."""
    path = desk.folder / "recorded.json"
    found = json.loads(path.read_text())
    for one in found["tunings"]:
        one.update(changes)
    path.write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"triton": "3.7.1"}, "expected Triton 3.6 or 3.9, whose cache is known, found 3.7.1"),
        ({"target": "cuda:80"}, "the program ran on sm_80, but double has results of no sm_80"),
        ({"parameters": ["block", "SPLIT"]}, "configurations set SPLIT, which the space does not"),
        ({"parameters": []}, "do not set block"),
        ({"scalars": {"n": 1000, "even": True}}, "passes even=True, but the result is for False"),
        ({"scalars": {}}, "the call's arguments are not those of the space"),
    ],
)
def test_a_program_that_could_not_take_the_result_is_refused(desk, changes, reason):
    desk.cached(result(1000))
    recorded_with(desk, **changes)
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 2 and reason in said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 1}',
        '{"schema": 2, "tunings": []}',
        '{"schema": 1, "tunings": [{}]}',
        "\xff",
        "[" * 9999,
    ],
)
def test_a_damaged_recorded_file_is_refused(desk, text):
    desk.cached(result(1000))
    (desk.folder / "recorded.json").write_text(text, encoding="latin-1")
    code, said = desk.export("-o", str(desk.triton_cache))
    assert code == 2 and "is no file of `autotune record`" in said


@pytest.mark.parametrize(
    "changes",
    [
        {"function": "../x"},
        {"digest": "../x"},
        {"digest": "F" * 64},
        {"key": [[1]]},
        {"arrays": {"x": 1}},
        {"seconds": -1},
    ],
)
def test_a_recorded_file_cannot_name_other_places_or_hold_other_values(desk, changes):
    recorded_with(desk, **changes)
    desk.cached(result(1000))
    assert desk.export("-o", str(desk.triton_cache))[0] == 2


def test_a_second_program_adds_to_the_file(desk):
    desk.record(1000, 4096)
    keys = [one.key[0] for one in read_recorded(desk.folder / "recorded.json") if one.function == "scale"]
    assert keys == [1000, 4096]


def test_a_file_of_fla_keeps_its_other_entries(desk, tmp_path):
    desk.cached(result(1000))
    path = tmp_path / "fla" / "scale.json"
    path.parent.mkdir()
    other = {
        "autotune_key": [7],
        "config": {"kwargs": {"block": 64}, "num_warps": 1, "num_stages": 1, "num_ctas": 1},
    }
    path.write_text(json.dumps({"default_config": other["config"], "autotune_entries": {"ab": other}}))
    code, said = desk.export("-o", str(path.parent), form="fla")
    assert code == 0 and "left ab as they were" in said
    found = json.loads(path.read_text())
    assert found["default_config"] == other["config"] and found["autotune_entries"].pop("ab") == other
    ((_, entry),) = found["autotune_entries"].items()
    assert entry["config"]["kwargs"] == {"block": 2048} and entry["config"]["num_warps"] == 16
    assert found["kernel_name"] == "scale"


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"autotune_entries": []}', '{"autotune_entries": {"a": {}}}', '{"default_config": 1}'],
)
def test_a_file_that_fla_would_not_read_is_not_replaced(desk, tmp_path, text):
    desk.cached(result(1000))
    path = tmp_path / "fla" / "scale.json"
    path.parent.mkdir()
    path.write_text(text)
    code, said = desk.export("-o", str(path.parent), form="fla")
    assert code == 2 and "fla would not read it" in said and path.read_text() == text


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no folder of packages")
@pytest.mark.parametrize("mode", ["strict", "fuzzy"])
def test_the_look_up_of_fla_takes_the_result(desk, mode):
    desk.cached(result(1000))
    assert desk.export("-o", str(desk.folder / "fla"), form="fla")[0] == 0
    desk.environment |= {
        "FLA_READER": str(FLA_READER),
        "FLA_CACHE_MODE": mode,
        "FLA_CONFIG_DIR": str(desk.folder / "fla"),
        "FLA_GPU_NAME": "NVIDIA_H200",
    }
    timed, (first, second) = desk.run(1000, 4096)
    assert (first["block"], first["num_warps"]) == (2048, 16)
    assert second["block"] == (2048 if mode == "fuzzy" else 256)
    assert timed == 2 * 2 + 2 + (0 if mode == "fuzzy" else 2)
