"""The long form: `python -m tests.fuzz [TARGET] [CASES]`; exit code 1 when something was found."""

import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.staleness import wrong_keys, wrong_searches
from tests.fuzz.targets import TARGETS, findings

EDITS = {"edited-keys": (wrong_keys, 2000), "edited-searches": (wrong_searches, 200)}


def of_edits(name: str, cases: int) -> list[str]:
    """What is wrong after so many edits, in a folder and a cache of their own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        return list(EDITS[name][0](cases, Path(folder)))


chosen = sys.argv[1:2] or [*TARGETS, *EDITS]
total = 0
for name in chosen:
    cases = int(sys.argv[2]) if sys.argv[2:] else EDITS[name][1] if name in EDITS else TARGETS[name].cases
    if name in EDITS:
        found, took = of_edits(name, cases), ""
    else:
        found, longest_s = findings(name, cases)
        took = f", longest {longest_s:.2f} s"
    sys.stdout.write("\n".join([*found[:20], f"{name}: {cases:,} cases, {len(found)} findings{took}", ""]))
    sys.stdout.flush()
    total += len(found)
sys.exit(total > 0)
