"""Recorded results to test with: an excerpt in this repository, and the files of AUTOTUNE_RECORDED if set."""

import os
from pathlib import Path

import pytest

EXCERPT = Path(__file__).parent / "golden/recorded/convolution"
T4 = EXCERPT / "A100_T4.json"
CACHE = EXCERPT / "A100_kernel_tuner_cache.json"

FOLDER = os.environ.get("AUTOTUNE_RECORDED")
WHOLE = sorted(Path(FOLDER).glob("*/*.json*")) if FOLDER else []
needs_whole = pytest.mark.skipif(not WHOLE, reason="AUTOTUNE_RECORDED names no folder with recorded results")
every_file = pytest.mark.parametrize(
    "path", [T4, CACHE, *WHOLE], ids=lambda path: f"{path.parent.name}-{path.name}"
)
