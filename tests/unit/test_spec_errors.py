"""The one line that refuses each kind of mistake in a space file."""

import pytest

from autotune.errors import InputError, SpaceError
from autotune.space import load_space
from tests.space_example import YAML, write_space

DEFAULT = "default: {ALGORITHM: tree, BLOCK_SIZE: 64, VECTOR: 1, UNROLL: false}\n"
BAD_EDITS = [
    # structure
    (
        "schema: 1",
        "schema: 2",
        "reduce.yaml:1: schema: unknown schema 2; this version of autotune reads schema 1",
    ),
    ("schema: 1", "schema: true", "reduce.yaml:1: schema: unknown schema True"),
    ("kernel: reduce\n", "", "reduce.yaml:1: missing key: kernel"),
    ("kernel: reduce", "kernel: ../reduce", "2: kernel: expected a name of letters, digits and underscores"),
    ("kernel: reduce", "kernel: [reduce]", "2: kernel: expected a text, found a list"),
    ("kernel: reduce", "kernel:", "2: kernel: expected a text, found nothing"),
    (
        "kernel: reduce",
        "dialect: cude\nkernel: reduce",
        "2: dialect: unknown value 'cude'; did you mean cuda?",
    ),
    ("reference: reduce.py", "reference: ..", "4: reference: a folder, not a file: "),
    ('ALGORITHM != "shuffle"', "ALGORITHM in (shuffle, 1)", '; write "shuffle" in quotes'),
    ('ALGORITHM != "shuffle" or', 'ALGORITHM != "a=b" ||', "is not an expression; write `or` for ||"),
    ('ALGORITHM != "shuffle" or', "VECTOR > 1 && !UNROLL or", "; write `and` for &&, write `not` for !"),
    (
        "- PER_BLOCK <= 64 and",
        "- (PER_BLOCK <= 64 ? 1 :2) and",
        "; write `A if CONDITION else B` for",
    ),
    ("kernel: reduce", "kernel: {a: b", "not valid YAML: "),
    ("kernel: reduce", "kernel: *unknown", "2: not valid YAML: "),
    ("kernel: reduce", "kernel: \x07", "not valid YAML: "),
    # what a caller gives and gets
    *(
        ("verify:", f"call: {{inputs: {inputs}, returns: {returns}}}\nverify:", message)
        for inputs, returns, message in (
            ("[x]", "total", "call.returns: expected an array of role out or inout, once; found 'total'"),
            ("[n]", "sum", "expected an array of role in or inout, once; found 'n'"),
            ("[x]", "partial", "an array of role out or inout, once; found 'partial', of role scratch"),
            ("[x, x]", "sum", "expected an array of role in or inout, once; found 'x'"),
            ("[]", "sum", "expected"),
        )
    ),
    # sizes and types
    (
        "default: {n: 1_048_576}",
        "default: {n: 0}",
        "6: sizes.default.n: expected a whole number of at least 1, found 0",
    ),
    (
        "default: {n: 1_048_576}",
        "default: {n: many}",
        "6: sizes.default.n: expected a whole number, found 'many'",
    ),
    (
        "default: {n: 1_048_576}",
        "default: {n: 1M}",
        "6: sizes.default.n: expected a whole number, found '1M'; write all digits, such as 1_000_000",
    ),
    (
        "default: {n: 1_048_576}",
        "default: {n: true}",
        "6: sizes.default.n: expected a whole number, found True",
    ),
    (
        "default: {n: 1_048_576}",
        "default: 12",
        "6: sizes.default: expected a mapping of names to values, found '12'",
    ),
    ("default: {n: 1_048_576}", "default: {n: 8, m: 8}", "7: sizes.cpu: missing size: m"),
    ("cpu: {n: 4096}", "cpu: {m: 4096}", "7: sizes.cpu.m: unknown size; expected one of: n"),
    ("cpu: {n: 4096}", "tpu: {n: 4096}", "7: sizes.tpu: unknown key; did you mean gpu?"),
    (
        "verify_sizes: [{n: 1}, {n: 1003}]",
        "verify_sizes: []",
        "8: verify_sizes: expected at least one element",
    ),
    ("[int32, float32]", "[int32, flaot32]", "9: dtypes[1]: unknown value 'flaot32'; did you mean float32?"),
    ("[int32, float32]", "[int32, int32]", "9: dtypes[1]: int32 appears twice"),
    # parameters
    (
        "BLOCK_SIZE: [32, 64, 2048]",
        "BLOCK_SIZE: []",
        "12: parameters.BLOCK_SIZE: expected at least one element",
    ),
    (
        "BLOCK_SIZE: [32, 64, 2048]",
        "BLOCK_SIZE: range(64, 32)",
        "12: parameters.BLOCK_SIZE: expected 1 to 10,000 values, range(64, 32) has 0",
    ),
    (
        "BLOCK_SIZE: [32, 64, 2048]",
        "BLOCK_SIZE: range(1, 999999999)",
        "12: parameters.BLOCK_SIZE: expected 1 to 10,000 values, range(1, 999999999) has 999,999,998",
    ),
    (
        "BLOCK_SIZE: [32, 64, 2048]",
        "BLOCK_SIZE: powers_of_two(2, 8, 2)",
        "12: parameters.BLOCK_SIZE: expected a list of values, range(FIRST, END, STEP)",
    ),
    ("VECTOR: [1, 2]", "VECTOR: [1, true]", "13: parameters.VECTOR[1]: the value True appears twice"),
    ("VECTOR: [1, 2]", "VECTOR: [1, 1.0]", "13: parameters.VECTOR[1]: the value 1.0 appears twice"),
    (
        "VECTOR: [1, 2]",
        "VECTOR: [1, .inf]",
        "13: parameters.VECTOR[1]: expected a number, true, false or a name",
    ),
    (
        "VECTOR: [1, 2]",
        "VECTOR: [1, null]",
        "13: parameters.VECTOR[1]: expected a number, true, false or a name",
    ),
    (
        "VECTOR: [1, 2]",
        "VECTOR: [1, {a: 2}]",
        "13: parameters.VECTOR[1]: expected a number, true, false or a name",
    ),
    (
        "[tree, shuffle]",
        "[tree, warp-shuffle]",
        "11: parameters.ALGORITHM[1]: expected a name of letters, digits",
    ),
    ("[tree, shuffle]", '["tree #1", 3 # none', '; write `ALGORITHM: ["tree #1", 3]`'),
    ("[tree, shuffle]", '"tree #1" 3', """; write `ALGORITHM: '"tree #1" 3'`"""),
    ("[tree, shuffle]", "[tree, Tree]", "ALGORITHM[1]: the macro ALGORITHM_TREE would be defined twice"),
    ("  VECTOR: [1, 2]", "  ALGORITHM_TREE: [1]", "the macro ALGORITHM_TREE would be defined twice"),
    ("  VECTOR: [1, 2]", "  DTYPE_INT32: [1]", "13: parameters.DTYPE_INT32: the macro DTYPE_INT32 would be"),
    ("  VECTOR: [1, 2]", "  DTYPE: [1, 2]", "13: parameters.DTYPE: the name 'DTYPE' is reserved"),
    ("  VECTOR: [1, 2]", "  lambda: [1, 2]", "13: parameters.lambda: the name 'lambda' is reserved"),
    ("  VECTOR: [1, 2]", "  max: [1, 2]", "13: parameters.max: the name 'max' is reserved"),
    ("  VECTOR: [1, 2]", "  4: [1, 2]", "13: parameters.4: expected a text, found 4"),
    ("  VECTOR: [1, 2]", "  ? [VECTOR]\n  : [1, 2]", "13: parameters.key: expected a text, found a list"),
    # expressions
    ("device.has_shuffle", "device.has_shufle", "20: constraints[1]: unknown name 'device.has_shufle'"),
    ("device.has_shuffle", "device.has_shuffle.real", "20: constraints[1]: "),
    (
        "BLOCK_SIZE <= device",
        "exit() <= device",
        "19: constraints[0]: 'exit() <= device.max_threads_per_block': only",
    ),
    ("BLOCK_SIZE <= device", "__import__('os') <= device", "only these may be called"),
    ("BLOCK_SIZE <= device", "BLOCK_SIZE <=< device", "is not an expression"),
    (
        "  - BLOCK_SIZE <=",
        "  - [1]\n  - BLOCK_SIZE <=",
        "19: constraints[0]: expected an expression, found a list",
    ),
    (
        "PER_BLOCK: BLOCK_SIZE * VECTOR",
        "PER_BLOCK: BLOCKS * 2",
        "16: derived.PER_BLOCK: unknown name 'BLOCKS'",
    ),
    ("PER_BLOCK: BLOCK_SIZE", "VECTOR: BLOCK_SIZE", "16: derived.VECTOR: the name 'VECTOR' is already taken"),
    ("flops: n}", "flops: m}", "work.flops: unknown name 'm'"),
    ("flops: n}", "time: n}", "work.time: unknown key"),
    ("atol: 0}", "atoll: 0}", "verify.atoll: unknown key; did you mean atol?"),
    ("atol: 0}", "atol: x}", "verify.atol: unknown name 'x'"),
    ("cuda: {--max", "cudo: {--max", "compiler_options.cudo: unknown key; did you mean cuda?"),
    ("32 * VECTOR", "32 * REGISTERS", "compiler_options.cuda.--maxrregcount: unknown name 'REGISTERS'"),
    # configurations
    ("UNROLL: false}", "UNROLL: 0}", "22: default.UNROLL: expected one of False, True; found 0"),
    ("VECTOR: 1, UNROLL", "VECTOR: 1.0, UNROLL", "22: default.VECTOR: expected one of 1, 2; found 1.0"),
    (
        "second: {ALGORITHM: shuffle}",
        "second: {ALGORITHM: shufle}",
        "25: landmarks.second.ALGORITHM: expected one of",
    ),
    (
        "second: {ALGORITHM: shuffle}",
        "second: {ALGO: shuffle}",
        "25: landmarks.second.ALGO: no parameter is called",
    ),
    (
        "second: {ALGORITHM: shuffle}",
        "second: {ALGORITHM: shuffle, expect: timeout}",
        "25: landmarks.second.expect: unknown value 'timeout'; expected one of: wrong_result",
    ),
    (
        "second: {ALGORITHM: shuffle}",
        "second: {expect: wrong_result}",
        "25: landmarks.second.expect: the default cannot be wrong",
    ),
    # arguments
    ("{integers: [-100, 100]}", "{integers: [100, -100]}", "fill.integers: expected the lower number first"),
    (
        "{integers: [-100, 100]}",
        "{integers: [1, 2.5]}",
        "fill.integers[1]: expected a whole number, found 2.5",
    ),
    (
        "{integers: [-100, 100]}",
        "{integers: [0, 3_000_000_000]}",
        "expected numbers from -2147483648 to 2147483647",
    ),
    (
        "{integers: [-100, 100]}",
        "{constant: 3_000_000_000}",
        "expected numbers from -2147483648 to 2147483647",
    ),
    ("{integers: [-100, 100]}", "{normal: [0, -1]}", "fill.normal[1]: expected a deviation of at least 0"),
    ("{integers: [-100, 100]}", "{uniform: [0, x]}", "fill.uniform[1]: expected a number, found 'x'"),
    (
        "{integers: [-100, 100]}",
        "{copy: sum}",
        "fill: expected the name of an earlier array with a fill, found 'sum'",
    ),
    ("shape: [n], ", "", "27: arguments[0]: missing key: shape"),
    ("shape: [n], ", "shape: [m], ", "27: arguments[0].shape[0]: unknown name 'm'"),
    ("value: n}", "value: m}", "30: arguments[3].value: unknown name 'm'"),
    ("name: sum", "name: x", "29: arguments[2]: the argument 'x' appears twice"),
    # launch plan
    (
        "{entry: finish, grid: [1], block: [32], arguments: [partial, sum], when: BLOCKS > 1}",
        "finish",
        "launch[1]: expected a mapping of names to values, found 'finish'; write it as {entry: my_kernel",
    ),
    ("grid: [BLOCKS]", "grid: []", "32: launch[0].grid: expected at least one element, found an empty list"),
    (
        "grid: [BLOCKS]",
        "grid: [1, 1, 1, 1]",
        "32: launch[0].grid: expected at most three dimensions, found 4",
    ),
    (
        "grid: [BLOCKS]",
        'grid: ["math.ceil(n / 2) * math.ceil(math.floor(n / 4) / 3)"]',
        '; write "ceil_div(n, 2) * ceil_div(floor(n / 4), 3)"',
    ),
    ("grid: [BLOCKS]", "grid: [int(n)]", "; expressions know no int"),
    (
        "when: BLOCKS > 1",
        "when: BLOKS > 1",
        "33: launch[1].when: unknown name 'BLOKS' in 'BLOKS > 1'; did you mean BLOCKS?",
    ),
    ("when: BLOCKS > 1", "if: BLOCKS > 1", "33: launch[1].if: unknown key"),
    (
        "kernel: reduce",
        "kernel: reduce\ndialect: opencl",
        "33: launch[0].shared_bytes: OpenCL takes no size from the launch: pass an argument of role local",
    ),
    ("VECTOR: [1, 2]", "VECTOR: 0..3", "; write range(0, 4)"),
    ("VECTOR: [1, 2]", "VECTOR: 8-1", "; write powers_of_two(1, 8), or range(1, 9)"),
    ("VECTOR: [1, 2]", "VECTOR: 6 to 12", "; write range(6, 13, 6)"),
    ("VECTOR: [1, 2]", "VECTOR: [[[1], 2]]", "a number, true, false or a name, found a list"),
    ("{integers: [-100, 100]}", "constant", "; write {constant: 0}"),
    ("{integers: [-100, 100]}", "constant(3)", "; write {constant: 3}"),
    ("{integers: [-100, 100]}", "ones", "; write {constant: 1}"),
    ("{integers: [-100, 100]}", "uniform(1)", "; write {uniform: [0, 1]}"),
    ("{integers: [-100, 100]}", "copy", "; write {copy: ARGUMENT}"),
    ("grid: [BLOCKS]", 'grid: "BLOCKS, ceil_div(n, 2)"', '; write [BLOCKS, "ceil_div(n, 2)"]'),
    ("grid: [BLOCKS]", 'grid: "(BLOCKS, 2)"', "; write [BLOCKS, 2]"),
    ("grid: [BLOCKS]", "grid: {BLOCKS, 2}", "; write [BLOCKS, 2]"),
    ("entry: finish", "entry: fin ish", "33: launch[1].entry: expected a name of letters"),
]


@pytest.mark.parametrize(
    ("old", "new", "message"), BAD_EDITS, ids=[f"{old}->{new}" for old, new, _ in BAD_EDITS]
)
def test_a_mistake_is_reported_in_one_line_with_its_place(tmp_path, old, new, message):
    assert YAML.count(old) >= 1
    path = write_space(tmp_path, YAML.replace(old, new, 1))
    with pytest.raises(SpaceError) as caught:
        load_space(path)
    text = str(caught.value)
    assert message in text
    assert text.startswith(f"{path}:")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "1: the file is empty"),
        (b"# nothing here\n", "1: the file is empty"),
        (b"just words\n", "1: expected a mapping of names to values, found 'just words'"),
        (b"- 1\n", "1: expected a mapping of names to values, found a list"),
        (b"{}\n", "1: expected at least one entry"),
        (b"\x7fELF\x02\xff\xfe\x00", "is not a text file"),
        (b"[" * 500, "not valid YAML: nested too deeply"),
        (b"a: " + b"[" * 120 + b"]" * 120 + b"\nb: c: d\n", "not valid YAML: nested too deeply"),
        (b"a: b: c\n", "1: not valid YAML: "),
    ],
)
def test_a_file_that_is_not_a_space_is_reported_in_one_line(tmp_path, content, message):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_space(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "reason"), [("missing.yaml", "No such file"), ("", "Is a directory")])
def test_a_path_that_cannot_be_read_is_refused(tmp_path, name, reason):
    with pytest.raises(InputError, match=f"cannot be read: {reason}"):
        load_space(tmp_path / name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "BLOCK_SIZE: 64, VECTOR: 1",
            "VECTOR: 1",
            "missing: BLOCK_SIZE; add values that satisfy the constraints",
        ),
        (DEFAULT, "", "default: {ALGORITHM: ..., BLOCK_SIZE: ..., VECTOR: ..., UNROLL: ...}"),
    ],
)
def test_values_that_no_constraint_allows_are_not_offered(tmp_path, old, new, message):
    text = YAML.replace("constraints:\n", "constraints:\n  - BLOCK_SIZE % VECTOR == 1\n", 1)
    with pytest.raises(SpaceError) as caught:
        load_space(write_space(tmp_path, text.replace(old, new, 1)))
    assert message in str(caught.value)


def test_a_mend_that_leaves_an_unknown_function_is_not_offered(tmp_path):
    path = write_space(
        tmp_path, YAML.replace("grid: [BLOCKS]", "grid: [math.ceil(n / 2) * math.isqrt(n)]", 1)
    )
    with pytest.raises(SpaceError, match="only these may be called") as caught:
        load_space(path)
    assert "; write " not in str(caught.value)


def test_a_long_expression_with_an_unknown_function_is_a_mistake_like_any_other(tmp_path):
    path = write_space(
        tmp_path, YAML.replace("grid: [BLOCKS]", f"grid: [math.ceil(({'n + ' * 1000}n) / 2)]", 1)
    )
    with pytest.raises(SpaceError):
        load_space(path)


def test_a_source_of_a_package_that_is_not_installed_says_so(tmp_path):
    triton = YAML.replace("kernel: reduce\n", "kernel: reduce\ndialect: triton\n")
    path = write_space(tmp_path, triton.replace("source: reduce.cu", "source: nosuchpackage/ops/reduce.py"))
    with pytest.raises(
        InputError, match=r"a package nosuchpackage of this Python; install it, or add the folder"
    ):
        load_space(path)


def test_a_parameter_that_is_gone_is_told_with_every_line_that_has_it(tmp_path):
    text = YAML.replace("  VECTOR: [1, 2]\n", "", 1).replace("BLOCK_SIZE * VECTOR", "BLOCK_SIZE", 1)
    text = text.replace(" and (not UNROLL or VECTOR == 1)", "", 1)
    with pytest.raises(SpaceError, match=r":21: default.VECTOR: no parameter .*; it is also on line 31, 34$"):
        load_space(write_space(tmp_path, text))
