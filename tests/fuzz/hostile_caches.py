"""Caches of somebody who means harm: their values are paths, options, scripts, escapes and C text.

Most of them are valid, so that the values reach the loader and the commands. Nothing outside the project may
be opened, run or written; no control character may reach the terminal, and no code a C header.
"""

import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune import best_config, load_kernel
from autotune.core.packaged import packaged_folder
from autotune.core.records import ArgumentSpec
from autotune.errors import AutotuneError
from autotune.serving.cache_schema import device_text, record_text
from tests.cache_example import DEVICE, entry, record
from tests.conftest import KERNEL, REFERENCE, SPACE
from tests.fuzz.commands import run_command

SOURCE = """\
#include "portable.h"
KERNEL main_step(GLOBAL const DTYPE *x, GLOBAL DTYPE *part, int n) { if (n > 0) part[0] = x[0]; }
KERNEL last(GLOBAL const DTYPE *part, GLOBAL DTYPE *out) { out[0] = part[0]; }
"""
TRITON = "import triton\nHIT = open({hit!r}, 'w')\n@triton.jit\ndef main_step(x, part, n): HIT\n"
C_TEXT = '??/" }; int evil(void) { return 42; } static const char *rest[] = { 0, //'
TEXTS = (
    *("\x1b]0;mine\x07", "\x1b[2J\x1b[31m", "\x9b31m", "\r\x08\x08hidden", "\u202egnp.exe", "\u2066\u200b"),
    *(C_TEXT, "*/ int evil(void); /*", "\\\n#include </etc/passwd>", '"; int evil(void); //', "??=define x"),
    *("=HYPERLINK(1)", "@SUM(1)", "<script>evil()</script>", "[link=file:///etc/x]x[/link]", "$(evil)"),
    *("'; import os; os.abort() #", "{0.__class__}", "%n%n", "../../evil", "/etc/passwd", "", "x" * 300),
)
OPTIONS = (
    *("-time", "--time", "-ccbin", "-run", "-keep", "-o", "-include", "--pre-include", "-I", "-Ievil", "-x"),
    *("--options-file", "-optf", "-Xcompiler", "-Xptxas", "-fdevice-time-trace", "--fdevice-time-trace"),
    *("-cl-mad-enable", "-cl-std", "-save-temps", "-load", "-Xclang", "-MD", "-MF", "-D", "-DX", "-G", "-E"),
    *("--maxrregcount", "--ftz", "--create-pch", "--use-pch", "--pch-dir", "--output-file", "-dump-file"),
)
VALUES = ("True", "'setup.py'", "'evil.out'", "'..:evil'", "32", "'true'", "'-o'", "'a,b'", "BLOCK", "'x.y'")
COMMANDS = (
    *(("list",), ("list", "--json"), ("best", "reduce", "--json", "--device", "example-gpu-100")),
    ("best", "reduce", "--size", "n=64", "--device", "example-gpu-100"),
    *(("best", "reduce", "--size", "n=65", "--device", "h200"), ("compare", "reduce")),
    *(("merge", "cache", "--into", "merged"), ("merge", "cache", "theirs", "--into", "merged", "--json")),
    *(("merge", "theirs", "--into", "cache"), ("show", "j.jsonl", "--csv", "t.csv")),
    *(("export", "reduce", "--format", "c-header", "-o", "reduce.h"), ("show", "j.jsonl")),
    *(("build", "reduce", "-o", "tuned", "--architectures", name) for name in ("sm_80", "sm_90", "sm_120")),
    *(("report", "--figure", "progress", "j.jsonl", "-o", "p.svg"), ("compare", "reduce", "--json")),
)
REPORTS = (("report", "reduce", "-o", "r.html"), ("report", "j.jsonl", "-o", "r.html"))
FAKE = ("--device", "fake")
WITH_PROCESSES = (
    *(
        ("search", "double.yaml", "--wanted", "--budget", "2", *FAKE),
        ("search", "double.yaml", "--engine", "adopt", *FAKE),
    ),
    *(("search", "double.yaml", "--budget", "2", *FAKE), ("check", "double.yaml", *FAKE)),
    *(
        ("run", "double.yaml", *FAKE),
        ("run", "double.yaml", "--landmarks", *FAKE),
        ("space", "double.yaml", *FAKE),
    ),
    *(("diagnose", "double.yaml", *FAKE), ("versus", "double.yaml", *FAKE)),
    *(("doctor",), ("devices",), ("best", "double", *FAKE), ("best", "reduce"), ("compare", "double")),
)
WRITTEN = {
    *("cache", "theirs", "merged", "runs", "r.html", "reduce.h", "t.csv", "tuned", "p.svg"),
    *("kernels", "setup.py", "j.jsonl", "linked.cu", "linked", "double.py", "double.yaml", "reference.py"),
    "__pycache__",
}
EXAMPLE = replace(
    record(entry(64), entry(1024, BLOCK=128)),
    launch=(replace(record().launch[0], entry="main_step"), record().launch[1]),
    arguments=(*record().arguments[:2], ArgumentSpec("out", "DTYPE", "out", ("1",)), record().arguments[3]),
)
GOLDEN = Path(__file__).parents[1] / "golden/identity-1"

_watched: list[str] = []  # files that are opened or run, while a case runs
_is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_watching and event in ("open", "subprocess.Popen", "os.system", "os.exec", "ctypes.dlopen"):
        _watched.append(f"{event} {arguments[0]}")


sys.addaudithook(_watch)


def hostile(random_: random.Random) -> None:
    """One cache through the loader and two commands."""
    _try(random_, random_.sample(COMMANDS, 2))


def hostile_all(random_: random.Random) -> None:
    """One cache through the loader and all commands."""
    _try(random_, [*COMMANDS, *REPORTS, *WITH_PROCESSES])


def _try(random_: random.Random, commands: list[tuple[str, ...]]) -> None:
    global _is_watching
    with tempfile.TemporaryDirectory(prefix="evil-") as outside:
        evil = Path(outside)
        for name in ("evil.cu", "evil.cl", "evil.h"):
            (evil / name).write_text(SOURCE)
        (evil / "evil.py").write_text(TRITON.format(hit=f"{outside}/hit"))
        (evil / "folder").mkdir()
        _make_project(random_, evil)
        before, own = _contents(evil), _own_files()
        _watched.clear()
        _is_watching = True
        try:
            _load(random_)
            for words in commands:
                run_command(*words)
        finally:
            _is_watching = False
        assert _contents(evil) == before, "a file outside the project was written"
        assert _own_files() == own, "a file of the project was overwritten"
        away = (str(evil.resolve()), "evil.", "linked", "/etc/passwd", "/dev/zero")
        touched = [one for one in _watched if any(place in one for place in away)]
        assert not touched, f"outside the project: {touched}"
        header = Path("reduce.h")
        assert not header.exists() or "evil(void)" not in header.read_text(), "code in the C header"


def _make_project(random_: random.Random, evil: Path) -> None:
    """The user's own files, and a cache and another one to merge that are not."""
    Path("kernels").mkdir()
    for name in ("kernels/reduce.cu", "kernels/mine.cu"):
        Path(name).write_text(SOURCE)
    Path("setup.py").write_text("mine")
    for name, text in (("double.py", KERNEL), ("reference.py", REFERENCE), ("double.yaml", SPACE)):
        Path(name).write_text(text)
    Path("linked.cu").symlink_to(evil / "evil.cu")
    Path("linked").symlink_to(evil)
    header, *rows = (json.loads(line) for line in (GOLDEN / "double.jsonl").read_text().splitlines())
    header |= {name: random_.choice(TEXTS) for name in random_.sample(["device", "driver", "compiler"], 2)}
    for row in rows:
        if "trial" in row and random_.random() < 0.5:
            row["trial"].pop("measurement", None)
            row["trial"] |= {"status": "compile_error", "detail": random_.choice(TEXTS)}
    lines = (json.dumps(row, separators=(",", ":")) for row in (header, *rows))
    Path("j.jsonl").write_text("".join(f"{line}\n" for line in lines))
    device = json.loads(device_text(DEVICE))
    for name in random_.sample(["name", "vendor", "architecture", "driver", "runtime", "backend"], 2):
        device[name] = random_.choice(TEXTS)
    device["kind"] = random_.choice(("gpu", "cpu", "gpu", TEXTS[0]))
    for root in ("cache", "theirs"):
        _make_cache(random_, Path(root), evil, device)


def _make_cache(random_: random.Random, root: Path, evil: Path, device: dict[str, Any]) -> None:
    folder = root / "example-gpu-100"
    root.mkdir()
    if random_.random() < 0.1:
        folder.symlink_to(evil / "folder")
        return
    shutil.copytree(GOLDEN / "cache/fake-gpu", root / "fake-gpu")  # what searches of the space go on from
    folder.mkdir()
    (folder / "device.json").write_text(json.dumps(device))
    (folder / "reduce.json").write_text(record_text(EXAMPLE))
    for path in (folder / "reduce.json", root / "fake-gpu/double.json"):
        found = json.loads(path.read_text())
        _poison(random_, found, root, evil)
        path.write_text(json.dumps(found))
    if random_.random() < 0.3:
        (root / "binaries.cuda").mkdir()
        manifest = {"schema": 1, "source": random_.choice(TEXTS), "source_sha256": "0", "compilers": {}}
        (root / "binaries.cuda/reduce.json").write_text(json.dumps(manifest))
    if random_.random() < 0.3:
        wish = {"kernel": random_.choice(("reduce", "../evil", *TEXTS[:3])), "device": None, "dtype": None}
        (root / "wanted.jsonl").write_text(json.dumps(wish | {"sizes": {"n": 3}}) + "\n")


def _poison(random_: random.Random, found: dict[str, Any], root: Path, evil: Path) -> None:
    """Put hostile values into the places of a record that take such texts."""
    if random_.random() < 0.15:  # all the compiler's: nothing else is wrong
        writing = dict.fromkeys(("-time", "--time", "--fdevice-time-trace"), "'setup.py'")
        found["source"], found["compiler_options"]["cuda"] = "../kernels/mine.cu", writing
        return
    away = os.path.relpath(evil, root)
    name = random_.choice(("evil.cu", "evil.cl", "evil.py", "evil.h"))
    found["source"] = random_.choice(
        (
            *(f"{evil}/{name}", f"{away}/{name}", f"../kernels/../{away}/{name}", f"../linked/{name}"),
            *("../linked.cu", "../kernels/mine.cu", "", "/etc/passwd", "/dev/zero", "..", "a\0b"),
            random_.choice(TEXTS),
        )
    )
    for dialect in random_.sample(["cuda", "opencl", "python"], random_.choice((0, 0, 1, 2))):
        options = {random_.choice(OPTIONS): random_.choice(VALUES) for _ in range(random_.randint(1, 2))}
        found["compiler_options"][dialect] = options
    if random_.random() < 0.3:
        found["compiler"] = random_.choice(("triton", "nvrtc"))
    if random_.random() < 0.1:
        found["launch"][0]["constants"] = [random_.choice(("ptx_options", "extern_libs", "BLOCK"))]
    if random_.random() < 0.05:
        found["launch"][0]["entry"] = random_.choice(("main_step<int>", "a<b>(c)", *TEXTS[:2]))
    for one in found["entries"]:
        origin = one["provenance"]
        for place in random_.sample(["host", "engine", "checks", "protocol", "compiler", "driver"], 3):
            origin[place] = random_.choice(TEXTS)
        if random_.random() < 0.1:
            origin["tuned_at"] = random_.choice(("2099-01-01T00:00:00+00:00", random_.choice(TEXTS)))
        if random_.random() < 0.2:
            one["data"] = random_.choice(TEXTS)


def _load(random_: random.Random) -> None:
    """Ask the cache as a program does that knows nothing of it."""
    with contextlib.suppress(AutotuneError):
        best = best_config("reduce", DEVICE, n=64, cache="cache")
        for dialect in ("cuda", "opencl"):
            with contextlib.suppress(AutotuneError):
                best.options(dialect)
    with contextlib.suppress(AutotuneError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = load_kernel("reduce", cache="cache")
        places = (Path.cwd(), Path(packaged_folder("kernels")))
        assert any(kernel.source.path.resolve().is_relative_to(place) for place in places), kernel.source.path
        if random_.random() < 0.02:
            kernel(np.ones(64, np.int32), np.zeros(1, np.int32))


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _own_files() -> dict[str, bytes]:
    names = ("setup.py", "double.py", "double.yaml", "reference.py", "j.jsonl")
    return {name: Path(name).read_bytes() for name in names} | _contents(Path("kernels"))
