"""Imported results: what `compare` shows of them, what `adopt` makes of them, and that `best` serves none."""

import json
import shutil
from dataclasses import replace

import pytest

from autotune.cli import main
from autotune.serving.cache import device_text, read_device
from autotune.serving.lookup import best_config
from tests.recorded_files import CACHE, T4


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def nothing_cached(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))


def test_compare_shows_imported_results_and_marks_them(capsys):
    assert (
        run("import", CACHE, "--kernel", "convolution", "--device", "A4000", "--journal", "a4000.jsonl") == 0
    )
    assert "`autotune best` ignores them" in capsys.readouterr().out
    given = ("--dtype", "float32", "--size", "x=4096", "--size", "y=4096")
    assert run("compare", "convolution", "--imported", T4, "a4000.jsonl", *given) == 0
    shown = capsys.readouterr().out
    assert "a100 (imported) " in shown and "a4000 (imported) " in shown
    assert shown.count("imported, not verified") == 2
    assert run("compare", "convolution", "--imported", T4, "a4000.jsonl", *given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dtype"] == "float32" and found["sizes"] == {"x": 4096, "y": 4096}
    assert found["matrix"]["a100 (imported)"]["a4000 (imported)"] is not None


@pytest.fixture
def searched(searched_folder):
    """A folder with a result in its cache, and how to make another device's journal of its own."""
    folder = searched_folder
    (journal,) = (folder.path / "runs").iterdir()
    header, *rows = journal.read_text().splitlines(keepends=True)

    def journal_of(device, **changes):
        found = {**json.loads(header), "device": device, **changes}
        said = {name: value for name, value in found.items() if value is not None}
        path = folder.path / f"{device}.jsonl"
        path.write_text("".join([json.dumps(said, separators=(",", ":")) + "\n", *rows]))
        return path

    return folder, journal_of


def compared(folder, *arguments):
    done = folder.run("compare", "double", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return [one["device"] for one in found["devices"]], found["dtype"], done.stderr


@pytest.mark.parametrize("unsaid", [{}, {"dtype": None}, {"dtype": None, "sizes": None}])
def test_imported_results_stand_beside_those_of_the_cache(searched, unsaid):
    folder, journal_of = searched
    files = [journal_of(device, **unsaid) for device in ("Other", "Third")]
    for given in ((), ("--dtype", "int32"), ("--size", "n=1000")):
        devices, dtype, said = compared(folder, "--imported", *files, *given)
        assert (devices, dtype, said) == (["fake-gpu", "other (imported)", "third (imported)"], "int32", "")


def test_what_is_of_another_problem_is_named(searched):
    folder, journal_of = searched
    files = [journal_of("Other", dtype="float32"), journal_of("Third")]
    devices, _, said = compared(folder, "--imported", *files)
    assert devices == ["fake-gpu", "third (imported)"]
    assert said == "not compared, as their problems differ: other (imported) (float32 n=1000)\n"


def test_a_kernel_tuner_cache_stands_beside_the_result_of_the_same_numbers_on_the_same_machine(searched):
    """Its file names extents by their place and a device by its name, and no kind of device."""
    folder, journal_of = searched
    path = folder.path / "cache/fake-gpu/device.json"
    device = replace(read_device(str(path)), kind="cpu")
    path.write_text(device_text(device))
    for name, alike in ((device.name, [1000]), ("Some Machine", [1000]), ("Other", [999])):
        options = ("--format", "kernel-tuner", "--output", "theirs.json")
        assert folder.run("export", journal_of(name), *options).returncode == 0
        content = json.loads((folder.path / "theirs.json").read_text())
        content["problem_size"] = alike
        del content["problem_size_names"]
        (folder.path / "theirs.json").write_text(json.dumps(content))
        devices, _, said = compared(folder, "--imported", folder.path / "theirs.json")
        is_alike = alike == [1000]
        assert (len(devices) == 2) is is_alike, said
        assert ("known to be a CPU or a GPU" in said) is (device.name != name)
        assert ("their problems differ: other (imported) (int32 x=999)" in said) is not is_alike


def with_other_parameters(journal):
    journal.write_text(journal.read_text().replace('"A":', '"X":').replace('"B":', '"Y":'))
    return journal


def test_another_kernel_of_that_name_in_the_cache_is_left_out_and_named(searched):
    folder, journal_of = searched
    files = [with_other_parameters(journal_of(device)) for device in ("Other", "Third")]
    devices, _, said = compared(folder, "--imported", *files)
    assert devices == ["other (imported)", "third (imported)"]
    assert said == "not compared, as they have another kernel of this name: fake-gpu\n"


def test_imported_results_of_different_kernels_are_refused(searched):
    folder, journal_of = searched
    files = [journal_of("Other"), with_other_parameters(journal_of("Third"))]
    done = folder.run("compare", "double", "--imported", *files)
    assert (
        done.returncode == 2
        and "third (imported) and fake-gpu have different kernels of this name" in done.stderr
    )


def test_results_of_two_element_types_and_two_data_sets_are_kept_and_compared_apart(searched):
    folder, journal_of = searched
    problems = ({}, {"dtype": "float32"}, {"dtype": "float32", "data": "sorted"}, {"dtype": "../../x"})
    for changes in problems:
        done = folder.run("import", journal_of("Other", **changes))
        assert done.returncode == 0, done.stderr
    imported = sorted((folder.path / "runs").glob("double.other.*.imported.jsonl"))
    names = [path.name.removeprefix("double.other.n1000.") for path in imported]
    assert names == [f"{word}.imported.jsonl" for word in ("float32", "float32.sorted", "int32", "x")]
    devices, dtype, said = compared(folder, "--imported", *imported)
    assert (devices, dtype, said) == (["fake-gpu", "other (imported)"], "int32", "")


def test_best_serves_nothing_that_was_imported(capsys):
    assert run("import", T4) == 0
    assert run("compare", "convolution", "--imported", T4) == 0
    assert "convolution, unknown element type: the best" in capsys.readouterr().out
    assert run("best", "convolution", "--device", "NVIDIA A100", "--cache", "cache") != 0


@pytest.mark.parametrize("device", ["Fake GPU", "Some other GPU"])
def test_adopt_makes_a_verified_result_of_imported_ones(searched_folder, device):
    folder = searched_folder
    (journal,) = (folder.path / "runs").iterdir()
    exported = folder.path / "elsewhere.json"
    assert folder.run("export", journal, "--format", "t4", "-o", exported).returncode == 0
    for kept in ("cache", "runs"):
        shutil.rmtree(folder.path / kept)
    assert folder.run("import", exported, "--kernel", "double", "--device", device).returncode == 0
    assert folder.run("best", "double", "--device", "fake").returncode != 0
    done = folder.run(
        "search", "double.yaml", "--engine", "adopt", "--device", "fake", "--budget", "3", "--json"
    )
    assert done.returncode == 0, done.stderr
    best = best_config("double", "fake-gpu", cache=str(folder.path / "cache"), n=1000)
    assert dict(best) == {"A": 5, "B": 0} and best.provenance.is_probe


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((CACHE,), "expected results of 'convolution', found those of 'convolution_kernel'"),
        ((T4, T4), "has results of A100, unknown element type, and so has"),
        (("missing.json",), "missing.json"),
    ],
)
def test_files_that_cannot_be_compared_are_one_line(files, message, capsys):
    assert run("compare", "convolution", "--imported", *files) == 2
    assert message in capsys.readouterr().err
