"""Tune vLLM's files for a GPU, and time them beside the stock files and the defaults.

    python benchmarks/frameworks.py --site DIR [--only SHAPE ...] [--parts tune retime loop] [--time SECONDS]
                                    [--results FILE] [--limit-s 540]
    python benchmarks/frameworks.py --site DIR --extract DIR      # the few files of vLLM that this needs
    python benchmarks/frameworks.py --site DIR --rehearse         # tiny shapes on the CPU, without a GPU
    python benchmarks/frameworks.py --report --results FILE       # the tables of docs/measured-times.md

DIR has the folder `vllm/` of version 0.33, as its wheel has it. For each shape:

1. tune: `autotune search SPACE --format ...` for 18 numbers of tokens with cold caches, `autotune export`.
   The stock file's entries are among the first that are tried, as for everybody who has such a file.
2. retime: the stock file's entry, vLLM's default, ours, and what a file with the entries of 2048, 3072 and
   4096 alone serves: vLLM's own functions launch them on tensors of PyTorch, in turns, each in a CUDA graph,
   after the L2 cache was overwritten. Their results are compared.
3. loop: the time of vLLM's own tuner, from 64 random configurations at two numbers of tokens.

A part that fails does not stop the others. What FILE has is not done again, so several calls share the work.
Needs PyTorch with Triton, and an NVIDIA GPU that has stock files for the shapes: an H200 or an H100.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from framework_layers import MOE, MOE_UTILS, PRODUCT, Call, Moe, Product, vllm_functions
from installed import installed_environment

from autotune.errors import InputError
from autotune.frameworks import FORMATS
from autotune.frameworks.config_file import TOKENS, Entry, Format, load, nearest

ROOT = Path(__file__).parents[1]
BLOCKS = {"group_n": 128, "group_k": 128}
THREE_KEYS = (2048, 3072, 4096)
DECODE = 128  # tokens: up to so many is decoding
SAMPLES, FLUSH_BYTES, WARM_UP_S = 30, 256 * 2**20, 0.3
ALIKE = 0.02  # of the largest element: two configurations may round differently
LOOP_CONFIGS, LOOP_TOKENS = 64, (16, 1024)
LOOP_SIZE = 1280  # configurations that vLLM's tuner of products tries at each number of tokens
SPECIALISATIONS = 3  # of Triton, among 18 numbers of tokens: 1, multiples of 16, others
MIN_PART_S = 30.0  # a part is not begun with less time left
WHO = STOCK, DEFAULT, THREE, OURS = "stock", "default", "three keys", "ours"


@dataclass(frozen=True)
class Shape:
    """A shape with a stock file on some GPU, and the space that tunes for it."""

    form: Format
    space: str
    sizes: Mapping[str, int]

    @property
    def quantization(self) -> str:
        """As in the file's name."""
        return "fp8_w8a8" if "group_n" in self.sizes else ""

    def file(self, device: str) -> str:
        """The name of the file for a GPU."""
        return self.form.name_of(self.sizes, device, self.quantization)

    def layer(self, functions: Any, device: str) -> Product | Moe:
        """The layer as vLLM launches it."""
        if self.form.sizes[0] == "N":
            return Product(functions, self.sizes, device)
        return Moe(functions, self.sizes, device, is_float8="group_n" in self.sizes)


def moe(space: str, sizes: Mapping[str, int]) -> Shape:
    """A fused MoE layer."""
    return Shape(FORMATS["vllm-moe"], space, sizes)


SHAPES = {  # by name; a GPU without a stock file for one leaves it out
    "product-1536-7168": Shape(FORMATS["vllm-w8a8"], "vllm_w8a8", {"N": 1536, "K": 7168, **BLOCKS}),
    "product-7168-2048": Shape(FORMATS["vllm-w8a8"], "vllm_w8a8", {"N": 7168, "K": 2048, **BLOCKS}),
    "moe-fp8-256-256": moe("vllm_moe", {"E": 256, "N": 256, "K": 7168, "top_k": 8, **BLOCKS}),
    "moe-fp8-256-512": moe("vllm_moe", {"E": 256, "N": 512, "K": 7168, "top_k": 8, **BLOCKS}),
    "moe-fp8-256-128": moe("vllm_moe", {"E": 256, "N": 128, "K": 7168, "top_k": 8, **BLOCKS}),
    "moe-bf16-128-768": moe("vllm_moe_16bit", {"E": 128, "N": 768, "K": 2048, "top_k": 8}),
    "moe-bf16-256-512": moe("vllm_moe_16bit", {"E": 256, "N": 512, "K": 2048, "top_k": 8}),
}
TINY = {"N": 128, "K": 256}  # for a rehearsal
TINY_MOE = {**TINY, "E": 8, "top_k": 2}
TINY_TOKENS = (1, 17, 130)
PARTS = ("tune", "retime", "loop")


class Results:
    """What was found so far, by shape and part, kept in a file."""

    def __init__(self, path: Path) -> None:
        """Read the file if it is there."""
        self._path = path
        self.found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def keep(self, shape: str, part: str, value: Any) -> None:
        """Add what a part found, and write the file."""
        self.found.setdefault(shape, {})[part] = value
        whole = self._path.with_name(self._path.name + ".new")
        whole.write_text(json.dumps(self.found, indent=1) + "\n")
        whole.replace(self._path)

    def of(self, shape: str, part: str) -> Any:
        """What a part found for a shape, or None."""
        return self.found.get(shape, {}).get(part)

    def has(self, shape: str, part: str, tokens: Sequence[int]) -> bool:
        """True if a part is done; times are, once all numbers of tokens have one of each contender."""
        found = self.of(shape, part)
        if part != "retime" or not found:
            return bool(found)
        least = {STOCK, DEFAULT, THREE} | ({OURS} if self.of(shape, "tune") else set())
        return all(least <= found["ms"].get(str(one), {}).keys() for one in tokens)


class Machine:
    """The GPU with PyTorch, and vLLM's functions; on the CPU in a rehearsal."""

    def __init__(self, site: Path, folder: Path, *, rehearses: bool) -> None:
        """Open the GPU."""
        self.functions = vllm_functions(site, folder)
        self.torch = torch = self.functions.torch
        torch.manual_seed(0)
        self.device = "cpu" if rehearses else "cuda"
        self.name = "NVIDIA H200" if rehearses else torch.cuda.get_device_name()
        self.rehearses = rehearses

    def times_ms(self, calls: Mapping[str, Call]) -> dict[str, float]:
        """Median times; all take turns."""
        if self.rehearses:
            return {name: 1e3 * seconds(call) for name, call in calls.items()}
        torch = self.torch
        flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        graphs = {name: self._graph(call) for name, call in calls.items()}
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < WARM_UP_S:  # the clocks of a GPU at work
            for graph in graphs.values():
                graph.replay()
            torch.cuda.synchronize()
        events: dict[str, list[Any]] = {name: [] for name in graphs}
        for _ in range(SAMPLES):
            for name, graph in graphs.items():
                flush.zero_()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                graph.replay()
                end.record()
                events[name].append((start, end))
            torch.cuda.synchronize()
        return {name: median(one.elapsed_time(other) for one, other in of) for name, of in events.items()}

    def _graph(self, call: Call) -> Any:
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            call()
        return graph

    def synchronize(self) -> None:
        """Wait for the GPU."""
        if not self.rehearses:
            self.torch.cuda.synchronize()


def seconds(call: Callable[[], Any]) -> float:
    """The seconds of one call."""
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def tune(
    shape: Shape, machine: Machine, parsed: argparse.Namespace, folder: Path, left_s: float
) -> dict[str, Any]:
    """Search and export with cold caches in processes of their own; the entries and the seconds."""
    if machine.rehearses:
        return {"seconds": 1.0, "entries": dict.fromkeys(map(str, parsed.tokens), tiny_entry())}
    home, first_s = folder / "tune", parsed.time or (12.0 if shape.form.sizes[0] == "N" else 20.0)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    environment = installed_environment() | {
        "XDG_CACHE_HOME": str(home / "home"),
        "TRITON_CACHE_DIR": str(home / "triton"),
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(parsed.site), *filter(None, sys.path)])
    space = ROOT / "examples" / "frameworks" / f"{shape.space}.yaml"
    search = ["search", str(space), "--device", "cuda:0", "--cache", "cache", "--measure", "cold,graph"]
    search += ["--format", shape.form.name, "--time", str(first_s), "--no-transfer"]
    search += [word for name, size in shape.sizes.items() for word in ("--size", f"{name}={size}")]
    search += ["--sweep", "M=" + ",".join(map(str, parsed.tokens))]

    def run(words: Sequence[str], name: str) -> float:
        with (folder / f"{name}.log").open("w") as log:
            return seconds(
                lambda: subprocess.run(
                    [sys.executable, "-m", "autotune", *words],
                    cwd=home,
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=max(MIN_PART_S, left_s),
                    check=True,
                )
            )

    try:
        took_s = run(search, "search")
        run(["export", shape.space, "--format", shape.form.name, "--cache", "cache", "-o", "tuned"], "export")
    finally:
        for log in folder.glob("*.log"):
            print("\n".join(log.read_text().splitlines()[-40:]))
    content = load(shape.form, home / "tuned" / shape.file(machine.name))
    return {"seconds": took_s, "time": first_s, "entries": by_text(content.entries)}


def tiny_entry() -> dict[str, Any]:
    """An entry for a rehearsal."""
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
    return dict(zip(names, (32, 64, 128, 16, 4, 3), strict=True))


def by_text(entries: Mapping[int, Entry]) -> dict[str, dict[str, Any]]:
    """Entries as JSON has them."""
    return {str(tokens): dict(entry) for tokens, entry in entries.items()}


def contenders(
    shape: Shape, stock: Mapping[int, Entry], ours: Mapping[int, Entry], device: str, tokens: int
) -> dict[str, Entry]:
    """The configurations that serve a number of tokens, by whose they are."""
    read = shape.form.shape(shape.file(device))
    assert read is not None
    three = [key for key in stock if key in THREE_KEYS] or [max(stock)]
    found = {
        STOCK: stock[nearest(sorted(stock), tokens)],
        DEFAULT: shape.form.default(read, tokens),
        THREE: stock[nearest(sorted(three), tokens)],
        OURS: ours[nearest(sorted(ours), tokens)] if ours else None,
    }
    return {name: entry for name, entry in found.items() if entry is not None}


def stock_entries(shape: Shape, machine: Machine, site: Path) -> Mapping[int, Entry]:
    """The entries of the stock file; raises InputError without one."""
    path = site / shape.form.package / shape.form.folder / shape.file(machine.name)
    if machine.rehearses:
        return dict.fromkeys((1, *THREE_KEYS), tiny_entry() | {"BLOCK_SIZE_M": 16})
    return load(shape.form, path).entries


def retime(
    shape: Shape, machine: Machine, parsed: argparse.Namespace, name: str, results: Results
) -> dict[str, Any]:
    """The times of all contenders for every number of tokens, in ms, with those that were wrong."""
    tuned = results.of(name, "tune") or {}
    ours = {int(tokens): entry for tokens, entry in tuned.get("entries", {}).items()}
    stock = stock_entries(shape, machine, parsed.site)
    layer = shape.layer(machine.functions, machine.device)
    found: dict[str, Any] = {"gpu": machine.name, "triton": machine.functions.triton.__version__, "ms": {}}
    inputs = {tokens: layer.inputs(tokens) for tokens in parsed.tokens}
    entries = {one: contenders(shape, stock, ours, machine.name, one) for one in parsed.tokens}
    calls = {
        (tokens, text(entry)): layer.call(inputs[tokens], entry)
        for tokens in parsed.tokens
        for entry in entries[tokens].values()
    }
    failed = compiled(calls, machine)
    for tokens in parsed.tokens:
        alike = {text(entry): calls[tokens, text(entry)] for entry in entries[tokens].values()}
        working = {key: call for key, call in alike.items() if (tokens, key) not in failed}
        wrong = unlike(working, text(entries[tokens][DEFAULT]), machine)
        times = machine.times_ms({key: call for key, call in working.items() if key not in wrong})
        found["ms"][str(tokens)] = {
            who: times.get(text(entry), failed.get((tokens, text(entry))) or "wrong result")
            for who, entry in entries[tokens].items()
        }
        results.keep(name, "retime", found)  # what is known if the time ends
        print(f"  M={tokens}: {found['ms'][str(tokens)]}", flush=True)
    return found


def text(entry: Entry) -> str:
    """The same for entries that are the same."""
    return json.dumps(dict(sorted(entry.items())))


def compiled(calls: Mapping[tuple[int, str], Call], machine: Machine) -> dict[tuple[int, str], str]:
    """Run each call once, which compiles it, several at a time; the reasons of those that fail."""
    failed = {}

    with ThreadPoolExecutor(1 if machine.rehearses else 8) as threads:
        running = {key: threads.submit(run_once, call, machine) for key, call in calls.items()}
        for key, one in running.items():
            try:
                one.result()
            except Exception as error:  # noqa: BLE001 - a configuration that the GPU refuses
                failed[key] = f"{type(error).__name__}: {str(error)[:120]}"
    return failed


def unlike(calls: Mapping[str, Call], right: str, machine: Machine) -> set[str]:
    """The calls whose results differ from those of another one."""
    if right not in calls:
        return set()
    expected = [one.float().clone() for one in calls[right]()]
    wrong = set()
    for key, call in calls.items():
        for output, other in zip(call(), expected, strict=True):
            if not float((output.float() - other).abs().max()) <= ALIKE * float(other.abs().max()):
                wrong.add(key)
    machine.synchronize()
    return wrong


def loop(shape: Shape, machine: Machine, parsed: argparse.Namespace, left_s: float) -> dict[str, Any]:
    """The seconds that vLLM's tuner takes for 18 numbers of tokens, from a sample of its configurations.

    For each configuration and number of tokens it runs five times, the first of which compiles, and then ten
    times with a pair of events and a synchronisation each. Numbers of tokens share compiled kernels. It goes
    on after a configuration that the GPU refuses, which has to be compiled, too.
    """
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
    every = product(
        (16, 32, 64, 128, 256), (32, 64, 128, 256), (64, 128), (1, 16, 32, 64), (4, 8), (2, 3, 4, 5)
    )
    configs = [dict(zip(names, values, strict=True)) for values in every]
    assert len(configs) == LOOP_SIZE
    sample = random.Random(0).sample(configs, 1 if machine.rehearses else LOOP_CONFIGS)
    layer, end_s = shape.layer(machine.functions, machine.device), time.perf_counter() + left_s
    first_s, later_s = [], []
    tokens = parsed.tokens[:1] if machine.rehearses else LOOP_TOKENS
    inputs = [layer.inputs(one) for one in tokens]
    for config in sample:
        if time.perf_counter() > end_s:
            break
        calls = [layer.call(one, config) for one in inputs]
        first_s.append(seconds(partial(runs, calls[0], machine)))
        later_s += [seconds(partial(own_loop, call, machine)) for call in calls if runs(call, machine)]
    compile_s, run_s = sum(first_s) / len(first_s), sum(later_s) / len(first_s) / len(tokens)
    whole_s = LOOP_SIZE * (SPECIALISATIONS * compile_s + len(TOKENS) * run_s)
    return {"seconds": whole_s, "compile_s": compile_s, "run_s": run_s, "configurations": len(first_s)}


def run_once(call: Call, machine: Machine) -> None:
    """Run a call to its end."""
    call()
    machine.synchronize()


def runs(call: Call, machine: Machine) -> bool:
    """Run a call to its end; false if the GPU refuses it."""
    try:
        run_once(call, machine)
    except Exception:  # noqa: BLE001 - too many resources
        return False
    return True


def own_loop(call: Call, machine: Machine) -> None:
    """What the tuner does after the first run of a configuration."""
    for _ in range(4):
        call()
    machine.synchronize()
    for _ in range(1 if machine.rehearses else 10):
        if machine.rehearses:
            call()
            continue
        start, end = (machine.torch.cuda.Event(enable_timing=True) for _ in range(2))
        machine.synchronize()
        start.record()
        call()
        end.record()
        end.synchronize()


def report(results: Results) -> str:
    """The tables of docs/measured-times.md."""
    few = f"M ≤ {DECODE}"
    head = (
        f"| shape | tuning, s | vLLM's loop, s | ours / stock, {few} | above | ours / default, {few} | above "
        f"| three keys / stock, {few} | ours to the faster of both, at most |"
    )
    lines = [head, "|---" * 9 + "|"]
    detail = []
    for name, parts in results.found.items():
        times = {int(m): row for m, row in parts.get("retime", {}).get("ms", {}).items()}
        tuned, own = parts.get("tune", {}).get("seconds"), parts.get("loop", {}).get("seconds")
        cells = [name, f"{tuned:.0f}" if tuned else "-", f"{own:,.0f}" if own else "-"]
        decode, above = ([m for m in times if (m <= DECODE) == is_few] for is_few in (True, False))
        for to in (STOCK, DEFAULT):
            cells += [ratio(times, where, OURS, to) for where in (decode, above)]
        cells += [ratio(times, decode, THREE, STOCK), worst(times)]
        lines.append(f"| {' | '.join(cells)} |")
        detail += [f"\n{name} (Triton {parts.get('retime', {}).get('triton', '?')}), ms:\n"] if times else []
        detail += ["| M | stock | default | three keys | ours |", "|---:" * 5 + "|"] if times else []
        for m, row in sorted(times.items()):
            cells = [f"{row[who]:.4f}" if is_time(row, who) else str(row.get(who, "-")) for who in WHO]
            detail.append(f"| {m} | {' | '.join(cells)} |")
    return "\n".join([*lines, *detail])


def is_time(row: Mapping[str, Any], who: str) -> bool:
    """True if a contender has a time."""
    return isinstance(row.get(who), float)


def ratio(times: Mapping[int, Mapping[str, Any]], where: Iterable[int], who: str, to: str) -> str:
    """The geometric mean of the ratio of two contenders' times."""
    both = [times[m][who] / times[m][to] for m in where if is_time(times[m], who) and is_time(times[m], to)]
    return f"{geometric_mean(both):.2f}" if both else "-"


def worst(times: Mapping[int, Mapping[str, Any]]) -> str:
    """The largest ratio of our time to that of the installed entry, and where."""
    found = [
        (row[OURS] / min(row[who] for who in (STOCK, DEFAULT) if is_time(row, who)), m)
        for m, row in times.items()
        if is_time(row, OURS) and (is_time(row, STOCK) or is_time(row, DEFAULT))
    ]
    return f"{max(found)[0]:.2f} at M = {max(found)[1]}" if found else "-"


def extract(site: Path, target: Path) -> None:
    """Copy the files of vLLM that this needs, to take them to another machine."""
    files = [MOE, MOE_UTILS, PRODUCT]
    for shape in SHAPES.values():
        folder = Path(shape.form.package, shape.form.folder)
        for device in ("NVIDIA H200", "NVIDIA H100 80GB HBM3"):
            files += [str(folder / shape.file(device))]
    for file in dict.fromkeys(files):
        if (site / file).is_file():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site / file, target / file)
            print(target / file)


def main() -> None:
    """Do the parts that are asked for and not known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", type=Path, help="the folder that has vllm/")
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--time", type=float, help="of the first size of a sweep, in seconds (default: 12 or 20)"
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=list(TOKENS))
    parser.add_argument("--results", type=Path, default=Path("frameworks.json"))
    parser.add_argument("--limit-s", type=float, default=540.0)
    parser.add_argument("--again", action="store_true", help="do parts again that the results have")
    parser.add_argument("--extract", type=Path, metavar="DIR", help="copy the files of vLLM that this needs")
    parser.add_argument("--rehearse", action="store_true", help="tiny shapes on the CPU")
    parser.add_argument("--report", action="store_true", help="only print the tables")
    parsed = parser.parse_args()
    results = Results(parsed.results)
    if not parsed.report:
        if parsed.site is None or not (parsed.site / MOE).is_file():
            parser.error(f"--site: expected a folder that has {MOE}")
        parsed.site = parsed.site.resolve()
        if parsed.extract:
            extract(parsed.site, parsed.extract)
            return
        measure(parsed, results)
    print(report(results))


def measure(parsed: argparse.Namespace, results: Results) -> None:
    """Do the parts one after the other, while there is time."""
    end_s = time.perf_counter() + parsed.limit_s
    shapes = {name: SHAPES[name] for name in parsed.only}
    if parsed.rehearse:
        os.environ["TRITON_INTERPRET"] = "1"
        parsed.tokens = list(TINY_TOKENS)
        shapes = {name: rehearsed(shape) for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory(prefix="frameworks-") as folder:
        machine = Machine(parsed.site, Path(folder), rehearses=parsed.rehearse)
        for name, shape in shapes.items():
            try:
                stock_entries(shape, machine, parsed.site)
            except InputError as error:
                print(f"{name}: left out: {error}")
                continue
            for part in parsed.parts:
                left_s = end_s - time.perf_counter()
                if results.has(name, part, parsed.tokens) and not parsed.again:
                    continue
                if left_s < MIN_PART_S or (part == "loop" and shape.form.sizes[0] != "N"):
                    continue
                print(f"{name}: {part}, {left_s:.0f} s left", flush=True)
                try:
                    if part == "tune":
                        found = tune(shape, machine, parsed, Path(folder), left_s)
                    elif part == "retime":
                        found = retime(shape, machine, parsed, name, results)
                    else:
                        found = loop(shape, machine, parsed, left_s - MIN_PART_S / 2)
                    results.keep(name, part, found)
                except Exception:  # noqa: BLE001 - the other parts go on
                    traceback.print_exc()


def rehearsed(shape: Shape) -> Shape:
    """A shape that an interpreter can run."""
    sizes = TINY if shape.form.sizes[0] == "N" else TINY_MOE
    return replace(shape, sizes={**sizes, **({} if "group_n" not in shape.sizes else BLOCKS)})


if __name__ == "__main__":
    main()
