"""Many processes fill one folder of binaries at once, and some are killed: nobody ever gets half a file."""

import subprocess
import sys
import time

from autotune.compilers.binary_cache import BinaryCache

WRITER = """
import hashlib, sys
from pathlib import Path
from autotune.compilers.binary_cache import BinaryCache
from autotune.core.trials import Binary
cache = BinaryCache(Path(sys.argv[1]), limit_bytes=400_000)
rounds = int(sys.argv[2])
print("started", flush=True)
for number in range(rounds):
    data = f"{number % 40} ".encode() * 5000
    key = f"{number % 40:064}"
    cache.put(key, Binary(data, hashlib.sha256(data).hexdigest(), "", 1.0))
    for other in range(0, 40, 7):
        found = cache.get(f"{other:064}")
        assert found is None or found.data == f"{other} ".encode() * 5000
"""


def start(folder, rounds):
    command = [sys.executable, "-c", WRITER, str(folder), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_writers_and_readers_of_one_folder(tmp_path):
    writers = [start(tmp_path, 120) for _ in range(3)]
    doomed = [start(tmp_path, 10**6) for _ in range(2)]
    for process in doomed:
        assert process.stdout.readline() == "started\n"
        time.sleep(0.2)
        process.kill()
        process.communicate()
    for process in writers:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    size_bytes = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert 100_000 < size_bytes < 500_000
    found = [BinaryCache(tmp_path).get(f"{number:064}") for number in range(40)]
    assert any(found)
    assert all(item.data == f"{number} ".encode() * 5000 for number, item in enumerate(found) if item)
