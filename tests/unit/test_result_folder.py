"""Two kernels of one name that share a cache: the second search says so."""

import json
import shutil

import pytest

from tests.conftest import KERNEL, Folder

BUDGET = ("--budget", "3")
ANOTHER = KERNEL.replace("2 *", "1 * 2 *")


@pytest.fixture
def both(tmp_path):
    """A folder with results of its own kernel, and another folder with a kernel of that name in it."""
    first = Folder(tmp_path)
    first.search(*BUDGET)
    (tmp_path / "other").mkdir()
    other = Folder(tmp_path / "other")
    other.write(ANOTHER)
    return first, other


def warned(folder, space, *options):
    journal = ("--journal", f"runs/{len(list(folder.path.glob('runs/*')))}.jsonl")
    done = folder.run("search", space, "--device", "fake", *BUDGET, *journal, *options)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "another kernel" in line]


def test_a_search_warns_of_results_of_another_kernel_of_that_name(both):
    first, _ = both
    assert warned(first, "other/double.yaml") == [
        "warning: cache/fake-gpu/double.json has results of another kernel named double (double.py); "
        "results of this one (other/double.py) go to the same file and replace those of the same sizes: "
        "rename one of the kernels, or choose another folder with --cache (cache= in Python)"
    ]
    assert "double (other/double.py); results of this one (double.py) go" in warned(first, "double.yaml")[0]


def test_a_result_with_other_arguments_is_not_stored_over_one(both):
    first, _ = both
    record = first.path / "cache/fake-gpu/double.json"
    content = json.loads(record.read_text())
    for argument in content["arguments"]:
        argument["name"] = f"argument_{argument['name']}"
    content["launch"][0]["arguments"] = [argument["name"] for argument in content["arguments"]]
    stored = json.dumps(content)
    record.write_text(stored)
    done = first.run("search", "double.yaml", "--device", "fake", *BUDGET, "--journal", "runs/other.jsonl")
    assert done.returncode == 2 and "with other sizes or arguments: n, argument_x" in done.stderr
    assert record.read_text() == stored and not (first.path / "runs/other.jsonl").exists()


def test_a_sweep_warns_as_well(both):
    done = both[0].run("search", "other/double.yaml", "--device", "fake", *BUDGET, "--sweep", "n=100:200:x2")
    assert done.returncode == 0 and done.stderr.count("another kernel named double") == 1


def test_an_edited_a_copied_and_a_moved_source_are_the_same_kernel(both):
    first, other = both
    first.write(ANOTHER)
    assert not warned(first, "double.yaml")
    assert not warned(first, "other/double.yaml"), "a copy"
    other.write(KERNEL)
    shutil.move(other.path, first.path / "moved")
    assert not warned(first, "moved/double.yaml")


def test_where_a_source_is_no_file_the_parameters_tell(both):
    first, other = both
    record = first.path / "cache/fake-gpu/double.json"
    text = record.read_text()
    assert '"source": "../double.py"' in text
    record.write_text(text.replace('"source": "../double.py"', '"source": ""'))
    assert not warned(first, "other/double.yaml")
    record.write_text(text.replace('"source": "../double.py"', '"source": ""'))
    other.space.write_text(other.space.read_text().replace("B", "C"))
    other.write(ANOTHER.replace("B", "C"))
    assert (
        "kernel named double; results of this one (other/double.py) go"
        in warned(first, "other/double.yaml")[0]
    )
