"""The C header: it compiles, in C and in C++, and answers as `best_config` does."""

import random
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from autotune import best_config
from autotune.cli import main
from autotune.core.expressions import parse
from autotune.core.records import Config, Entry, LaunchSpec, Parameter, VariantTable
from autotune.core.syntax import parse_expression
from autotune.errors import InputError, NoConfig
from autotune.hardware.names import slug as slug_of
from autotune.interop.c_condition import Translator
from autotune.interop.c_header import TEMPLATE, header
from autotune.serving.cache import store
from autotune.serving.device_records import device_records, newest
from autotune.serving.validity import KernelOnDevice
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


def make_cache(folder, seed, names, with_tables=False):
    """A cache of random results on some devices, for sizes of these names; the sizes are returned."""
    draw = random.Random(seed)
    stored, own = [], []
    problem = " * ".join(names)
    for device in DEVICES[: draw.randint(1, len(DEVICES))]:
        own = [
            {name: draw.choice((3, 64, 1000, 4096, 10_000)) for name in names}
            for _ in range(draw.randint(1, 3))
        ]
        stored += own
        entries = tuple(entry(draw, dtype, sizes) for dtype in ("int32", "float32") for sizes in own)
        device = replace(device, registers_per_block=draw.choice((None, 8192, 65_536)))
        kernel = replace(
            record(*entries, default=config(draw)),
            constraints=tuple(draw.sample(CONSTRAINTS, 2)),
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
        variants = tables(random.Random(seed), entries, own) if with_tables else ()
        store(folder, device, replace(kernel, variants=variants))
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


@cache
def written(cache):
    """The header of a cache, which takes as long to write as its program takes to compile."""
    return header("reduce", cache)


def answers(tmp_path, names, questions):
    """The lines of the program for (device, name of the device, type, sizes)."""
    (tmp_path / "reduce.h").write_text(written(tmp_path / "cache"))
    return ask(
        tmp_path, "reduce", names, [(slug, dtype, sizes.values()) for slug, _, dtype, sizes in questions]
    )


def wanted_lines(tmp_path, questions):
    """The lines that `best_config` gives, for the questions that `answers` takes."""
    found = (
        expected("reduce", name, ("int32", "float32")[dtype], sizes, tmp_path / "cache")
        for _, name, dtype, sizes in questions
    )
    return [line or "7 " for line in found]


def asked_and_wanted(tmp_path, names, questions):
    """The lines of the program, and those of `best_config`."""
    return answers(tmp_path, names, questions), wanted_lines(tmp_path, questions)


def devices_of(cache):
    """The devices of a cache by their slugs, and those without results by what the header calls them."""
    text = written(cache)
    held = {folder.name: folder.name for folder in cache.iterdir()}
    return held | {slug: name for slug, name in STRANGERS.items() if f"_{slug}," in text}


CACHES = pytest.mark.parametrize(
    ("seed", "names"), [(3, ("n",)), (6, ("n",)), (1, ("d", "n")), (5, ("d", "n"))]
)


def asked_of(devices, sizes):
    """Questions for each device, both types and all sizes, which may be drawn anew each time."""
    return [(slug, name, dtype, one) for slug, name in devices for dtype in (0, 1) for one in sizes()]


def anywhere(draw, names, count):
    """Sizes that are drawn anew at each call."""
    return lambda: [{name: int(2 ** draw.uniform(0, 20)) for name in names} for _ in range(count)]


@needs_compiler
@CACHES
def test_every_device_gets_the_answer_of_best_config_and_elsewhere_its_nearest_result(tmp_path, seed, names):
    cache = tmp_path / "cache"
    stored = make_cache(cache, seed, names)
    tuned = asked_of(devices_of(cache).items(), lambda: stored)
    own = [(folder.name, folder.name) for folder in cache.iterdir()]
    questions = tuned + asked_of(own, anywhere(random.Random(seed), names, 30))
    answered = list(zip(questions, *asked_and_wanted(tmp_path, names, questions), strict=True))
    for question, line, wanted in answered[: len(tuned)]:
        assert line.startswith(wanted), question
    checked = 0
    for question, line, wanted in answered[len(tuned) :]:
        if wanted[0] in "02":
            assert line == wanted, question
            checked += 1
        else:
            assert line[0] in "34567", question
    assert checked > 10


@needs_compiler
@CACHES
def test_with_tables_the_answers_are_the_same_and_what_is_served_elsewhere_may_run_there(
    tmp_path, seed, names
):
    cache = tmp_path / "cache"
    stored = make_cache(cache, seed, names, with_tables=True)
    tuned = asked_of(devices_of(cache).items(), lambda: stored)
    elsewhere = asked_of(devices_of(cache).items(), anywhere(random.Random(seed), names, 10))
    lines = answers(tmp_path, names, tuned + elsewhere)
    for question, line, wanted in zip(tuned, lines, wanted_lines(tmp_path, tuned), strict=False):
        # between its sizes a sweep has answers, also where its own result for a size is not valid any more
        assert line.startswith(wanted) or (wanted[0] not in "01" and line.startswith("1 ")), question
    known = {one.folder: one for one in device_records("reduce", cache)}
    latest = newest("reduce", cache).record
    served = 0
    for (slug, _, dtype, sizes), line in zip(elsewhere, lines[len(tuned) :], strict=True):
        if line.startswith("7 "):
            continue
        numbers = dict(one.split("=") for one in line.split()[-len(DOMAINS) :])
        found = {name: int(numbers[name]) for name in ("BLOCK", "VECTOR")}
        found |= {"ALGORITHM": DOMAINS["ALGORITHM"][int(numbers["ALGORITHM"]) - 1]}
        found |= {"UNROLL": numbers["UNROLL"] == "1"}
        own = known.get(slug)
        kernels = [own.record, latest] if own else [latest]
        device = own.device if own else None
        typed = ("int32", "float32")[dtype]
        assert any(KernelOnDevice(one, device, typed).is_valid(Config(found), sizes) for one in kernels)
        served += 1
    assert served > 20


@needs_compiler
def test_between_the_sizes_of_a_sweep_the_sizes_of_three_digits_are_resolved(tmp_path):
    entries = tuple(entry(random.Random(n), "int32", {"n": n}) for n in (64, 4096))
    shared = {config: 1.0 + number for number, config in enumerate(map(config, map(random.Random, range(3))))}
    entries = tuple(
        replace(one, measured=(*one.measured, *((config, 9.0 + time) for config, time in shared.items())))
        for one in entries
    )
    table = VariantTable("int32", tuple(one.sizes for one in entries), tuple(shared), (1.1,), "")
    store(tmp_path / "cache", DEVICE, replace(record(*entries), variants=(table,)))
    sizes = [{"n": digits << power} for power in range(5, 10) for digits in (4, 5, 6, 7)]
    questions = [(DEVICE.slug, DEVICE.slug, 0, one) for one in sizes]
    lines, wanted = asked_and_wanted(tmp_path, ("n",), questions)
    assert lines == wanted and {line[0] for line in lines[:-4]} == {"1"}
    (line,) = ask(tmp_path, "reduce", ("n",), [(DEVICE.slug, 0, [1030])])
    assert line == lines[sizes.index({"n": 1024})]


@needs_compiler
def test_the_results_that_come_with_autotune_give_the_same_answers(tmp_path):
    (tmp_path / "cache").symlink_to(ROOT / "cache")
    draw = random.Random(0)
    sizes = [{"n": int(2 ** draw.uniform(0, 34))} for _ in range(300)]
    questions = [("nvidia-h200", "nvidia-h200", draw.randrange(2), one) for one in sizes]
    lines, wanted = asked_and_wanted(tmp_path, ("n",), questions)
    assert lines == wanted


CONSTANT = """\
#include "reduce.h"
static constexpr int device = autotune_reduce_nvidia_h200, dtype = autotune_reduce_int32;
static constexpr auto best = autotune_reduce_best(device, dtype, 134217728);
static constexpr auto between = autotune_reduce_best(device, dtype, 1000003);
static_assert(best.tier == AUTOTUNE_EXACT && best.config.BLOCK_SIZE <= 1024, "");
static_assert(between.tier == AUTOTUNE_NEAREST_SIZE && between.config.BLOCK_SIZE <= 1024, "");
static_assert(autotune_reduce_best(autotune_reduce_OTHER, 0, 0).tier == AUTOTUNE_NONE, "");
static_assert(autotune_reduce_device_of("nvidia-h200") == autotune_reduce_nvidia_h200, "");
static_assert(autotune_reduce_device_of("NVIDIA H200") == autotune_reduce_nvidia_h200, "");
static_assert(autotune_reduce_device_of("voodoo") == autotune_reduce_OTHER, "");
#ifdef __CUDACC__
template <int BLOCK_SIZE> __global__ void fill(int *out) { out[threadIdx.x] = BLOCK_SIZE; }
void launch(int *out) { fill<between.config.BLOCK_SIZE><<<1, between.config.BLOCK_SIZE>>>(out); }
#endif
"""
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror")
COMPILERS = {
    "g++": (*STRICT, "-std=c++14", "-x", "c++"),
    "clang++": (*STRICT, "-std=c++14", "-x", "c++"),
    "nvcc": ("-Werror", "all-warnings", "-arch=sm_90"),
}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_look_up_is_a_constant(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "reduce.h").write_text(written(ROOT / "cache"))
    (tmp_path / "constant.cu").write_text(CONSTANT)
    subprocess.run([compiler, *COMPILERS[compiler], "-c", "constant.cu"], cwd=tmp_path, check=True)


@needs_compiler
def test_a_device_is_found_by_its_name_and_by_its_slug(tmp_path):
    names = [
        *("NVIDIA H100 80GB HBM3", "NVIDIA H100", "NVIDIA GeForce RTX 3080 Ti", "Instinct MI300X [gfx942]"),
        *("Orin (nvgpu)", " Tesla  T4 ", "H", "nvidia-h100-80gb-hbm3", "NVIDIA_H100", "", "-", "H100 -"),
    ]
    helpers = TEMPLATE.read_text().split("$declarations")[0].split("{guard}_H")[2]
    (tmp_path / "same.cpp").write_text(
        f"{helpers}#include <cstdio>\nint main(int count, char **texts) {{\n"
        "for (int i = 1; i + 1 < count; i += 2)\n"
        "    std::putchar('0' + autotune_same(texts[i], texts[i + 1]));\n}\n"
    )
    subprocess.run(["g++", "-std=c++14", *STRICT, "same.cpp", "-o", "same"], cwd=tmp_path, check=True)
    pairs = [(slug_of(one), other) for one in names for other in names if slug_of(one) != "unnamed"]
    asked = [text for pair in pairs for text in pair]
    done = subprocess.run([tmp_path / "same", *asked], capture_output=True, text=True, check=True)
    for (one, other), found in zip(pairs, done.stdout, strict=True):
        assert found == str(int(one == slug_of(other))), (one, other)
    assert done.stdout.count("1") > len(names) - 3


@needs_compiler
def test_the_header_is_c_too_and_needs_no_library(tmp_path):
    command = ["export", "reduce", "--format", "c-header", "--cache", str(ROOT / "cache")]
    assert main([*command, "-o", str(tmp_path / "reduce.h")]) == 0
    (tmp_path / "plain.c").write_text("""\
#include "reduce.h"
int main(void) { return autotune_reduce_best(autotune_reduce_nvidia_h200, 0, 100).config.BLOCK_SIZE == 0; }
""")
    subprocess.run(["gcc", "-std=c99", *STRICT, "plain.c", "-o", "plain"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "plain"], check=True)


LITERALS = ("a", "b", "a", "b", "k", "0", "3", "-2")


def random_number(draw, depth):
    """An expression of whole numbers."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(LITERALS)
    one, two = random_number(draw, depth - 1), random_number(draw, depth - 1)
    if draw.random() < 0.2:
        return f"({one} if {random_truth(draw, depth - 1)} else {two})"
    if draw.random() < 0.3:
        return f"{draw.choice(('min', 'max'))}({one}, {two})"
    divisor = draw.choice(("a", "b", "k", "7"))
    if draw.random() < 0.2:
        return f"{draw.choice(('ceil_div', 'round_up'))}({one}, {divisor})"
    if draw.random() < 0.2:
        return f"({one} {draw.choice(('//', '%'))} {divisor})"
    return draw.choice((f"(-{one})", f"({one} {draw.choice('+-*')} {two})"))


def random_truth(draw, depth):
    """A condition on whole numbers and a text."""
    if depth == 0 or draw.random() < 0.1:
        return draw.choice(("t == 'x'", "t in ('y', 'z')", "a > b", "a", "k"))
    if draw.random() < 0.4:
        one, two = random_number(draw, depth - 1), random_number(draw, depth - 1)
        return draw.choice(
            (f"({one} {draw.choice(('==', '!=', '<', '<=', '>', '>='))} {two})", f"(0 < {one} <= {two})")
        )  # fmt: skip
    one, two = random_truth(draw, depth - 1), random_truth(draw, depth - 1)
    return draw.choice((f"(not {one})", f"({one} and {two})", f"({one} or {two})"))


@needs_compiler
def test_conditions_on_sizes_hold_in_c_where_they_hold_here(tmp_path):
    draw = random.Random(3)
    known = {"t": "x", "k": 4}
    texts = [random_truth(draw, 4) for _ in range(500)]
    translator = Translator(known, {"a": "a", "b": "b"})
    lines = [f"std::putchar({translator.truth(parse_expression(text))} ? '1' : '0');" for text in texts]
    helpers = TEMPLATE.read_text().split("$declarations")[0].split("{guard}_H")[2]
    (tmp_path / "a.cpp").write_text(
        f"{helpers}#include <cstdio>\n"
        'int main() { long long a, b; while (std::scanf("%lld %lld", &a, &b) == 2) {\n'
        + "\n".join([*lines, r"std::putchar('\n'); } }", ""])
    )
    subprocess.run(["g++", "-std=c++14", "-O0", "-w", "a.cpp", "-o", "a"], cwd=tmp_path, check=True)
    cases = [(a, b) for a in (1, 2, 3, 6, 64) for b in (1, 2, 4, 5)]
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


def changed(folder, config=None, **fields):
    found = entry(random.Random(0), "int32", {"n": 64})
    found = found if config is None else replace(found, config=config, measured=())
    store(folder, DEVICE, replace(record(found), **fields))


@needs_compiler
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"constraints": ("VECTOR < 3", "n ** 2 > 3")}, "`n ** 2` is not plain"),
        ({"constraints": ("n >= 2 ** floor(log2(n))",)}, "`2 ** floor(log2(n))` is not plain"),
        ({"constraints": ("n % (n // BLOCK + 1) >= 0",)}, r"`n // BLOCK \+ 1` is not plain"),
        (
            {"derived": {"TILE": "n % 1.5", "BLOCKS": "n"}, "constraints": ("TILE < 9",)},
            "`TILE` is not plain",
        ),
    ],
)
def test_what_is_not_plain_arithmetic_serves_its_own_sizes_only(tmp_path, fields, message):
    changed(tmp_path / "cache", config=Config({**record().default, "VECTOR": 2}), **fields)
    with pytest.warns(UserWarning, match=re.escape(message).replace("\\\\", "")):
        text = header("reduce", tmp_path / "cache")
    (tmp_path / "reduce.h").write_text(text)
    own, other = ask(tmp_path, "reduce", ("n",), [(DEVICE.slug, 0, [64]), (DEVICE.slug, 0, [65])])
    assert own == expected("reduce", DEVICE.slug, "int32", {"n": 64}, tmp_path / "cache")
    assert own.startswith("0 ") and other.startswith("7 ")


def test_a_kernel_without_results_is_refused(tmp_path):
    changed(tmp_path, kernel="other")
    with pytest.raises(InputError, match="no results for a kernel 'reduce' in"):
        header("reduce", tmp_path)


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
def test_fields_have_the_types_of_macros_on_a_command_line(tmp_path):
    added = {"STRIDE": (1, 2**31), "SCALE": (1, 0.5)}
    parameters = (*record().parameters, *(Parameter(name, values) for name, values in added.items()))
    result = Config({**record().default, "STRIDE": 2**31, "SCALE": 0.5})
    one = replace(entry(random.Random(0), "int32", {"n": 64}), config=result, measured=())
    default = Config({**record().default, "STRIDE": 1, "SCALE": 1})
    changed(tmp_path, parameters=parameters, default=default, entries=(one,))
    (tmp_path / "reduce.h").write_text(header("reduce", tmp_path))
    types = {"BLOCK": "int", "UNROLL": "int", "ALGORITHM": "int", "STRIDE": "long long", "SCALE": "double"}
    asserts = "".join(
        f'static_assert(std::is_same<decltype(config::{name}), {kind}>::value, "");\n'
        for name, kind in types.items()
    )
    begin = '#include "reduce.h"\n#include <type_traits>\nusing config = autotune_reduce_config;\n'
    (tmp_path / "types.cpp").write_text(f"{begin}{asserts}")
    subprocess.run(["g++", "-std=c++14", *STRICT, "-c", "types.cpp"], cwd=tmp_path, check=True)


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
