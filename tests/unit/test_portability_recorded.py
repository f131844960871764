"""On recorded spaces, the tiers lose less in the worst case than the rules that are known."""

import json
import os
import subprocess
import sys

import pytest

RECORDED = os.environ.get("AUTOTUNE_RECORDED")


@pytest.mark.skipif(RECORDED is None, reason="AUTOTUNE_RECORDED names no folder of recordings")
def test_the_tiers_beat_other_static_rules_in_the_worst_case_and_foretell_it(root):
    done = subprocess.run(
        [sys.executable, root / "benchmarks/carry_over.py", RECORDED, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    for kernel, tiers in found["tiers of best_config"].items():
        worst = min(outcome["share"] for outcome in tiers.values())
        for rule in ("fastest foreign record", "least sum of relative times"):
            assert worst > min(outcome["share"] for outcome in found[rule][kernel].values())
    outcomes = [outcome for tiers in found["tiers of best_config"].values() for outcome in tiers.values()]
    held = sum(outcome["share"] * outcome["expected_slowdown"] >= 1 for outcome in outcomes)
    assert held >= 0.9 * len(outcomes)
