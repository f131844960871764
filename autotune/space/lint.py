"""Find likely mistakes in a legal space and its source; comments and strings of the source are ignored."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from autotune.core.c_types import C_TYPES, SCALARS
from autotune.core.error_bounds import HALF, HALF_RTOL, neighbours, rtol_by_type
from autotune.core.expressions import integer, names_behind, parse
from autotune.core.expressions import number as evaluate
from autotune.core.launch_plan import DTYPE_MACROS, TRITON, constant_expressions, known_values, macro_name
from autotune.core.records import Config, Parameter
from autotune.core.syntax import parse_expression
from autotune.core.text import nearest
from autotune.errors import ExpressionError, InputError, SpaceError
from autotune.sources.bare_code import bare_code
from autotune.sources.branches import Branches, read_branches
from autotune.sources.dialects import BUILT_IN, portable_macros
from autotune.sources.facts import Facts, factors_around, facts
from autotune.sources.kernel_source import KernelSource, read_kernel_source
from autotune.sources.macro_reach import Unseen, unseen_macros
from autotune.sources.macros import definition
from autotune.sources.preprocessor import compiled_lines
from autotune.sources.triton_module import TritonModule
from autotune.sources.triton_walk import walk
from autotune.space.configurations import PARTS, TROUBLES
from autotune.space.dry_runs import run_mistakes
from autotune.space.findings import Finding, Findings
from autotune.space.misspelt import is_slip, misspelt_names
from autotune.space.parameters import unlisted_value
from autotune.space.rules import Rules
from autotune.space.signatures import mismatches, own_name, space_macros
from autotune.space.source_places import place_at, source_place
from autotune.space.space import ValidSpace
from autotune.space.spec import SpaceSpec
from autotune.space.yaml_document import located

_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_TILE = re.compile(r"ceil_div\((\w+), (\w+)\)")  # a size, and the threads of a block
_THREAD_INDEX = {"portable": "THREAD_INDEX({0})", "cuda": "threadIdx.{0}", "opencl": "get_local_id({1})"}
_ASKED = "WARPS"  # what a source may define in front of portable.h
# Findings whose consequences a run would show as mistakes of their own.
_BREAKS = (
    "signature",
    "redefined_parameter",
    "unknown_macro",
    "unknown_name",
    "hidden_variable",
    "flat_block",
    "odd_tile",
)


@dataclass(frozen=True)
class ConstraintReport:
    """What one constraint or limit of the device removes; None where counting takes too long.

    `removes_alone` counts the combinations of the Cartesian product that violate it; `appear_without` counts
    the configurations that become valid without it.
    """

    text: str
    line: int  # 0 for a limit of the device
    removes_alone: int | None
    appear_without: int | None

    @property
    def never_removes(self) -> bool:
        """Whether every combination satisfies it on this device."""
        return self.removes_alone == 0


def constraint_report(space: ValidSpace) -> tuple[ConstraintReport, ...]:
    """Count what each constraint of a space removes, in the order of the file."""
    rules = Rules(space.spec, space.device, space.problem)
    return tuple(
        ConstraintReport(
            constraint.text, constraint.line, rules.violating(number), rules.violating_only(number)
        )
        for number, constraint in enumerate(space.spec.constraints)
    )


def limit_report(space: ValidSpace) -> tuple[ConstraintReport, ...]:
    """Count what each limit of the device removes that no constraint does; those that remove nothing lack."""
    rules = Rules(space.spec, space.device, space.problem)
    reports = (
        ConstraintReport(text, 0, rules.violating(number), rules.violating_only(number))
        for number, text in enumerate(rules.limits, len(space.spec.constraints))
    )
    return tuple(report for report in reports if report.appear_without)


def lint(space: ValidSpace, source: str, constraints: Iterable[ConstraintReport]) -> Findings:
    """Find likely mistakes in a bound space and its source, given the `constraint_report` of the space."""
    findings = _of_source(space, source)
    of_space = (
        *_idle_constraints(space, constraints),
        *_unreachable_values(space),
        *_invalid_default(space),
        *_partial_warps(space),
    )
    return findings._replace(mistakes=(*findings.mistakes, *of_space))


def _partial_warps(space: ValidSpace) -> Iterator[Finding]:
    """Blocks of the default and the landmarks that are no whole warps, the first at each place."""
    spec, warp = space.spec, space.device.warp_size
    told: set[int] = set()
    for config in (spec.default, *(landmark.config for landmark in spec.landmarks)):
        if config not in space or space.device.kind != "gpu":
            continue
        for step in space.launches(config):
            threads = math.prod(step.block)
            number = next(
                at for at, launch in enumerate(spec.launch) if own_name(launch.entry) == own_name(step.entry)
            )
            if threads > warp and threads % warp and number not in told:
                told.add(number)
                place = f"launch[{number}].block"
                shape = " x ".join(str(extent) for extent in step.block if extent > 1)
                detail = (
                    f"a block of {shape} threads is {threads / warp:g} warps, the last of which has threads "
                    f"for {threads % warp} of {warp} lanes, with {config}; choose blocks of whole warps, by "
                    "a constraint on THREADS % device.warp_size, for example"
                )
                yield Finding("partial_warp", place, detail, located(spec.path, place))


def lint_source(space: ValidSpace, source: str) -> tuple[Finding, ...]:
    """Find the likely mistakes that do not depend on the device; a search shows them first."""
    return _of_source(space, source).mistakes


def _of_source(space: ValidSpace, source: str) -> Findings:
    is_python = space.spec.source.suffix == ".py"
    read = None if is_python else read_default(space, source)
    code = bare_code(source, is_python=is_python)
    source_facts = Facts() if read is None else _facts_of_only_kernel(read)
    unknown = (*_unknown_macros(space, source, code, read),)
    findings = (
        *(mismatches(space, source, read) if is_python or read is not None else ()),
        *_unused_parameters(space, code),
        *_unlisted_values(space),
        *_repeated_landmarks(space.spec),
        *unseen_parameters(space, source),
        *unknown,
        *(() if read is None else _misspelt(space, source, read, {finding.subject for finding in unknown})),
        *(() if is_python else _reserved_words(space)),
        *_untried_edges(space),
        *_tight_tolerance(space),
        *_large_grids(space, source_facts),
        *_flat_blocks(space, source_facts),
    )
    runs: TritonModule | KernelSource | None = read
    if space.spec.dialect == TRITON:
        path = space.spec.source
        runs = module = TritonModule(path.read_text(encoding="utf-8-sig"), path)
        findings += (*_odd_tiles(space, module),)
    if runs is None or any(finding.kind in _BREAKS for finding in findings):
        return Findings(findings)
    of_runs = run_mistakes(space, runs)
    return of_runs._replace(mistakes=(*findings, *of_runs.mistakes))


def _repeated_landmarks(spec: SpaceSpec) -> Iterator[Finding]:
    """Landmarks that are the same configuration as one before them, such as after a parameter has gone.

    One with a note is meant to be there.
    """
    names: dict[Config, str] = {}
    landmarks = [landmark for landmark in spec.landmarks if not landmark.note]
    repeated = [item for item in landmarks if names.setdefault(item.config, item.name) != item.name]
    if repeated:
        name, earlier = repeated[0].name, names[repeated[0].config]
        more = f", and {len(repeated) - 1} more repeat others" if repeated[1:] else ""
        detail = f"the same configuration as {earlier}{more}; remove what repeats another"
        yield Finding("repeated_landmark", name, detail, located(spec.path, f"landmarks.{name}"))


def _odd_tiles(space: ValidSpace, module: TritonModule) -> Iterator[Finding]:
    """Values that Triton does not compile: lengths of tiles, and numbers of warps, are powers of two."""
    lengths = {"num_warps"}
    for name in {step.entry for step in space.spec.launch}:
        lengths |= walk(module, module.kernels[name], space.spec.default).tiles
    for parameter in space.parameters:
        whole = [value for value in parameter.values if isinstance(value, int)]
        odd = [str(value) for value in whole if value < 1 or value & (value - 1)]
        if parameter.name in lengths and odd:
            kind = "numbers of warps" if parameter.name == "num_warps" else "lengths of tiles"
            detail = f"Triton takes powers of two as {kind}; remove {', '.join(odd)}"
            place = located(space.spec.path, f"parameters.{parameter.name}")
            yield Finding("odd_tile", parameter.name, detail, place)


def _reserved_words(space: ValidSpace) -> Iterator[Finding]:
    """Macros of a source in the portable dialect that replace words of portable.h behind its include."""
    path, is_portable = space.spec.source, False
    if not path.is_file():  # a text or a function in Python
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    for line in compiled_lines(text):
        is_portable |= line.directive == "include" and line.rest.startswith('"portable')
        macro = definition(line.rest) if is_portable and line.directive == "define" else None
        if macro is not None and macro[0] in {_ASKED, *portable_macros()}:
            detail = f"{macro[0]} is a word of portable.h, whose other words use it: choose another name"
            place = text.count("\n", 0, line.place) + 1
            yield Finding("reserved_word", macro[0], detail, f"{path}:{place}")


def read_default(space: ValidSpace, source: str) -> KernelSource | None:
    """What the default configuration compiles of a source in C; None where it cannot be read in time."""
    try:
        return read_kernel_source(source, space_macros(space, space.spec.default), space.spec.dialect)
    except InputError:
        return None


def _expressions(spec: SpaceSpec) -> list[str]:
    """The expressions of the launch plan, arguments, options and derived names."""
    expressions = [*spec.derived.values(), *spec.device.values()]
    for options in spec.compiler_options.values():
        expressions += options.values()
    for step in spec.launch:
        optional = (step.repeat, step.cooperative, step.programmatic)
        expressions += (*step.grid, *step.block, step.shared_bytes, step.when, *step.cluster)
        expressions += (*filter(None, optional), *constant_expressions(step).values())
    for argument in spec.arguments:
        expressions += (*argument.shape, argument.value or "0")
    return expressions


def _unlisted_values(space: ValidSpace) -> Iterator[Finding]:
    """Comparisons of a parameter with a text or a number that it never is."""
    lines = {constraint.text: constraint.line for constraint in space.spec.constraints}
    for text in (*lines, *_expressions(space.spec)):
        if detail := unlisted_value(text, space.parameters):
            place = f"{space.spec.path}:{lines[text]}" if text in lines else str(space.spec.path)
            yield Finding("unlisted_value", text, detail.removeprefix("; "), place)


def _unused_parameters(space: ValidSpace, code: str) -> Iterator[Finding]:
    """Parameters that nothing but constraints reads."""
    if space.spec.functions.source:  # it defines every parameter
        code = _DEFINITION.sub("", code)
    used = set(_WORD.findall(code)).union(
        *(parse(text).names for text in _expressions(space.spec)),
        *(_WORD.findall(step.entry) for step in space.spec.launch),  # template arguments
    )
    for parameter in space.parameters:
        if parameter.name not in used and not _is_read_by_functions(space, parameter):
            places = "the source, the launch plan, an argument, an option or a derived name"
            mend = (
                f"use it in {space.spec.source.name}{_test_of(parameter)}, or remove it from `parameters`"
                f"{_also_named(space.spec, parameter.name)}"
            )
            if space.spec.functions.source:  # there is no file to name
                mend = f"use it, or remove it{nearest(parameter.name, _WORD.findall(code))}"
            detail = f"declared, but not used in {places}; {mend}"
            place = located(space.spec.path, f"parameters.{parameter.name}")
            yield Finding("unused_parameter", parameter.name, detail, place)


def _is_read_by_functions(space: ValidSpace, parameter: Parameter) -> bool:
    """Whether the functions of a space may read a parameter: what they compute differs by its value."""
    functions = space.spec.functions
    if not functions.source and not functions.values:
        return False
    changed = (Config({**space.spec.default, parameter.name: value}) for value in parameter.values)
    configs = [config for config in changed if config in space]
    own = re.compile(rf"#define {parameter.name} .*|constexpr int {parameter.name} = .*")
    computed = {
        (
            own.sub("", functions.source(config)) if functions.source else "",
            *(function(config) for function in functions.values.values()),
        )
        for config in configs
    }
    return len(configs) < 2 or len(computed) > 1


def unseen_parameters(space: ValidSpace, source: str) -> Iterator[Finding]:
    """Parameters whose values the source does not see as they are meant.

    Nothing that is compiled depends on one that the source defines anew or only tests for being defined: a
    search would compare what does not differ. With types as values, nothing compiles. Each is an error of
    the space.
    """
    if space.spec.source.suffix == ".py" or space.spec.functions.source is not None:
        return  # the latter has the values of each configuration in it
    several = {parameter.name: len(parameter.values) > 1 for parameter in space.parameters}
    for name, (why, at) in unseen_macros(source, several.keys()).items():
        place = place_at(space.spec.source, source, at)
        if why is Unseen.REDEFINED:
            is_own = place.startswith(f"{space.spec.source}:")
            mend = (
                f"put it between `#ifndef {name}` and `#endif`, or remove it"
                if is_own
                else "rename the parameter"
            )
            detail = f"this `#define` replaces the values of the parameter; {mend}"
            yield Finding("redefined_parameter", name, detail, place)
        elif several[name]:
            detail = (
                "each value of the parameter defines this macro, so that all of them compile to the same; "
                f"write `#if {name}`, or remove it from `parameters`"
            )
            yield Finding("only_defined_parameter", name, detail, place)
    if kinds := {
        one.name: one for one in space.parameters if {*one.values} <= SCALARS.keys() | C_TYPES.keys()
    }:
        yield from _parameters_of_types(space, source, kinds)


def _parameters_of_types(space: ValidSpace, source: str, kinds: Mapping[str, Parameter]) -> Iterator[Finding]:
    """Those of the parameters whose values are `kinds` of elements which the source uses as a type."""
    read = read_default(space, source)
    functions = read.functions if read else ()
    used = {name for one in functions if not one.is_of_host for name in one.types}
    used -= {one.name for function in functions for one in function.template or ()}  # which are no macros
    for name, parameter in kinds.items():
        if name in used:
            first = macro_name(name, str(parameter.values[0]))
            dtypes = ", ".join(dict.fromkeys(SCALARS.get(str(one), str(one)) for one in parameter.values))
            detail = (
                f"it stands for a type, but a parameter's words are numbers in the source: {first} is 1; "
                f"remove it from `parameters` and `default`, and write `dtypes: [{dtypes}]`, `#define {name} "
                f"DTYPE` in {space.spec.source.name} and `dtype: DTYPE` for arguments of this type"
            )
            yield Finding("type_parameter", name, detail, located(space.spec.path, f"parameters.{name}"))


def require_seen(space: ValidSpace, source: str) -> None:
    """Raise SpaceError for a parameter whose values the source does not see."""
    for finding in unseen_parameters(space, source):
        raise SpaceError(str(finding))


def _also_named(spec: SpaceSpec, name: str) -> str:
    """Where else a space names a parameter that its kernel does not use, as a part of a message."""
    lines = [f"{spec.path}:{item.line}" for item in spec.constraints if name in parse(item.text).names]
    default = f"`default` ({located(spec.path, f'default.{name}')})"
    return (
        f", {default} and the constraints that name it ({', '.join(lines)})" if lines else f" and {default}"
    )


def _test_of(parameter: Parameter) -> str:
    """How a source tests a parameter with names for values, as a part of a message."""
    value = parameter.values[0]
    return (
        f", as in `#if {parameter.name} == {macro_name(parameter.name, value)}`"
        if isinstance(value, str)
        else ""
    )


def _unknown_macros(
    space: ValidSpace, source: str, code: str, read: KernelSource | None
) -> Iterator[Finding]:
    """Undefined macros whose value is tested, look like a named value of a parameter, or resemble a macro.

    One of which a source only asks whether it is defined is a switch that is off.
    """
    is_python = space.spec.source.suffix == ".py"
    constants = {
        parameter.name: [
            macro_name(parameter.name, name) for name in parameter.values if isinstance(name, str)
        ]
        for parameter in space.parameters
    }
    branches = Branches() if is_python else read_branches(source)
    defined = {*DTYPE_MACROS, *PARTS, *TROUBLES, *branches.defined}
    defined.update(constants, *constants.values())
    used = {*_WORD.findall(code)}
    prefixes = tuple(f"{name}_".upper() for name, names in constants.items() if names)
    named = {word for word in used if prefixes and word.startswith(prefixes)}
    free = set() if read is None else {*read.unknown, *(branches.constants - read.code.used)}
    misspelt = {word for word in (*free, *branches.tested) if any(is_slip(word, name) for name in defined)}
    valued = {word for word, test in branches.tested.items() if test == "if"}
    named &= used if read is None else {*free, *branches.tested}
    unknown = [
        word
        for word in sorted({*valued, *named, *misspelt})
        if word not in defined and word.isupper() and not BUILT_IN.fullmatch(word)
    ]
    unused = [parameter.name for parameter in space.parameters if parameter.name not in used]
    is_pair = len(unused) == len(unknown) == 1
    meant = f"; did you mean {unused[0]}, which the source does not use? otherwise" if is_pair else ";"
    values = {*constants, *(name for names in constants.values() for name in names)}
    for word in unknown:
        place = source_place(space, source, word)
        is_own = place.startswith(f"{space.spec.source}:")
        if not is_own and not any(is_slip(word, name) for name in values):  # a header asks for many things
            continue
        mend = nearest(word, defined) or (
            f"{meant} add `{word}: [0, 1]` to `parameters` and `{word}: 0` to `default` in "
            f"{space.spec.path.name}, or write `#define {word} 1` in the source"
        )
        yield Finding("unknown_macro", word, f"nothing defines it{mend}", place)


def _misspelt(space: ValidSpace, source: str, read: KernelSource, told: Collection[str]) -> Iterator[Finding]:
    """Names that nothing declares, but for a slip, and variables whose name is a macro of the space."""
    macros = {parameter.name for parameter in space.parameters}
    for name, meant in dict(misspelt_names(read, macros)).items():
        if name in told:
            continue
        place = source_place(space, source, name)
        yield Finding("unknown_name", name, f"nothing declares it; did you mean {meant}?", place)
    for function in read.device_functions:
        for name in sorted(macros.intersection(function.declared)):
            detail = (
                f"the space defines a macro of this name, which replaces this variable of {function.name}; "
                "remove the variable, or give it another name"
            )
            place = source_place(space, source, name, after=function.name)
            yield Finding("hidden_variable", name, detail, place)


def _idle_constraints(space: ValidSpace, constraints: Iterable[ConstraintReport]) -> Iterator[Finding]:
    for number, report in enumerate(constraints):
        if _bounds_sizes(space, report.text):
            continue
        if report.never_removes and not _removes_at_checks(space, number):
            others = "; it may on other devices" if "device." in report.text else ""
            detail = f"this constraint removes nothing on {space.device.name}{others}"
            yield Finding("idle_constraint", report.text, detail, f"{space.spec.path}:{report.line}")


def _bounds_sizes(space: ValidSpace, text: str) -> bool:
    """True for a constraint that reads sizes alone: it says for which ones the space is made."""
    return names_behind(parse(text).names, space.spec.derived) <= space.problem.sizes.keys()


def _removes_at_checks(space: ValidSpace, constraint: int) -> bool:
    """Whether a constraint removes combinations at one of `verify_sizes`, such as `n % VECTOR == 0`."""
    problems = (
        replace(space.problem, sizes={**space.problem.sizes, **sizes}) for sizes in space.spec.verify_sizes
    )
    rules = (Rules(space.spec, space.device, problem) for problem in problems)
    return any(rules_at_size.violating(constraint) != 0 for rules_at_size in rules)


def _unreachable_values(space: ValidSpace) -> Iterator[Finding]:
    """Values in no valid configuration, unless only some devices have the parameter."""
    for column, parameter in enumerate(space.parameters):
        condition = space.spec.conditions.get(parameter.name, "True")
        if any(name.startswith("device.") for name in parse(condition).names):
            continue  # for other devices
        counts = np.bincount(space.rows[:, column], minlength=len(parameter.values))
        for value, count in zip(parameter.values, counts.tolist(), strict=True):
            if not count and not any(wrong[parameter.name] == value for wrong in space.spec.declared_wrong):
                detail = f"in no valid configuration on {space.device.name}"
                place = located(space.spec.path, f"parameters.{parameter.name}")
                yield Finding("unreachable_value", f"{parameter.name}={value}", detail, place)


def _invalid_default(space: ValidSpace) -> Iterator[Finding]:
    if reasons := space.why_invalid(space.spec.default):
        detail = f"not valid on {space.device.name}, and a search begins with it: {'; '.join(reasons)}"
        place = located(space.spec.path, "default")
        yield Finding("invalid_default", str(space.spec.default), detail, place)


def _facts_of_only_kernel(source: KernelSource) -> Facts:
    """What the device's functions do; nothing unless there is one kernel."""
    if len(source.kernels) != 1:
        return Facts()
    body = [statement for function in source.device_functions for statement in function.body]
    return facts(body, [item.name for item in source.kernels[0].parameters if item.pointers])


def _large_grids(space: ValidSpace, source_facts: Facts) -> Iterator[Finding]:
    """Grids with blocks that have no element, by the factors of a block's index in the only kernel.

    One has a block for each element, where each thread has an element. Another leaves out a parameter by
    which the indices of all arrays multiply the threads of a block.
    """
    names = {parameter.name for parameter in space.parameters}
    several = {item.name for item in space.parameters if any(value not in (0, 1) for value in item.values)}
    subscripts = [source_facts.written_out(access.index) for access in source_facts.accesses]
    for number, step in enumerate(space.spec.launch):
        for axis, (letter, grid, block) in enumerate(zip("xyz", step.grid, step.block, strict=False)):
            extents, tile = {f"blockDim.{letter}", block}, _TILE.fullmatch(grid)
            if grid in space.problem.sizes and block != "1":
                products = _factors_of_block(source_facts.expressions, letter)
                covering = [factors for factors in products if factors & extents]
                if not covering:
                    continue
                size, left_out = grid, (max(covering, key=len) & names) - extents
                why = (
                    f"{grid} blocks of {block} threads are too many: the source multiplies a block's index "
                    "by its threads"
                )
            elif tile is not None and tile[1] in space.problem.sizes and tile[2] == block:
                products = _factors_of_block(subscripts, letter)
                size, left_out = tile[1], set.intersection(several, *products) - extents
                if not left_out or not products or not all(factors & extents for factors in products):
                    continue
                why = (
                    f"{grid} has blocks without an element: the source multiplies a thread's index by "
                    f"{' and '.join(sorted(left_out))}"
                )
            else:
                continue
            place = f"launch[{number}].grid[{axis}]"
            each = " * ".join((block, *sorted(left_out)))
            detail = f'{why}; write "ceil_div({size}, {each})"'
            yield Finding("large_grid", place, detail, located(space.spec.path, place))


def _factors_of_block(nodes: Iterable[ast.expr], letter: str) -> list[set[str]]:
    """For each place of a block's index in expressions, the factors of its product."""
    return [
        {ast.unparse(factor) for factor in factors}
        for node in nodes
        for factors in factors_around(node, f"blockIdx.{letter}")
    ]


def _flat_blocks(space: ValidSpace, source_facts: Facts) -> Iterator[Finding]:
    """Blocks with fewer dimensions than the only kernel of the source reads of its threads."""
    for number, step in enumerate(space.spec.launch):
        for axis in range(len(step.block), 3):
            letter = "xyz"[axis]
            if f"threadIdx.{letter}" in source_facts.read_indices:
                own = [item.name for item in space.parameters if item.name.lower().endswith(f"_{letter}")]
                block = ", ".join((*step.block, *(own[:1] or ["NUMBER"])))
                place = f"launch[{number}].block"
                index = _THREAD_INDEX[space.spec.dialect].format(letter, axis)
                detail = (
                    f"the source reads {index}, which is always 0, for the block has no threads along "
                    f"{letter}; write block: [{block}]"
                )
                yield Finding("flat_block", place, detail, located(space.spec.path, place))
                break


def _tight_tolerance(space: ValidSpace) -> Iterator[Finding]:
    """An `rtol` below the last bit of an output of 16 bits, to which results are rounded."""
    spec = space.spec
    outputs = [
        item for item in spec.arguments if item.role in ("out", "inout") and item.name not in spec.errors
    ]
    for dtype, output in product(HALF, outputs):
        if output.dtype != dtype and (output.dtype != "DTYPE" or dtype not in spec.dtypes):
            continue
        last_bit, _ = neighbours(dtype)
        with suppress(ExpressionError):
            values = known_values(space.device, space.problem.sizes, dtype, spec.default, spec.derived)
            texts = spec.tolerances.get(output.name, (spec.rtol, spec.atol))
            rtol, atol = (float(evaluate(parse(text), values)) for text in texts)
            if 0 < rtol < last_bit and atol < last_bit:
                mend = HALF_RTOL if output.dtype == dtype else rtol_by_type(texts[0])
                detail = (
                    f"{rtol:g} is less than the last bit of {dtype}, {last_bit:.2g}, to which results are "
                    f"rounded before they are compared; write rtol: {mend}"
                )
                yield Finding("tight_tolerance", "verify.rtol", detail, located(spec.path, "verify.rtol"))
                return


def _untried_edges(space: ValidSpace) -> Iterator[Finding]:
    """Sizes for which `verify_sizes` lacks a multiple of the largest tile, or one less or more than it."""
    if space.spec.functions.source is not None:  # a script has one problem
        return
    for name, tile in largest_tiles(space).items():
        edges = _edges(space, name, tile)
        tried = [
            sizes[name] for sizes in space.spec.verify_sizes if sizes.get(name, 0) >= min(edges, default=1)
        ]
        missing = [edge for edge in edges if all((size - edge) % tile for size in tried)]
        if missing:
            *before, last = map(str, missing)
            added = f"sizes of {', '.join(before)} and {last}" if before else f"a size of {last}"
            close = "" if {*edges} >= {tile - 1, tile + 1} else ", as near as `constraints` allow"
            detail = (
                f"verify_sizes needs a multiple of the largest tile, {tile}, and sizes just below and just "
                f"above one{close}: add {added}"
            )
            yield Finding("untried_edge", name, detail, located(space.spec.path, "verify_sizes"))


def _edges(space: ValidSpace, name: str, tile: int) -> list[int]:
    """A tile and the nearest sizes on both sides of it, as far as the constraints allow them."""
    spec, sizes = space.spec, space.problem.sizes
    config = spec.default if space.holds(spec.default, sizes) else space.config(0)

    def is_allowed(size: int) -> bool:
        others = ({**sizes, **one, name: size} for one in ({}, *spec.verify_sizes))
        return any(space.holds(config, one) for one in (dict.fromkeys(sizes, size), *others))

    sides = range(tile - 1, 0, -1), range(tile, tile + 1), range(tile + 1, 2 * tile)
    nearest = (next(filter(is_allowed, side), 0) for side in sides)
    return [*filter(None, nearest)]


def largest_tiles(space: ValidSpace) -> dict[str, int]:
    """The largest tile above 1 of each size: a divisor in `ceil_div(SIZE, divisor)` that reads no size."""
    spec = space.spec
    texts = [*spec.derived.values(), *(text for step in spec.launch for text in step.grid)]
    calls = [node for text in texts for node in ast.walk(parse_expression(text))]
    tiles: dict[str, int] = {}
    for call in calls:
        match call:
            case ast.Call(func=ast.Name("ceil_div"), args=[ast.Name(size), divisor]) if (
                size in space.problem.sizes
            ):
                tile = _largest(space, ast.unparse(divisor))
                if tile > tiles.get(size, 1):
                    tiles[size] = tile
    return tiles


def _largest(space: ValidSpace, text: str) -> int:
    """The largest value of an expression over the valid configurations; 0 if it depends on a size."""
    expression = parse(text)
    names = names_behind(expression.names, space.spec.derived)
    if names & space.problem.sizes.keys():
        return 0
    columns = [column for column, parameter in enumerate(space.parameters) if parameter.name in names]
    key = np.zeros(len(space), np.int64)  # equal for rows with equal values of what the expression reads
    for column in columns:
        key = key * len(space.parameters[column].values) + space.rows[:, column]
    largest = 0
    for index in np.unique(key, return_index=True)[1].tolist():
        with suppress(ExpressionError):
            largest = max(largest, integer(expression, space.values(space.config(index))))
    return largest
