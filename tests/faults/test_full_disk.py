"""Files that cannot grow: one line says so, what was written is whole, and the same command goes on."""

import os
import subprocess
import sys

from autotune.evaluation.journal import read_trials
from autotune.serving import cache
from tests.cache_example import DEVICE, entry, record
from tests.conftest import LIMIT_S

SEARCH = ["-m", "autotune", "search", "double.yaml", "--device", "fake", "--journal", "j.jsonl"]
STORE = """\
import sys
from autotune.serving import cache
from tests.cache_example import DEVICE, entry, record
try:
    cache.store(sys.argv[1], DEVICE, record(*map(entry, range(1, 60))))
except cache.CacheError as error:
    print(error)
"""


def with_little_room(kib, *arguments, cwd):
    """Run Python with a limit on the size of every file, as on a disk that is full then."""
    command = ["bash", "-c", f'ulimit -f {kib}; exec "$@"', "bash", sys.executable, *arguments]
    # Python itself would keep what it wrote of a module's bytecode, and then cannot read it any more
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


def test_a_journal_that_cannot_grow_ends_the_search_in_one_line_and_is_continued(folder):
    done = with_little_room(4, *SEARCH, cwd=folder.path)
    journal = folder.path / "j.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    complaint = done.stderr.splitlines()[-1]
    assert complaint.startswith("autotune: j.jsonl: cannot be written: File too large; ")
    assert len(lines) > 2 and lines[-1].endswith("}\n")

    result = folder.search("--journal", "j.jsonl")
    assert result["resumed"] == len(lines) - 1
    trials = read_trials(journal)
    assert len({trial.key for trial in trials}) == len(trials) == 17


def test_a_cache_file_that_cannot_grow_stays_as_it_was(root, tmp_path):
    path = cache.store(tmp_path, DEVICE, record(entry(1)))
    before = path.read_bytes()
    done = with_little_room(4, "-c", STORE, str(tmp_path), cwd=root)
    assert done.stdout == f"{path}: cannot be written: File too large\n", done.stderr
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["device.json", "reduce.json"]
