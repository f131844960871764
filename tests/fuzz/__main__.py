"""The long form: `python -m tests.fuzz [TARGET] [CASES]`; exit code 1 when something was found."""

import sys

from tests.fuzz.targets import TARGETS, findings

chosen = sys.argv[1:2] or list(TARGETS)
total = 0
for name in chosen:
    cases = int(sys.argv[2]) if sys.argv[2:] else TARGETS[name].cases
    found, longest_s = findings(name, cases)
    summary = f"{name}: {cases:,} cases, {len(found)} findings, longest {longest_s:.2f} s"
    sys.stdout.write("\n".join([*found[:20], summary, ""]))
    sys.stdout.flush()
    total += len(found)
sys.exit(total > 0)
