"""What each command prints on a terminal of 80 columns, word by word.

Read the files in `outputs/` after a change of one: `python -m tests.golden.test_outputs` writes them again.
"""

import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from autotune.cli.parsing import GROUPS
from autotune.tuning import data_checks, remeasure
from tests.conftest import DEFAULT_WORKLOADS, LAST_ROUND, Folder, run_in_process

GOLDEN = Path(__file__).parent
RECORDED = GOLDEN / "outputs"
WIDTH = 80
TERMINAL = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
CONFIGS = "E=8,N=4096,device_name=NVIDIA_H100_80GB_HBM3.json"
ENTRY = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1}
RUNS = {  # each finds what those before it wrote
    "new": "new vector_add.cl",
    "space": "space double.yaml -d fake",
    "space-config": "space double.yaml -d fake --config A=6,B=2",
    "space-compile": "space axpy.yaml --compile --budget 1 -d sm_80,sm_90",
    "space-run": "space axpy.yaml --run -d sm_90",
    "search": "search double.yaml -d fake --engine exhaustive",
    "run": "run double.yaml -d fake",
    "run-landmarks": "run double.yaml -d fake --landmarks",
    "check": "check double.yaml -d fake --refresh",
    "check-config": "check double.yaml -d fake --config A=3,B=1",
    "list": "list --cache cache",
    "list-stale": "list --stale --cache old/cache",
    "show": "show double",
    "show-where": "show double --where 'A > 4' --limit 3",
    "best": "best double -d fake --size n=1000 --cache cache",
    "best-near": "best double -d fake --size n=900 --cache cache",
    "best-elsewhere": "best double -d 'NVIDIA A100' --size n=1000 --cache cache",
    "best-flags": "best double -d fake --size n=1000 --flags --cache cache",
    "compare": "compare sums --cache old/cache",
    "report": "report double -o report.html",
    "report-figure": "report double --figure progress -o progress.svg",
    "diagnose": "diagnose double.yaml -d fake",
    "versus": "versus double.yaml -d fake --cpu none",
    "export": "export runs/double.fake-gpu.n1000.int32.jsonl --format t4 -o t4.json",
    "export-c-header": "export double --format c-header -o double.h --cache cache",
    "import": "import A100_T4.json --kernel convolution --device A100",
    "merge": "merge cache old/cache --into united",
    "lint-configs": f"lint-configs {CONFIGS}",
    "record": "record -- python program.py",
    "build": "build matadd -o tuned -d sm_90",
    "doctor": "doctor",
    "devices": "devices",
}
OF_MACHINE = {"doctor", "devices"}  # these say nothing that is the same on another
MASKS = {  # what this machine decides, with the text in its place
    r"^.*, \d+:\d\d\b.*\n": "",  # progress, where something takes long
    r"^warning:? other programs .*\n(?:  .*\n)*": "",
    r"^missing +machine code was not read: .*\n(?:  .*\n)*": "",  # by the tools of a CUDA toolkit
    r"\bin \d+ s\b": "in N s",
    r"\b\d+ (min|d)\b": r"N \1",
    r"\d+\.\d MB": "N MB",
    r"g\+\+ [\d.]+": "g++ N",
    r"-I\S+/kernels": "-I/AUTOTUNE/kernels",
    r"took [\d.e-]+ ms (at .* )on .*": r"took N ms \1on DEVICE",
    r"\d{4}-\d\d-\d\dT[\d:]+\+00:00": "DATE",
    r"\b[0-9a-f]{12}\b": "DIGEST",
    r"^(sm_\d+ .*\)) +\d+$": r"\1 N",  # registers by this version of NVRTC
    r"\d+ configurations?, [\d.]+ kB": "N configurations, N kB",
    r"^(tuned|default|naive|numpy)( +[\d.e-]+( x)?){5}": r"\1 N",  # times with copies, and of numpy
}


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


def outputs(path):
    """What each command prints in a folder, by name."""
    Folder(path)
    shutil.copytree(GOLDEN / "identity-1", path / "old")
    shutil.copytree(GOLDEN / "newcomer", path, dirs_exist_ok=True)
    shutil.copy(GOLDEN / "new/vector_add.cl", path)
    shutil.copy(GOLDEN / "recorded/convolution/A100_T4.json", path)
    (path / CONFIGS).write_text(json.dumps({"1": ENTRY, "64": ENTRY}))
    (path / "program.py").write_text("pass\n")
    return {name: output(path, command) for name, command in RUNS.items()}


def output(path, command):
    """A command and what it prints."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    screen = Screen()
    run_in_process(path, *words, screen=screen)
    return f"$ autotune {command}\n{screen.getvalue()}"


def masked(text):
    for pattern, instead in MASKS.items():
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def too_wide(text):
    """The lines after the command that are wider than the terminal, and have more than one word."""
    return [line for line in text.splitlines()[1:] if len(line) > WIDTH and " " in line.strip()]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TERMINAL.items():
            patch.setenv(name, value)
        patch.setattr(data_checks, "_default_workloads", DEFAULT_WORKLOADS)  # all data sets
        for name, value in LAST_ROUND.items():
            patch.setattr(remeasure, name, value)
        return outputs(tmp_path_factory.mktemp("outputs"))


@pytest.mark.parametrize("name", [name for name in RUNS if name not in OF_MACHINE])
def test_a_command_prints_what_is_recorded(shown, name):
    """Next to a masked number, columns may be of other widths, and lines be broken elsewhere."""
    text, recorded = masked(shown[name]), (RECORDED / f"{name}.txt").read_text()
    if text == shown[name]:
        assert text == recorded
    else:
        assert sorted(text.split()) == sorted(recorded.split()), text


def test_no_line_is_wider_than_the_terminal(shown):
    assert {name: wide for name, text in shown.items() if (wide := too_wide(text))} == {}


def test_every_command_has_an_output():
    assert {command.split()[0] for command in RUNS.values()} == {
        name for commands in GROUPS.values() for name in commands
    }


if __name__ == "__main__":
    os.environ |= TERMINAL
    with tempfile.TemporaryDirectory() as made:
        for name, text in outputs(Path(made)).items():
            if name not in OF_MACHINE:
                (RECORDED / f"{name}.txt").write_text(masked(text))
