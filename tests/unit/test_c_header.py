"""The C header: it compiles, in C and in C++, and answers as `best_config` does."""

import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autotune import best_config
from autotune.cli import main
from autotune.core.expressions import parse
from autotune.core.records import Config, Entry, LaunchSpec, Parameter, VariantTable
from autotune.core.syntax import parse_expression
from autotune.errors import InputError, NoConfig
from autotune.interop.c_condition import Translator
from autotune.interop.c_header import TEMPLATE, header
from autotune.serving.cache import store
from tests.cache_example import DEVICE, PROVENANCE, record

ROOT = Path(__file__).parents[2]
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
DOMAINS = {
    "ALGORITHM": ("tree", "shuffle"),
    "BLOCK": (32, 64, 128, 256),
    "VECTOR": (1, 2, 4),
    "UNROLL": (False, True),
}
DEVICES = (
    replace(
        DEVICE, name="NVIDIA H200", slug="nvidia-h200", vendor="NVIDIA Corporation", architecture="sm_90"
    ),
    replace(
        DEVICE,
        name="NVIDIA H100 PCIe",
        slug="nvidia-h100-pcie",
        vendor="NVIDIA",
        architecture="sm_90",
        has_shuffle=False,
    ),
    replace(
        DEVICE,
        name="NVIDIA A100",
        slug="nvidia-a100",
        vendor="NVIDIA",
        architecture="sm_80",
        max_threads_per_block=128,
    ),
    replace(
        DEVICE,
        name="AMD W6600",
        slug="amd-w6600",
        vendor="AMD",
        architecture="gfx1032",
        shared_bytes_per_block=600,
    ),
    replace(DEVICE, name="Some CPU", slug="cpu-some", vendor="Intel", architecture="x86", kind="cpu"),
)
# What a device without results is called in the header, and a name of such a device.
STRANGERS = {"sm_80": "NVIDIA A30", "nvidia": "GeForce GTX 1630", "amd": "Radeon Nova", "other": "Unknownium"}
CONSTRAINTS = (
    "BLOCK <= device.max_threads_per_block",
    "n % VECTOR == 0 or (ALGORITHM == 'tree' and not UNROLL)",
    "ALGORITHM != 'shuffle' or device.has_shuffle",
    "TILES >= 2 if UNROLL else DTYPE in ('int32', 'float32')",
    "VECTOR < 4 or n % (n // BLOCK) >= 0",  # no valid configuration where it divides by zero
)


def config(draw):
    return Config({name: draw.choice(values) for name, values in DOMAINS.items()})


def entry(draw, dtype, sizes):
    times = {config(draw): draw.uniform(1, 9) for _ in range(draw.randint(1, 12))}
    (best, time_ms), *others = sorted(times.items(), key=lambda item: item[1])
    interval = (time_ms, time_ms)
    found = replace(PROVENANCE, tuned_at=f"2025-0{draw.randint(1, 9)}-01T00:00:00+00:00")
    registers = draw.choice((None, 32, 64, 128))
    return Entry(sizes, dtype, best, time_ms, interval, None, (), found, tuple(others), registers)


def make_cache(folder, seed, names, is_alike):
    """A cache of random results on some devices, for sizes of these names; the sizes are returned.

    `is_alike`: all devices have results for the same sizes.
    """
    draw = random.Random(seed)
    stored, own = [], []
    problem = " * ".join(names)
    for device in DEVICES[: draw.randint(1, len(DEVICES))]:
        if not own or not is_alike:
            own = [
                {name: draw.choice((3, 64, 1000, 4096, 10_000)) for name in names}
                for _ in range(draw.randint(1, 3))
            ]
        stored += own
        entries = tuple(entry(draw, dtype, sizes) for dtype in ("int32", "float32") for sizes in own)
        device = replace(device, registers_per_block=draw.choice((None, 8192, 65_536)))
        kernel = replace(
            record(*entries, default=config(draw)),
            constraints=tuple(draw.sample(CONSTRAINTS, 3)),
            derived={
                "TILE": "BLOCK * VECTOR",
                "TILES": f"ceil_div({problem}, TILE)",
                "ALONE": "ALGORITHM == 'tree' and TILES < 25",
            },
            launch=(
                LaunchSpec("main", (f"{problem} // TILE",), ("BLOCK",), ("x",), "4 * BLOCK"),
                LaunchSpec(
                    "last",
                    ("1",),
                    ("min(2 * BLOCK, 256)", "TILES - 30"),
                    ("x",),
                    when="TILES > 20 and not ALONE",
                ),
            ),
        )
        store(folder, device, replace(kernel, variants=tables(random.Random(seed), entries, own)))
    return stored


def tables(draw, entries, sizes):
    """Tables of variants for both element types, whose variants were not all timed at all sizes."""
    found = []
    for dtype in ("int32", "float32"):
        timed = {config for one in entries if one.dtype == dtype for config in one.relative_times}
        chosen = draw.sample(sorted(timed, key=str), min(4, len(timed)))
        halfway = ()
        if len(sizes[0]) == 1:
            times = (draw.uniform(1, 3), None, 1.0, 1.0)[: len(chosen)]
            halfway = tuple(({"n": round((one["n"] * 1000) ** 0.5)}, times) for one in sizes)
        found.append(VariantTable(dtype, tuple(sizes), tuple(chosen), (1.1, 1.2), "", halfway))
    return tuple(found)


def ask(folder, kernel, names, questions):
    """Compile the header of a kernel with a program that answers (device, dtype, sizes) lines, and run it."""
    asked = ", ".join(f"size[{place}]" for place in range(len(names)))
    prefix = f"autotune_{kernel}"
    (folder / "ask.cpp").write_text(f"""\
#include "{kernel}.h"
#include <cstdio>
int main() {{
    char device[200];
    int dtype;
    long long size[{len(names)}];
    while (std::scanf("%199s %d", device, &dtype) == 2) {{
        for (long long &one : size) if (std::scanf("%lld", &one) != 1) return 1;
        const auto best = {prefix}_best({prefix}_device_of(device), dtype, {asked});
        std::printf("%d %s", best.tier, best.source);
#define SHOW(field) std::printf(" " #field "=%lld", (long long)best.config.field);
        {prefix}_MACROS(SHOW)
        std::printf("\\n");
    }}
}}
""")
    flags = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-O0"]
    subprocess.run(["g++", *flags, "ask.cpp", "-o", "ask"], cwd=folder, check=True)
    lines = "".join(f"{device} {dtype} {' '.join(map(str, sizes))}\n" for device, dtype, sizes in questions)
    done = subprocess.run([folder / "ask"], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def expected(kernel, device, dtype, sizes, cache):
    """The line that the program must print."""
    try:
        best = best_config(kernel, device, dtype=dtype, cache=cache, **sizes)
    except NoConfig:
        return None
    defines = best.defines
    fields = " ".join(
        f"{item.name}={defines.get(defines[item.name], defines[item.name])}"
        for item in best.record.parameters
    )
    tiers = list(type(best.match.tier))
    return f"{tiers.index(best.match.tier)} {best.source_device or ''} {fields}"


@needs_compiler
@pytest.mark.parametrize(
    ("seed", "names", "is_alike"),
    [(3, ("n",), False), (6, ("n",), True), (1, ("d", "n"), False), (5, ("d", "n"), True)],
)
def test_random_caches_give_the_same_answers(tmp_path, seed, names, is_alike):
    cache = tmp_path / "cache"
    stored = make_cache(cache, seed, names, is_alike)
    (tmp_path / "reduce.h").write_text(header("reduce", cache))
    draw, questions, wanted = random.Random(seed), [], []
    held = {folder.name: folder.name for folder in cache.iterdir()}
    strangers = {
        slug: name for slug, name in STRANGERS.items() if f"_{slug}," in (tmp_path / "reduce.h").read_text()
    }
    for slug, name in (held | strangers).items():
        for number in range(1000 // len(held | strangers) + 1):
            sizes = (
                draw.choice(stored)
                if number % 4 == 0
                else {size: int(2 ** draw.uniform(0, 20)) for size in names}
            )
            dtype = draw.randrange(2)
            answer = expected("reduce", name, ("int32", "float32")[dtype], sizes, cache)
            is_own = answer is not None and answer.startswith(("0 ", "1 ", "2 "))
            if is_own or is_alike or sizes in stored:  # between sizes, others' tiers go by the nearest
                questions.append((slug, dtype, sizes.values()))
                wanted.append(answer)
    assert len(questions) > 200
    for question, line, answer in zip(
        questions, ask(tmp_path, "reduce", names, questions), wanted, strict=True
    ):
        assert line == answer or (answer is None and line.startswith("7 ")), question
    met = {line.split()[0] for line in wanted if line}
    assert len(met) >= 3 and ("1" in met or is_alike)  # tiers, the interpolated one among them


@needs_compiler
def test_the_results_that_come_with_autotune_give_the_same_answers(tmp_path):
    (tmp_path / "reduce.h").write_text(header("reduce", ROOT / "cache"))
    draw, questions, wanted = random.Random(0), [], []
    for _ in range(1000):
        n, dtype = int(2 ** draw.uniform(0, 34)), draw.randrange(2)
        questions.append(("nvidia-h200", dtype, [n]))
        wanted.append(
            expected("reduce", "nvidia-h200", ("int32", "float32")[dtype], {"n": n}, ROOT / "cache")
        )
    assert ask(tmp_path, "reduce", ("n",), questions) == wanted


@needs_compiler
def test_the_look_up_is_a_constant_and_the_header_is_c_too(tmp_path):
    assert (
        main(
            [
                "export",
                "reduce",
                "--format",
                "c-header",
                "-o",
                str(tmp_path / "reduce.h"),
                "--cache",
                str(ROOT / "cache"),
            ]
        )
        == 0
    )
    (tmp_path / "constant.cpp").write_text("""\
#include "reduce.h"
constexpr auto best = autotune_reduce_best(autotune_reduce_nvidia_h200, autotune_reduce_int32, 134217728);
static_assert(best.tier == AUTOTUNE_EXACT && best.config.BLOCK_SIZE <= 1024, "");
static_assert(autotune_reduce_device_of("nvidia-h200") == autotune_reduce_nvidia_h200, "");
static_assert(autotune_reduce_device_of("voodoo") == autotune_reduce_OTHER, "");
""")
    (tmp_path / "plain.c").write_text("""\
#include "reduce.h"
int main(void) { return autotune_reduce_best(autotune_reduce_nvidia_h200, 0, 100).config.BLOCK_SIZE == 0; }
""")
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["g++", "-std=c++14", *warnings, "-c", "constant.cpp"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-std=c99", *warnings, "plain.c", "-o", "plain", "-lm"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "plain"], check=True)


LITERALS = ("a", "b", "a", "b", "k", "0", "3", "-2", "missing")


def random_number(draw, depth):
    """An expression of whole numbers, some of which cannot be evaluated."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(LITERALS)
    one, two = random_number(draw, depth - 1), random_number(draw, depth - 1)
    if draw.random() < 0.2:
        return f"({one} if {random_truth(draw, depth - 1)} else {two})"
    if draw.random() < 0.3:
        return f"{draw.choice(('min', 'max', 'ceil_div', 'round_up'))}({one}, {two})"
    if draw.random() < 0.1:
        return f"{draw.choice(('ceil', 'floor'))}(log2({one}))"
    return draw.choice((f"(-{one})", f"({one} {draw.choice(('+', '-', '*', '//', '%'))} {two})"))


def random_truth(draw, depth):
    """A condition on whole numbers and a text."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice(("t == 'x'", "t in ('y', 'z')", "a > b", "a", "k"))
    if draw.random() < 0.4:
        one, two = random_number(draw, depth - 1), random_number(draw, depth - 1)
        return draw.choice(
            (f"({one} {draw.choice(('==', '!=', '<', '<=', '>', '>='))} {two})", f"(0 < {one} <= {two})",
             f"({one} in (1, {two}, b))", f"({one} not in (2, {two}))")
        )  # fmt: skip
    one, two = random_truth(draw, depth - 1), random_truth(draw, depth - 1)
    return draw.choice((f"(not {one})", f"({one} and {two})", f"({one} or {two})"))


@needs_compiler
def test_conditions_on_sizes_hold_in_c_where_they_hold_here(tmp_path):
    draw = random.Random(3)
    known = {"t": "x", "k": 4}
    texts = [random_truth(draw, 4) for _ in range(500)]
    residue = Translator(known, {"a": "a", "b": "b"})
    lines = [
        f"ok_flag = 1; std::putchar({residue.truth(parse_expression(text))} && ok_flag ? '1' : '0');"
        for text in texts
    ]
    helpers = TEMPLATE.read_text().split("$declarations")[0].split("{guard}_H")[2]
    (tmp_path / "a.cpp").write_text(
        f"{helpers}#include <cstdio>\nint ok_flag, *ok = &ok_flag;\n"
        'int main() { long long a, b; while (std::scanf("%lld %lld", &a, &b) == 2) {\n'
        + "\n".join([*lines, r"std::putchar('\n'); } }", ""])
    )
    subprocess.run(["g++", "-std=c++14", "-O0", "-w", "a.cpp", "-o", "a"], cwd=tmp_path, check=True)
    cases = [(a, b) for a in (-7, -1, 0, 1, 2, 6, 64) for b in (-3, -1, 0, 1, 2, 4)]
    asked = "".join(f"{a} {b}\n" for a, b in cases)
    done = subprocess.run([tmp_path / "a"], input=asked, capture_output=True, text=True, check=True)
    for (a, b), line in zip(cases, done.stdout.splitlines(), strict=True):
        for text, found in zip(texts, line, strict=True):
            assert found == str(int(parse(text).holds({**known, "a": a, "b": b}))), (text, a, b)


def test_a_header_is_for_one_content_of_the_inputs(tmp_path):
    draw = random.Random(0)
    plain, sorted_ = (
        entry(draw, "int32", {"n": 64}),
        replace(entry(draw, "int32", {"n": 4096}), data="sorted"),
    )
    store(tmp_path, DEVICE, record(plain, sorted_, default=config(draw)))
    texts = {data: header("reduce", tmp_path, data) for data in (None, "sorted")}
    assert [f"{{{log}}}" in texts[None] for log in ("6.0", "12.0")] == [True, False], texts[None]
    assert [f"{{{log}}}" in texts["sorted"] for log in ("6.0", "12.0")] == [False, True]


def changed(folder, **fields):
    sizes = {"n": 64}
    draw = random.Random(0)
    store(folder, DEVICE, replace(record(entry(draw, "int32", sizes)), **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"constraints": ("VECTOR < 3", "n ** 2 > 3")}, "reduce: `n ** 2` cannot be expressed in C"),
        ({"constraints": ("n < 'x'",)}, "`'x'` cannot be expressed in C"),
        ({"constraints": ("min(n) > 1",)}, "`min(n)` cannot be expressed in C"),
        ({"derived": {"TILE": "n % 1.5", "BLOCKS": "n"}}, "`1.5` cannot be expressed in C"),
        ({"kernel": "other"}, "no results for a kernel 'reduce' in"),
    ],
)
def test_what_c_cannot_express_is_refused_by_name(tmp_path, fields, message):
    changed(tmp_path, **fields)
    with pytest.raises(InputError) as error:
        header("reduce", tmp_path)
    assert message in str(error.value)


def test_a_keyword_of_c_is_refused(tmp_path):
    parameters = (*record().parameters, Parameter("register", (1, 2)))
    entries = tuple(
        replace(one, config=Config({**one.config, "register": 1}), measured=())
        for one in (entry(random.Random(0), "int32", {"n": 64}),)
    )
    changed(tmp_path, parameters=parameters, entries=entries)
    with pytest.raises(InputError, match="'register' is a keyword of C"):
        header("reduce", tmp_path)


@needs_compiler
def test_the_default_of_a_device_without_results_is_the_newest_record_s(tmp_path):
    old, new = (replace(PROVENANCE, tuned_at=f"202{year}-01-01T00:00:00+00:00") for year in (4, 5))
    for device, origin, block in ((DEVICES[0], old, 32), (DEVICES[2], new, 128)):
        found = replace(entry(random.Random(0), "int32", {"n": 64}), provenance=origin)
        default = Config({**record().default, "BLOCK": block})
        held = replace(record(found, default=default), constraints=("n < 100 or BLOCK == 32 or VECTOR > 4",))
        store(tmp_path / "cache", device, held)
    (tmp_path / "reduce.h").write_text(header("reduce", tmp_path / "cache"))
    lines = ask(tmp_path, "reduce", ("n",), [("other", 1, [64]), ("other", 1, [128])])
    assert lines[0] == expected("reduce", "Unknownium", "float32", {"n": 64}, tmp_path / "cache")
    assert lines[0].startswith("6 ") and "BLOCK=128" in lines[0]
    assert expected("reduce", "Unknownium", "float32", {"n": 128}, tmp_path / "cache") is None
    assert lines[1].startswith("7 ")


@needs_compiler
@pytest.mark.parametrize("strange", [{**record().default, "ALGORITHM": "bush"}, {"BLOCK": 64}])
def test_a_result_that_the_parameters_do_not_have_is_passed_over(tmp_path, strange):
    entries = [entry(random.Random(seed), "int32", {"n": n}) for seed, n in enumerate((64, 4096))]
    broken = replace(entries[0], config=Config(strange), measured=((Config(strange), 1.0),))
    store(tmp_path / "cache", DEVICE, record(broken, entries[1]))
    (tmp_path / "reduce.h").write_text(header("reduce", tmp_path / "cache"))
    (line,) = ask(tmp_path, "reduce", ("n",), [(DEVICE.slug, 0, [64])])
    assert line == expected("reduce", DEVICE.slug, "int32", {"n": 64}, tmp_path / "cache")
    assert line.startswith("2 ")


@needs_compiler
def test_the_example_compiles_and_prints_what_best_config_says(tmp_path):
    (tmp_path / "reduce.h").write_text(header("reduce", ROOT / "cache"))
    source = ROOT / "examples/cpp_header/main.cpp"
    command = [
        "g++",
        "-std=c++14",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{tmp_path}",
        source,
        "-o",
        tmp_path / "main",
    ]
    subprocess.run(command, check=True)

    def printed(device):
        done = subprocess.run(
            [tmp_path / "main", device, "5000000"], capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    best = best_config("reduce", "nvidia-h200", dtype="int32", cache=ROOT / "cache", n=5_000_000)
    _, match, flags = printed("nvidia-h200")
    assert match == "match: nearest size nvidia-h200"
    numbers = dict(flag.removeprefix("-D").split("=") for flag in flags.split()[1:])
    defines = best.defines
    assert {name: str(defines.get(defines[name], defines[name])) for name in best} == {
        name: numbers[name] for name in best
    }
    assert printed("voodoo")[1].startswith("match: portable nvidia-h200")
