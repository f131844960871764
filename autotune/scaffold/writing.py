"""Write the texts of a first space file and its reference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from autotune.core.c_types import POINTER, SCALARS
from autotune.core.error_bounds import rtol_by_type
from autotune.core.records import Value
from autotune.scaffold.guessed_arguments import GuessedArgument
from autotune.scaffold.guessed_launch import GuessedLaunch
from autotune.scaffold.guesses import Guess
from autotune.scaffold.reading import FoundKernel
from autotune.scaffold.roles import Role
from autotune.sources.bare_code import WORD
from autotune.sources.type_layouts import assumed_bytes

_WIDTH = 108
_AROUND = "1, and around multiples of the largest tile"


def space_text(
    file: str,
    name: str,
    guess: Guess,
    include_dirs: Sequence[str] = (),
    option: str = "",
    compiler: str = "",
) -> str:
    """The text of a space file; `file` names the source, `name` the space."""
    return "\n".join(
        (
            f"# A first space for {file}, guessed from its text: check what comments ask.",
            "schema: 1",
            f"kernel: {name}",
            f"dialect: {guess.launch.source.dialect}",
            f"source: {file}",
            *([f"compiler: {compiler}  # NVRTC, which is faster, refuses the source"] if compiler else []),
            *([f"include_dirs: [{', '.join(include_dirs)}]"] if include_dirs else []),
            f"reference: {name}.py",
            *_dtypes(guess.launch.kernel),
            "",
            *_sizes(guess),
            "",
            *_parameters(guess),
            "",
            "arguments:",
            *_arguments(guess),
            *_stand_in(guess),
            "",
            *_launch(guess),
            *_call(guess),
            *_options(guess.launch, option),
            "",
            *_ending(guess),
            "",
        )
    )


def reference_text(file: str, guess: Guess) -> str:
    """The text of the Python file with the reference of a kernel."""
    entry = guess.launch.kernel.entry
    if not guess.reference:
        inputs = [item.argument.name for item in guess.arguments if item.role is not None and item.fill]
        results = [item.argument.name for item in guess.arguments if item.role in (Role.OUT, Role.INOUT)]
        return empty_reference(file, entry, inputs, guess.sizes, results, _numbers(guess))
    lines = [
        _reference_title(file, entry),
        "",
        "import numpy as np",
        "",
        "",
        "def reference(inputs, sizes):",
        '    """Results by name, guessed from the kernel\'s formula: write down what you mean."""',
        *(f"    {line}" for line in guess.reference),
    ]
    return "\n".join(lines) + "\n"


def empty_reference(
    file: str,
    entry: str,
    inputs: Iterable[str],
    sizes: Iterable[str],
    results: Iterable[str],
    remarks: Iterable[str] = (),
) -> str:
    """The text of a reference that its user has to write, with the names of what it gets and returns."""
    given = ", ".join(f'"{name}"' for name in inputs) or "nothing"
    expected = ", ".join(results) or "nothing"
    lines = [
        _reference_title(file, entry),
        "",
        "",
        "def reference(inputs, sizes):",
        '    """Results by name; nothing is compared as long as it returns none.',
        "",
        f"    `inputs` has {given}; `sizes` has {', '.join(sizes)}. Expected: {expected}.",
        *remarks,
        "    Compute with numpy in float64, or in exact integers.",
        '    """',
        "    return {}",
    ]
    return "\n".join(lines) + "\n"


def _reference_title(file: str, entry: str) -> str:
    return f'"""What {entry} of {file} should compute: every configuration is compared with it."""'


def _numbers(guess: Guess) -> list[str]:
    """The numbers that the kernel gets and that are no sizes, for the reference to use the same."""
    given = [f"{item.argument.name} = {item.value}" for item in guess.arguments if item.role is None]
    fixed = [text for text in given if text.partition(" = ")[2] not in guess.sizes]
    return [f"    The space file also passes {', '.join(fixed)}: use the same here."] if fixed else []


def _dtypes(kernel: FoundKernel) -> list[str]:
    generic = "DTYPE" in kernel.entry or any(item.dtype == "DTYPE" for item in kernel.arguments)
    return ["dtypes: [float32]  # what DTYPE may be, such as [float32, float64]"] if generic else []


def _sizes(guess: Guess) -> list[str]:
    def mapping(extents: Iterable[int]) -> str:
        return ", ".join(f"{name}: {extent:_}" for name, extent in zip(guess.sizes, extents, strict=True))

    gpu, cpu = ([extents[kind] for extents in guess.sizes.values()] for kind in (0, 1))
    checks = [f"{{{mapping(extents)}}}" for extents in guess.verify_sizes]
    rows = " and ".join(dict.fromkeys(guess.launch.unguarded.values()))
    around = f"nothing guards the end of a row: multiples of all tiles for {rows}" if rows else _AROUND
    remark = around if len(checks) > 1 else "no bounds check?"
    return [
        "sizes:",
        f"  default: {{{mapping(gpu)}}}  # what do you tune for?",
        f"  cpu: {{{mapping(cpu)}}}",
        *_flow("verify_sizes: [", checks, f"]  # {remark}"),
    ]


def _parameters(guess: Guess) -> list[str]:
    lines = ["parameters:"]
    for parameter in guess.launch.parameters:
        values = ", ".join(map(scalar, parameter.values))
        remark = f"  # {parameter.remark}" if parameter.remark else ""
        lines.append(f"  {parameter.name}: [{values}]{remark}")
    for macro in guess.launch.fixed_macros:
        default = macro.default or ""
        why = "the arrays depend on it" if default.isdigit() else "list values to tune it"
        why = f"a type: -D{macro.name} in `compiler_options` chooses another" if default in SCALARS else why
        lines.append(f"  # {macro.name} is {macro.default} where nobody defines it; {why}")
    chosen = (f"{name}: {scalar(value)}" for name, value in guess.launch.default.items())
    return [*lines, *_flow("default: {", chosen, "}")]


def scalar(value: Value) -> str:
    """A parameter's value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted(text: str) -> str:
    """An expression as YAML has it inside brackets, where a comma would end it."""
    return f'"{text}"' if "," in text else text


def _arguments(guess: Guess) -> Iterator[str]:
    """A line for each argument; structures come after the arrays that they point to."""
    kernel = guess.launch.kernel
    values = {item.argument.name: item.value or item.argument.name for item in guess.arguments}
    for item in guess.arguments:
        if item.role is not None or item.argument.name in kernel.passed:
            yield _argument(item)
    for name, structure in kernel.structures.items():
        pairs = [*zip(structure.fields, structure.members.values(), strict=True)]
        kinds = ", ".join(f"{field}: {kind}" for (field, kind), _ in pairs)
        given = ", ".join(f"{field}: {quoted(values[argument])}" for (field, _), argument in pairs)
        remark = ": are its numbers right?" if any(kind != POINTER for _, kind in structure.fields) else ""
        yield f"  - {{name: {name}, fields: {{{kinds}}}, value: {{{given}}}}}  # {structure.text}{remark}"


def _argument(item: GuessedArgument) -> str:
    dtype, name = item.argument.dtype, item.argument.name
    if item.role is None:
        entry = f"{{name: {name}, dtype: {dtype}, value: {quoted(item.value)}}}"
    else:
        symbol = f", symbol: {item.argument.symbol}" if item.argument.symbol else ""
        fill = f", fill: {{{item.fill}}}" if item.fill else ""
        role = item.role.value + fill + symbol
        shape = ", ".join(map(quoted, item.shape))
        entry = f"{{name: {name}, dtype: {dtype}, shape: [{shape}], role: {role}}}"
    return f"  - {entry}  # {item.argument.text}" + (f": {item.remark}" if item.remark else "")


def _stand_in(guess: Guess) -> list[str]:
    """An output for a kernel without one: a space needs a result, and the user sees what is missing."""
    if any(item.role in (Role.OUT, Role.INOUT) for item in guess.arguments):
        return []
    return [
        "  - {name: nothing, dtype: int32, shape: [1], role: inout, fill: {constant: 0}}  "
        "# no result found: which array is it?"
    ]


def _options(launch: GuessedLaunch, option: str) -> list[str]:
    """An option, and definitions of what the source leaves to its user, or a compiler refuses."""
    given = dict([option.split("=")] if option else [])
    given |= {f"-D{name}": meaning for name, meaning in launch.kernel.types.items()}
    if not given:
        return []
    languages = ("cuda", "opencl") if launch.source.dialect == "portable" else (launch.source.dialect,)
    remark = "  # words that the source leaves open" if launch.kernel.types else ""
    options = ", ".join(f"{name}: \"'{value}'\"" for name, value in given.items())
    return ["compiler_options:", *(f"  {language}: {{{options}}}{remark}" for language in languages)]


def _launch(guess: Guess) -> list[str]:
    grid = ", ".join(f'"{part}"' for part in guess.launch.grid)
    names = ", ".join(guess.launch.kernel.passed)
    own = guess.launch.kernel.entry
    entry = own if own.isidentifier() else f'"{own}"'
    lines = [
        "launch:",
        f"  - entry: {entry}",
        f"    grid: [{grid}]  # blocks: is every element covered, and once?",
        f"    block: [{', '.join(guess.launch.block)}]  # threads{_asked_of_block(guess.launch)}",
        f"    arguments: [{names}]",
    ]
    shared_bytes, remark = guess.launch.shared_bytes
    if shared_bytes:
        lines.append(f"    shared_bytes: {shared_bytes}  # {remark}")
    for kernel in guess.launch.source.kernels:
        if kernel.entry != own:
            listed = "" if kernel.entry.endswith(")") else f"({', '.join(kernel.passed)})"
            lines.append(f"  # there is also {kernel.entry}{listed}")
    lines += [f"  # cannot be tuned as it is: {refusal}" for refusal in guess.launch.source.refusals.values()]
    return lines


def _asked_of_block(launch: GuessedLaunch) -> str:
    """A question where the block may lack threads."""
    axes = " and ".join(launch.unshown)
    return f": how many along {axes}? the kernel reads their index, and does not show it" if axes else ""


def _call(guess: Guess) -> list[str]:
    """What a program could pass and get back, as a comment, where the kernel only writes its results."""
    arrays = [item for item in guess.arguments if item.role is not None and not item.argument.symbol]
    results = [item.argument.name for item in arrays if item.is_result]
    inputs = [item.argument.name for item in arrays if item.role is Role.IN]
    if not results or not inputs or len(results) + len(inputs) < len(arrays):
        return []
    returns = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
    call = f"call: {{inputs: [{', '.join(inputs)}], returns: {returns}}}"
    return [f"# {call}  # for load_kernel; what it returns needs `role: out`"]


def _ending(guess: Guess) -> list[str]:
    results = [item.argument.dtype for item in guess.arguments if item.role in (Role.OUT, Role.INOUT)]
    exact = all("int" in dtype for dtype in results)
    tolerance = "rtol: 0, atol: 0" if exact else "rtol: 1e-12, atol: 1e-12"
    if "DTYPE" in results:
        tolerance = f"rtol: {rtol_by_type('1e-5')}, atol: 1e-6"
    elif "float32" in results:
        tolerance = "rtol: 1e-5, atol: 1e-6"
    elif "float16" in results or "bfloat16" in results:
        tolerance = "rtol: 1e-2, atol: 1e-3"
    sums = "" if exact or guess.reference else "; for sums of n terms, write `error: accumulate(n)`"
    # no run may be faster than its bytes can move: what is not sure to move is not claimed
    words = {word for item in guess.arguments for extent in item.shape for word in WORD.findall(extent)}
    is_sure = words.isdisjoint(guess.launch.values)
    why = "from the guessed shapes above" if is_sure else "once the shapes above are right"
    work = f"work: {{bytes: {_bytes(guess)}}}  # {why}, for GB/s; flops: for GFLOP/s"
    return [
        f"verify: {{{tolerance}}}  # how far from the reference a right result may be{sums}",
        work if is_sure else f"# {work}",
    ]


def _bytes(guess: Guess) -> str:
    """Each array once, twice if it is read and written; a constant that an output starts from is not read."""
    totals: dict[str, int] = {}  # by number of elements
    texts: dict[tuple[str, ...], str] = {}  # of the same number, whatever the order of its factors
    for item in guess.arguments:
        if item.role not in (None, Role.LOCAL) and item.is_indexed:
            product = " * ".join(
                part if re.fullmatch(r"[\w *]+", part) else f"({part})" for part in item.shape
            )
            count = texts.setdefault(tuple(sorted(product.split(" * "))), product)
            is_moved_twice = item.role is Role.INOUT and not item.fill.startswith("constant")
            moved = assumed_bytes(item.argument.dtype) * (2 if is_moved_twice else 1)
            totals[count] = totals.get(count, 0) + moved
    text = " + ".join(count if total == 1 else f"{total} * {count}" for count, total in totals.items()) or "0"
    return quoted(text)


def _flow(opening: str, items: Iterable[str], ending: str) -> list[str]:
    """A mapping in braces, wrapped to `_WIDTH`."""
    lines, separator = [opening], ""
    for item in items:
        if len(lines[-1]) + len(separator) + len(item) > _WIDTH:
            lines[-1] += separator.rstrip()
            lines.append(f"  {item}")
        else:
            lines[-1] += separator + item
        separator = ", "
    lines[-1] += ending
    return lines
