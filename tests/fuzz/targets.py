"""What is done with a damaged file, and what counts as a finding: a traceback, a file outside, a long wait.

Time is that of the processor, for a machine may be busy with something else.
"""

import contextlib
import json
import os
import random
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from autotune.analysis.compare import compare, results_of, select
from autotune.analysis.merge import merge_folders
from autotune.core.json_values import is_name
from autotune.devices.fake import list_devices
from autotune.errors import AutotuneError
from autotune.evaluation.journal import Journal, read_journal
from autotune.interop.c_header import header
from autotune.serving.cache_schema import device_text, record_text
from autotune.serving.device_records import device_records
from autotune.serving.lookup import best_config
from autotune.serving.miss_log import read_misses
from autotune.space import bind, load_space, problem_of
from tests.cache_example import DEVICE, OTHER, entry, record
from tests.conftest import KERNEL, REFERENCE, SPACE
from tests.fuzz import hostile_caches
from tests.fuzz.answers import ask
from tests.fuzz.commands import run_command
from tests.fuzz.mutations import damaged_json, damaged_text, damaged_yaml
from tests.recorded_files import CACHE, T4

MAX_S = 5.0
GOLDEN = Path(__file__).parents[1] / "golden"
_JOURNAL = [json.loads(line) for line in (GOLDEN / "identity-1/double.jsonl").read_text().splitlines()]


def _shortened(path: Path, key: str) -> dict:
    data = json.loads(path.read_text())
    rows = data[key]
    data[key] = rows[:4] if isinstance(rows, list) else dict(list(rows.items())[:4])
    return data


_FOREIGN = (_shortened(T4, "results"), _shortened(CACHE, "cache"))
_RECORD = json.loads(record_text(record(entry(64), entry(1024, BLOCK=128))))
_DEVICE = json.loads(device_text(DEVICE))


def imports(random_: random.Random) -> None:
    """A file of another tool, or a journal, imported and exported."""
    if random_.random() < 0.2:
        text = _damaged_journal(random_)
    else:
        text = damaged_json(random_, random_.choice(_FOREIGN))
    _write("results.json", text)
    match random_.randrange(6):
        case 0:
            run_command(
                "export",
                "results.json",
                "--format",
                random_.choice(("t4", "kernel-tuner", "journal")),
                "-o",
                "out",
            )
        case 1:
            run_command("compare", "convolution", "--imported", "results.json", "--cache", "none")
        case _:
            run_command(
                "import", "results.json", "--fresh", *random_.choice(((), ("--json",), ("--journal", "out")))
            )


def journals(random_: random.Random) -> None:
    """A journal shown, and opened as a search does that goes on."""
    _write("j.jsonl", _damaged_journal(random_))
    match random_.randrange(4):
        case 0:
            with contextlib.suppress(AutotuneError):
                Journal(Path("j.jsonl"), {k: v for k, v in _JOURNAL[0].items() if k != "journal"}).close()
        case 1:
            with contextlib.suppress(AutotuneError):
                read_journal(Path("j.jsonl"))
        case _:
            options = (
                (),
                ("--json",),
                ("--pareto",),
                ("--sort", "A"),
                ("--where", "A > 1"),
                ("--status", "ok"),
            )
            run_command("show", "j.jsonl", *random_.choice(options))


def spaces(random_: random.Random) -> None:
    """A space file read, and its configurations enumerated."""
    for name, text in (("double.py", KERNEL), ("reference.py", REFERENCE)):
        _write(name, text)
    _write("s.yaml", damaged_yaml(random_, SPACE))
    info = list_devices()[0]
    with contextlib.suppress(AutotuneError):
        spec = load_space("s.yaml")
        len(bind(spec, info, problem_of(spec, info, {}, None)))


def caches(random_: random.Random) -> None:
    """A cache asked, compared, merged and exported; what it serves may be put in front of a source."""
    record_, device, wanted = (
        json.dumps(_RECORD),
        json.dumps(_DEVICE),
        '{"device": null, "dtype": null, "kernel": "reduce", "sizes": {"n": 3}}\n',
    )
    match random_.randrange(8):
        case 0:
            device = damaged_json(random_, _DEVICE)
        case 1:
            wanted = (
                damaged_text(random_, wanted)
                if random_.random() < 0.3
                else damaged_json(random_, json.loads(wanted))
            )
        case _:
            record_ = damaged_json(random_, _RECORD)
    _write("cache/example-gpu-100/reduce.json", record_)
    _write("cache/example-gpu-100/device.json", device)
    _write("cache/wanted.jsonl", wanted)
    with contextlib.suppress(AutotuneError):
        best = best_config(
            "reduce", random_.choice((DEVICE, OTHER)), n=random_.choice((64, 65)), cache="cache"
        )
        assert all(map(is_name, best.defines)) and all(flag.isprintable() for flag in best.flags), best.flags
        best.options("cuda"), best.launch(n=64), best.arguments(n=64), best.slowdown_at_most
    match random_.randrange(4):
        case 0:
            with contextlib.suppress(AutotuneError):
                compare("reduce", select(results_of(device_records("reduce", "cache")), {}, None))
        case 1:
            with contextlib.suppress(AutotuneError):
                merge_folders([Path("cache")], Path("merged"))
        case 2:
            with contextlib.suppress(AutotuneError):
                header("reduce", "cache")
        case _:
            with contextlib.suppress(AutotuneError):
                read_misses("cache")


class Target(NamedTuple):
    """An attack: with how many cases in the long and in the short form, and what it may write."""

    attack: Callable[[random.Random], object]
    cases: int
    written: set[str]
    short_cases: int = 150
    max_s: float = MAX_S


TARGETS = {
    "imports": Target(imports, 10_000, {"results.json", "out", "runs"}),
    "journals": Target(journals, 5_000, {"j.jsonl"}),
    "spaces": Target(spaces, 5_000, {"s.yaml", "double.py", "reference.py"}),
    "caches": Target(caches, 10_000, {"cache", "merged"}),
    "answers": Target(ask, 24_000, {"cache"}),  # 20,000 are answered
    "hostile": Target(hostile_caches.hostile, 5_000, hostile_caches.WRITTEN, 15),
    "hostile_all": Target(hostile_caches.hostile_all, 200, hostile_caches.WRITTEN, 1, 60.0),
}


def findings(name: str, cases: int, seed: int = 0) -> tuple[list[str], float]:
    """What went wrong, a text each with the number that repeats it; and the longest time in s."""
    target = TARGETS[name]
    found, longest_s, here = [], 0.0, Path.cwd()
    for case in range(seed, seed + cases):
        with tempfile.TemporaryDirectory() as outside:
            inside = Path(outside, "deep", "inside")
            inside.mkdir(parents=True)
            os.chdir(inside)
            began = time.process_time()
            try:
                target.attack(random.Random(f"{name} {case}"))
            except (Exception, SystemExit):  # noqa: BLE001 - whatever comes out is the finding
                found.append(f"{name} {case}: {traceback.format_exc(limit=-4)}")
            finally:
                os.chdir(here)
            took_s = time.process_time() - began
            longest_s = max(longest_s, took_s)
            if took_s > target.max_s:
                found.append(f"{name} {case}: took {took_s:.1f} s")
            strange = [
                path
                for path in Path(outside).rglob("*")
                if not path.is_relative_to(inside) and path not in inside.parents
            ]
            strange += [path for path in inside.iterdir() if path.name not in target.written]
            strange += inside.rglob("runs/*/*")
            found += [f"{name} {case}: wrote {path}" for path in strange]
    return found, longest_s


def _damaged_journal(random_: random.Random) -> str:
    rows = [json.dumps(row) for row in _JOURNAL]
    for _ in range(random_.randint(1, 2)):
        place = random_.randrange(len(rows))
        with contextlib.suppress(ValueError):
            rows[place] = damaged_json(random_, json.loads(rows[place]))
    text = "\n".join(rows) + "\n"
    text = text if random_.random() < 0.8 else damaged_text(random_, text)
    return text.replace('{"journal": ', '{"journal":', 1)


def _write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogatepass"))
