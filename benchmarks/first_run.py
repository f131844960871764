"""From a clean clone to the printed winner: what the README's first command takes.

    python benchmarks/first_run.py

Clones this checkout's HEAD into a temporary folder, makes a fresh virtual environment and runs
`pip install ".[search]" && autotune search spaces/reduce.yaml`; prints the search's words and both times.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run both halves and print what they took."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        began = time.perf_counter()
        venv.create(Path(folder) / "venv", with_pip=True)
        binaries = Path(folder) / "venv" / "bin"
        subprocess.run([binaries / "pip", "install", "--quiet", ".[search]"], cwd=clone, check=True)
        installed = time.perf_counter()
        subprocess.run([binaries / "autotune", "search", "spaces/reduce.yaml"], cwd=clone, check=True)
        done = time.perf_counter()
    print(f"install {installed - began:.0f} s, search {done - installed:.0f} s, in all {done - began:.0f} s")
    sys.exit(0 if done - began < 180 else 1)


if __name__ == "__main__":
    main()
