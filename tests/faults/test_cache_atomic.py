"""The cache under kill -9 and under several writers at once."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.serving import cache
from autotune.serving.lookup import best_config
from tests.cache_example import DEVICE, entry, record

PROGRAM = """\
import sys
from autotune.serving import cache
from tests.cache_example import DEVICE, entry, record
root, first, step, count = sys.argv[1], *map(int, sys.argv[2:])
for n in range(first, first + step * count, step):
    cache.store(root, DEVICE, record(entry(n)))
    print(n, flush=True)
"""


def writer(root: Path, first: int, step: int, count: int) -> subprocess.Popen:
    """A process that stores sizes one after the other and says each one once it is stored."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root), str(first), str(step), str(count)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


def sizes(root: Path) -> list[int]:
    """The sizes in the file."""
    held = cache.read_record(cache.record_path(str(root), DEVICE.slug, "reduce"))
    return [each.sizes["n"] for each in held.entries]


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files too."""
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 13, 21])
def test_a_writer_that_is_killed_leaves_a_whole_file_and_the_next_one_goes_on(tmp_path, lines):
    process = writer(tmp_path, 1, 1, 100_000)
    said = [int(process.stdout.readline()) for _ in range(lines)]
    time.sleep(lines * 1e-4)  # to be caught at ever other places of a store
    process.send_signal(signal.SIGKILL)
    said += [int(line) for line in process.stdout]
    process.wait()
    held = sizes(tmp_path)
    assert held == list(range(1, len(held) + 1))
    assert len(held) - len(said) in (0, 1)  # the last one may be stored and not yet said

    cache.store(tmp_path, DEVICE, record(entry(10**6)))
    assert sizes(tmp_path) == [*held, 10**6]
    assert names(tmp_path / DEVICE.slug) == ["device.json", "reduce.json"]


def test_writers_at_once_lose_nothing_and_readers_see_whole_files_only(tmp_path):
    cache.store(tmp_path, DEVICE, record(entry(10**6)))
    writers = [writer(tmp_path, first, 3, 40) for first in (1, 2, 3)]
    seen = [0]
    while any(process.poll() is None for process in writers):
        assert best_config("reduce", DEVICE, n=10**6, cache=tmp_path, strict=True)["BLOCK"] == 64
        seen.append(len(sizes(tmp_path)))
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    assert sizes(tmp_path) == [*range(1, 121), 10**6]
    assert seen == sorted(seen)
    assert names(tmp_path / DEVICE.slug) == ["device.json", "reduce.json"]


def test_a_search_does_not_replace_the_better_result_of_one_that_ended_before_it(folder):
    """The first tries the default only; its last round waits until the second has stored the best."""
    folder.write("""\
import os, time
from pathlib import Path

def double(grid, block, x, y, n):
    tried = "HOLD" in os.environ and len(Path("first.jsonl").read_text().splitlines()) > 1
    while tried and not Path("go").exists():
        Path("held").touch()
        time.sleep(0.05)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
""")
    command = ["search", "double.yaml", "--device", "fake", "--json", "--timeout", "200"]
    alone = ["--budget", "1", "--engine", "random", "--journal", "first.jsonl"]
    first = folder.start(*command, *alone, HOLD="1")
    while not (folder.path / "held").exists():
        assert first.poll() is None
        time.sleep(0.02)
    second = folder.search("--journal", "second.jsonl")
    (folder.path / "go").touch()
    out, errors = first.communicate()
    assert first.returncode == 0, errors
    assert json.loads(out)["config"] == second["config"] == {"A": 5, "B": 0}
    assert best_config("double", "fake-gpu", cache=folder.path / "cache", n=1000)["A"] == 5
