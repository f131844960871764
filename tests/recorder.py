"""What the program answers, recorded, so that a move or a rename can show that it changed nothing.

    python -m tests.recorder record before.json
    python -m tests.recorder compare before.json        # what differs now; the exit code is 1 then

Recorded are the `--json` of every command that has it and the files of `export`, the proposals of every
searcher by seed, answers of `best_config` on random caches, the bytes that `store` writes, stored journals as
they are parsed, and a search that is killed and resumed. Times of this machine are masked. `--without-prose`
compares no text that has a space in it: for a change of messages.
"""

import contextlib
import hashlib
import importlib
import io
import itertools
import json
import os
import random
import re
import shutil
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

# All that is taken of the package, by the place it is at: who moves or renames a thing changes it here.
PLACES = {
    **{
        name: f"autotune.testing.searcher_contract:{name}"
        for name in ("PARAMETERS", "CONSTRAINTS", "DEFAULT", "InProcessEvaluator", "make_space", "outcome")
    },
    "NoMoreTrials": "autotune.errors:NoMoreTrials",
    "AutotuneError": "autotune.errors:AutotuneError",
    "Config": "autotune.core.records:Config",
    "Tier": "autotune.core.records:Tier",
    "Status": "autotune.core.trials:Status",
    "PriorResults": "autotune.searchers.base:PriorResults",
    "Traits": "autotune.hardware.names:Traits",
    "add_tuning": "autotune.recording.tunings:add_tuning",
    "best_config": "autotune.serving.lookup:best_config",
    "best_json": "autotune.cli.best:best_json",
    "device_text": "autotune.serving.cache_schema:device_text",
    "encode_trial": "autotune.evaluation.journal:encode_trial",
    "engine_names": "autotune.searchers:engine_names",
    "main": "autotune.cli:main",
    "make_searcher": "autotune.searchers:make_searcher",
    "read_journal": "autotune.evaluation.journal:read_journal",
    "record_text": "autotune.serving.cache_schema:record_text",
    "store": "autotune.serving.cache:store",
    "strategy_names": "autotune.searchers:strategy_names",
}
RENAMED_KEYS: dict[str, str] = {}  # keys of JSON that were renamed on purpose, old to new
MASKED = {  # what this machine decides on
    *("seconds", "compile_ms", "cost_s", "host", "tuned_at", "thinking_ms", "timestamp"),
    *("CompilationTime", "BenchmarkTime", "TimeStamp", "compilation", "benchmark", "framework"),
    *("stages", "doubts"),
    *("compile_time", "benchmark_time", "verification_time", "strategy_time", "framework_time"),
}
ANSWERS, PER_CACHE, SEARCHES = 10_000, 100, 2
KILLED_AFTER = 5  # trials
MOST = 40  # differences that are printed
ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests/golden"
T4 = GOLDEN / "recorded/convolution/A100_T4.json"
UNREPEATABLE = {"diff_evo", "bayes_opt", "skopt"}


def place(name):
    """A thing of the package."""
    module, _, attribute = PLACES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def masked(value):
    """JSON values without what this machine decides on; the fake device's joules have few honest digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: "*" if name in MASKED else masked(item) for name, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def run(folder, *arguments):
    """Exit code and output of a command in a folder, JSON as values; names of folders are left out."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = place("main")(list(map(str, arguments)))
        except SystemExit as error:  # a command that answers no
            code = error.code
    text = out.getvalue().replace(str(folder), "DIR").replace(str(ROOT), "ROOT")
    try:
        return [code, masked(json.loads(text))]
    except ValueError:
        return [code, re.sub(r"[0-9.]+ s\b", "* s", text)]


def commands(folder):
    """Every command with `--json`, on the fake device, on caches that are made here, on recorded files."""
    from tests.conftest import Folder
    from tests.unit.test_tune_recorded import CALL, ROWS

    made = Folder(folder)
    search = ("search", "double.yaml", "--device", "fake", "--json")
    surrogate = ("--engine", "surrogate", "--budget", "8", "--size", "n=70", "--seed", "3")
    golden = GOLDEN / "identity-1"
    done = {
        "search": (*search, "--budget", "30"),
        "search again": (*search, "--budget", "30"),
        "search surrogate": (*search, *surrogate),
        "search energy": (*search, "--objective", "energy", "--budget", "9"),
        "search pareto": (*search, "--objective", "pareto", "--budget", "9"),
        "adopt": (*search, "--engine", "adopt", "--size", "n=500", "--budget", "3"),
        "adopt known": (*search, "--engine", "adopt"),
        "wanted": ("search", "--wanted", "--device", "fake", "--json", "double.yaml"),
        "best": ("best", "double", "--device", "fake", "--size", "n=1000", "--json"),
        "best near": ("best", "double", "--device", "fake", "--size", "n=900", "--json"),
        "best shipped": ("best", "reduce", "--device", "NVIDIA A100", "--size", "n=1000000", "--json"),
        "best none": ("best", "double", "--device", "fake", "--size", "n=1", "--strict", "--json"),
        "ladder": ("run", "double.yaml", "--landmarks", "--device", "fake", "--json"),
        "space": ("space", "double.yaml", "--device", "fake", "--json"),
        "space config": ("space", "double.yaml", "--device", "fake", "--config", "A=6,B=2", "--json"),
        "show": ("show", golden / "double.jsonl", "--json"),
        "show failed": ("show", golden / "double.jsonl", "--status", "wrong_result", "--json"),
        "show where": ("show", golden / "sums.jsonl", "--where", "BLOCK > 1", "--sort", "BLOCK", "--json"),
        "import": ("import", T4, "--kernel", "convolution", "--journal", "imported.jsonl", "--json"),
        "show importance": ("show", "imported.jsonl", "--importance", "--json"),
        "show pareto": ("show", golden / "double.pareto.jsonl", "--pareto", "--json"),
        "compare": ("compare", "sums", "--cache", "one", "--json"),
        "compare imported": ("compare", "convolution", "--imported", T4, "--json"),
        "merge": ("merge", "one", golden / "cache", "cache", "--into", "united", "--json"),
        "feasible": ("space", ROOT / "spaces/matadd.yaml", "--compile", "--budget", "2", "--json"),
        "several spaces": ("search", "other.yaml", "third.yaml", *search[2:], "--budget", "17"),
        "sweep": ("search", "third.yaml", *search[2:], "--sweep", "n=500:2000:x4", "--budget", "18"),
        "recorded": ("search", "other.yaml", "--recorded", "calls.json", *search[2:], "--budget", "3"),
        **{f"export {kind}": ("export", T4, "--format", kind, "-o", f"{kind}.out") for kind in EXPORTS},
    }
    for name in ("other", "third"):
        text = made.space.read_text()
        (folder / f"{name}.yaml").write_text(text.replace("kernel: double", f"kernel: {name}"))
    arrays = dict.fromkeys("xy", replace(ROWS, dtype="int32", shape=(100,)))
    call = replace(CALL, function="double", scalars={"n": 100}, arrays=arrays, passed=("x", "y", "n"))
    place("add_tuning")(folder / "calls.json", call)
    shutil.copytree(golden / "cache", folder / "one")
    found = {}
    for name, arguments in done.items():
        if name == "wanted":
            question = {"kernel": "double", "device": None, "dtype": None, "sizes": {"n": 44}}
            (folder / "cache/wanted.jsonl").write_text(json.dumps(question) + "\n")
        found[name] = run(folder, *arguments)
    for kind in EXPORTS:
        lines = (made.path / f"{kind}.out").read_text().splitlines()
        found[f"file {kind}"] = _rows(lines)
    code, devices = run(folder, "devices", "--json")
    found["devices"] = [code, [one for one in devices if one["backend"] == "fake"]]
    found["united"] = _files(folder, "united/**/*")
    return found


EXPORTS = ("t4", "kernel-tuner", "journal")


def _files(folder, pattern):
    """The files of a folder, masked, by their paths in it."""
    paths = (path for path in sorted(folder.glob(pattern)) if path.is_file())
    return {str(path.relative_to(folder)): _rows(path.read_text().splitlines()) for path in paths}


def _rows(lines):
    """A file of JSON or of JSON lines, masked."""
    try:
        return masked(json.loads("\n".join(lines)))
    except ValueError:
        return [masked(json.loads(line)) for line in lines]


def proposals(folder):
    """What every searcher tries, by seed, and again with what another device knows."""
    outcome = place("outcome")
    space = place("make_space")(folder, *(place(name) for name in ("PARAMETERS", "CONSTRAINTS", "DEFAULT")))
    times = [(config, found) for config in space if isinstance(found := outcome(config), float)]
    prior = place("PriorResults")("elsewhere", tuple(times[::7]), place("Traits")())
    found = {}
    for engine in place("engine_names")():
        strategies = [one for one in place("strategy_names")(engine) if one not in UNREPEATABLE]
        known = ((), (prior,)) if engine in ("surrogate", "adopt") else ((),)
        for strategy, seed, priors in itertools.product(strategies or [None], range(SEARCHES), known):
            try:
                searcher = place("make_searcher")(engine, strategy, priors=priors)
            except place("AutotuneError"):
                continue  # a package that is not installed
            evaluate = place("InProcessEvaluator")(space, outcome, budget=30)
            with contextlib.suppress(place("NoMoreTrials")), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                searcher.search(space, evaluate, seed=seed)
            name = f"{engine} {strategy} seed {seed}{' with a prior' * bool(priors)}"
            found[name] = [str(config) for config in evaluate.tried]
    return found


def _random_config(draw):
    return place("Config")(
        {
            "ALGORITHM": draw.choice(("tree", "shuffle")),
            "BLOCK": draw.choice((32, 64, 128, 256, 512)),  # 512 is no value of the parameter
            "VECTOR": draw.choice((1, 2, 4)),
            "UNROLL": draw.random() < 0.5,
        }
    )


def _random_cache(draw, root):
    """Devices and their results under a folder; returns the devices, one of which has none."""
    from tests.cache_example import DEVICE, entry, record
    from tests.cache_files import write

    devices = []
    for number in range(draw.randint(2, 6)):
        vendor, architecture = draw.choice((("NVIDIA", "sm_80"), ("NVIDIA", "sm_90"), ("AMD", "gfx90a")))
        device = replace(
            DEVICE,
            name=f"Device {number}",
            slug=f"device-{number}",
            kind=draw.choice(("gpu", "gpu", "gpu", "cpu")),
            vendor=vendor,
            architecture=architecture,
            max_threads_per_block=draw.choice((16, 256, 512, 1024)),
            shared_bytes_per_block=draw.choice((512, 49_152)),
            has_shuffle=draw.random() < 0.8,
        )
        devices.append(device)
        entries = {}
        for _ in range(draw.randint(1, 4)):
            n, dtype = draw.randint(1, 4096), draw.choice(("int32", "float32"))
            measured = {_random_config(draw): draw.uniform(1, 9) for _ in range(draw.randint(0, 6))}
            known = replace(entry(n, dtype), config=_random_config(draw), time_ms=draw.uniform(0.5, 1))
            entries[n, dtype] = replace(known, measured=tuple(measured.items()))
        if number:
            write(root, device, record(*entries.values(), default=_random_config(draw)))
    return devices


def answers(folder):
    """A digest of every answer of `best_config`: what it serves, how it fits, and how it is launched."""
    found = []
    for number in range(ANSWERS // PER_CACHE):
        draw, root = random.Random(number), folder / str(number)
        devices = _random_cache(draw, root)
        sizes = [draw.randint(1, 4096) for _ in range(PER_CACHE // 4)]
        for _ in range(PER_CACHE):
            question = {
                "n": draw.choice(sizes),
                "dtype": draw.choice((None, *["int32", "float32"] * 9, "int8")),
            }
            tiers, device = list(place("Tier")), draw.choice(devices)
            least = draw.choice((*tiers, *tiers[3:] * 3))
            asked = draw.choice((device, device.slug, device.name, device, "NVIDIA A100"))
            try:
                best = place("best_config")("reduce", asked, cache=root, min_match=least, **question)
                answer = place("best_json")(best) | {"options": best.options("cuda")}
                answer["match"] = {key: item for key, item in answer["match"].items() if key != "detail"}
                answer["stale"] = len(answer["stale"])
                with contextlib.suppress(place("AutotuneError")):
                    answer["launch"] = [
                        (step.entry, step.grid, step.block, step.shared_bytes)
                        for step in best.launch(n=question["n"])
                    ]
            except place("AutotuneError") as error:
                answer = type(error).__name__
            found.append(digest(json.dumps(answer, sort_keys=True)))
        shutil.rmtree(root)
    return {str(number): found[number : number + 100] for number in range(0, ANSWERS, 100)}


def stored(folder):
    """The bytes that `store` writes for fixed records, one after the other."""
    from tests.cache_example import DEFAULT, DEVICE, OTHER, entry, record

    first = replace(entry(4096), measured=((DEFAULT, 2.5),), front=((DEFAULT, 2.5, 1.0),), registers=32)
    found = {}
    for device, *entries in ((DEVICE, first), (OTHER, entry(17)), (DEVICE, entry(17, BLOCK=32), first)):
        place("store")(folder, device, record(*entries))
        for file in sorted(folder.rglob("*.json")):
            found[f"{len(found)} {file.relative_to(folder)}"] = file.read_text()
    return found


def journals(folder):
    """Header and trials of the stored journals."""
    found = {}
    for path in sorted((GOLDEN / "identity-1").glob("*.jsonl")):
        header, trials, *_ = place("read_journal")(path)
        found[path.name] = [header, [place("encode_trial")(trial) for trial in trials]]
    return found


def resumed(folder):
    """What a search leaves, and what is different after one that was killed and went on.

    Next to the trials of the latter, the best one is timed less often: its binary is not in the journal.
    """
    from tests.conftest import Folder
    from tests.faults.test_resume import SLOW, kill_when

    options = ("--engine", "random", "--seed", "3", "--journal", "j.jsonl", "--json")
    command = ("search", "double.yaml", "--device", "fake", *options)
    whole, killed = folder / "whole", folder / "killed"
    for path in (whole, killed):
        path.mkdir()
        made = Folder(path)
        made.write(SLOW)
        if path is killed:
            kill_when(made.start(*command), path / "j.jsonl", KILLED_AFTER)
        run(path, *command)
    expected, left = (_files(path, "cache/**/*") | _files(path, "*.jsonl") for path in (whole, killed))
    return {
        **expected,
        "differences": [line for line in differences(expected, left) if "/control: is gone" not in line],
    }


SECTIONS = (commands, proposals, answers, stored, journals, resumed)


def record(sections=SECTIONS):
    """All of it, as JSON values."""
    whole = {}
    with tempfile.TemporaryDirectory() as kept:
        os.environ["XDG_CACHE_HOME"] = kept  # no binaries of the user's
        for section in sections:
            with tempfile.TemporaryDirectory() as folder:
                whole[section.__name__] = section(Path(folder).resolve())
    return json.loads(json.dumps(whole))


def differences(before, now, where="", *, prose=True):
    """The places where two recordings differ, a line each; renamed keys are taken for each other."""
    if isinstance(before, dict) and isinstance(now, dict):
        before = {RENAMED_KEYS.get(name, name): item for name, item in before.items()}
        for name in dict.fromkeys((*before, *now)):
            if name in before and name in now:
                yield from differences(before[name], now[name], f"{where}/{name}", prose=prose)
            else:
                yield f"{where}/{name}: {'is new' if name in now else 'is gone'}"
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}/{number}", prose=prose)
    elif before != now and (prose or not all(isinstance(one, str) and " " in one for one in (before, now))):
        yield f"{where}: was {str(before)[:200]!r}, is {str(now)[:200]!r}"


def main(arguments):
    prose = "--without-prose" not in arguments
    if os.environ.get("PYTHONHASHSEED") != "0":  # some strategies of Kernel Tuner go through sets of texts
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.recorder", *arguments])
    what, file = (one for one in arguments if not one.startswith("--"))
    if what == "record":
        Path(file).write_text(json.dumps(record(), indent=1))
        return 0
    found = list(differences(json.loads(Path(file).read_text()), record(), prose=prose))
    sys.stdout.write("\n".join([*found[:MOST], f"{len(found)} differences", ""]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
