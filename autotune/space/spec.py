"""Load and check a space file, as a frozen record that depends on no device or problem.

Nothing is evaluated here: which configurations are valid is decided once a device and a problem are bound.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from autotune.core.c_types import C_TYPES
from autotune.core.error_bounds import DATA as FROM_DATA
from autotune.core.error_bounds import UNIT_ROUNDOFF, ErrorSpec
from autotune.core.expressions import parse
from autotune.core.fills import RANDOM_FILLS, SPECIAL_VALUES
from autotune.core.launch_plan import (
    CUDA_COMPILERS,
    DEVICE_NAMES,
    DEVICE_SETTINGS,
    DIALECTS,
    PYTHON,
    TRITON,
    is_option,
    reads_files,
)
from autotune.core.records import CallSpec, Config, LaunchSpec, Parameter, Sizes, Value
from autotune.core.syntax import parse_expression
from autotune.core.text import nearest
from autotune.core.trials import CACHES, LAUNCHES, USUAL, CallMode, Status
from autotune.errors import SpaceError
from autotune.sources.triton import TritonParameter, kernels
from autotune.space.arguments import DATA, INPUTS, FilledArgument, read_arguments, read_call, read_dtype
from autotune.space.configurations import Landmark, completed, read_config, read_landmarks
from autotune.space.error_bounds import ERROR_KEYS, read_errors, read_tolerances
from autotune.space.functions import Functions
from autotune.space.launches import read_launches, with_results
from autotune.space.parameters import new_name, read_conditions, read_parameters
from autotune.space.sizes import read_sizes, read_verify_sizes
from autotune.space.yaml_document import Element, read_document

SCHEMAS = (1,)
DTYPES = ("float32",)  # of a space that names none
REFERENCE, TRUSTED = "reference", "trusted"  # values of verify.full
COMPILER_DIALECTS = ("cuda", "opencl", PYTHON)
_REQUIRED = (
    *("schema", "kernel", "source", "reference", "sizes"),
    *("parameters", "default", "arguments", "launch"),
)
_OPTIONAL = (
    *("dialect", "dtypes", "verify_sizes", "constraints", "derived"),
    *("landmarks", "compiler", "compiler_options", "verify", "work", "contrast", "data", "include_dirs"),
    "measure",
    *("call", "device"),
    *("metrics", "objective", "require"),
)
# what metrics, objectives and requirements may read of a trial, besides all names of the space
MEASURED = ("time_ms", "energy_j", "registers", "spill_bytes", "shared_bytes", "compile_ms")

_VERIFY_KEYS = ("rtol", "atol", "full", *ERROR_KEYS, "special", "variants")
_VERIFY = {"rtol": "1e-5", "atol": "1e-6"}
_EXAMPLES = {  # of required keys
    "kernel": "my_kernel",
    "source": "my_kernel.cu",
    "reference": "my_kernel.py",
    "sizes": "{default: {n: 1_000_000}}",
    "parameters": "{BLOCK_SIZE: [64, 128, 256]}",
}


@dataclass(frozen=True)
class Constraint:
    """A condition every valid configuration satisfies, and its line in the space file."""

    text: str
    line: int


@dataclass(frozen=True)
class SpaceSpec:
    """The content of a space file. Expressions are checked texts; `sha256` is of the file's bytes.

    `sizes` always has the set `default`, and may have one for each kind of device, cpu and gpu. The first of
    `dtypes` is the default. All later expressions may read a derived name. `data` names the contents that the
    inputs can have, the default first; empty where there is one content. `constraints` has those that
    `conditions` imply, too.
    """

    path: Path
    sha256: str
    kernel: str
    dialect: str
    source: Path
    reference: Path
    sizes: Mapping[str, Sizes]
    parameters: tuple[Parameter, ...]
    default: Config
    launch: tuple[LaunchSpec, ...]
    arguments: tuple[FilledArgument, ...] = ()
    verify_sizes: tuple[Sizes, ...] = ()
    dtypes: tuple[str, ...] = DTYPES
    constraints: tuple[Constraint, ...] = ()
    derived: Mapping[str, str] = field(default_factory=dict)
    landmarks: tuple[Landmark, ...] = ()
    compiler_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rtol: str = "0"
    atol: str = "0"
    tolerances: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # by output: its rtol and atol
    work: Mapping[str, str] = field(default_factory=dict)
    compiler: str = CUDA_COMPILERS[0]  # for CUDA devices
    include_dirs: tuple[Path, ...] = ()
    contrast: Mapping[str, str] = field(default_factory=dict)  # groups of configurations, by name
    data: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)  # when a parameter matters, by its name
    full: str = REFERENCE  # what gives the expected results at the full size
    measure: CallMode = USUAL
    metrics: Mapping[str, str] = field(default_factory=dict)  # expressions of measurements, by name
    objective: str = ""  # an expression of measurements and metrics to minimise; empty: the time
    require: tuple[str, ...] = ()  # what measurements and metrics of a valid result satisfy
    errors: Mapping[str, ErrorSpec] = field(default_factory=dict)  # by output: a bound from the arithmetic
    special: tuple[str, ...] = ()  # values that inputs may have besides random ones, by name
    variants: tuple[str, ...] = ()  # further kinds of content that the function `inputs` knows
    functions: Functions = field(default_factory=Functions)
    call: CallSpec | None = None  # what a caller gives and gets
    device: Mapping[str, str] = field(default_factory=dict)  # what is set of the device while it is timed

    @property
    def declared_wrong(self) -> dict[Config, Status]:
        """The landmarks that teach a mistake, each with the failure to expect."""
        return {step.config: step.expect for step in self.landmarks if step.expect is not Status.OK}

    @cached_property
    def problem_names(self) -> tuple[str, ...]:
        """The names that a problem's arguments and tolerances read."""
        texts = [self.rtol, self.atol, *(text for own in self.tolerances.values() for text in own)]
        for item in self.arguments:
            texts += [*item.shape, *filter(None, (item.value, item.offset))]
        for error in self.errors.values():
            texts += [error.operations, *([] if error.magnitude == FROM_DATA else [error.magnitude])]
        return tuple(sorted({name for text in texts for name in parse(text).names}))


def load_space(path: str | Path) -> SpaceSpec:
    """Read and check a space file.

    Raises SpaceError `file:line: place: what was expected`, and InputError when the file cannot be read.
    """
    path = Path(path)
    return read_space(*read_document(path), Functions())


def read_space(root: Element, data: bytes, functions: Functions, *, has_source: bool = True) -> SpaceSpec:
    """Check a document and the functions that stand for parts of it; raises SpaceError.

    Without `has_source` the caller has the kernel's source by other means.
    """
    _check_schema(root)
    absent = {"source"} if functions.source or not has_source else set()
    absent |= {"reference"} if functions.reference else set()
    top = root.record([name for name in _REQUIRED if name not in absent], _OPTIONAL, _examples(root))
    dialect = top["dialect"].choice(DIALECTS) if "dialect" in top else DIALECTS[0]
    sizes = read_sizes(top["sizes"])
    dtypes = _distinct(top["dtypes"], lambda item: read_dtype(item, C_TYPES)) if "dtypes" in top else DTYPES
    names = {*DEVICE_NAMES, "DTYPE", *sizes["default"]}
    parameters = read_parameters(top["parameters"], names, top["default"].keys)
    names |= {parameter.name for parameter in parameters}
    derived = _derived(top["derived"], names) if "derived" in top else {}
    names |= set(derived)
    conditions = read_conditions(top["parameters"], names)
    first_values = {item.name: item.values[0] for item in parameters if item.name in conditions}
    constraints = _constraints(top, names, parameters, conditions)
    texts = (constraint.text for constraint in constraints)
    default = read_config(top["default"], parameters, first_values, texts)
    arguments = read_arguments(top["arguments"], dtypes, names, dialect)
    metrics = _derived(top["metrics"], {*names, *MEASURED}) if "metrics" in top else {}
    measured = {*names, *MEASURED, *metrics}
    verify = top["verify"].record((), _VERIFY_KEYS, _VERIFY) if "verify" in top else {}
    launch = read_launches(
        top["launch"],
        arguments,
        {*names, *functions.values},
        dialect,
        _triton_kernels(top, root) if dialect == TRITON else {},
    )
    call = read_call(top["call"], arguments, dtypes) if "call" in top else None
    return SpaceSpec(
        path=root.path,
        sha256=hashlib.sha256(data).hexdigest(),
        kernel=_kernel(top["kernel"]),
        dialect=dialect,
        source=_file(top["source"], dialect) if "source" in top else Path("source text"),
        reference=_file(top["reference"]) if "reference" in top else Path("reference function"),
        sizes=sizes,
        verify_sizes=read_verify_sizes(top.get("verify_sizes"), sizes["default"]),
        dtypes=dtypes,
        parameters=parameters,
        constraints=constraints,
        conditions=_expressions(conditions, names),
        derived=derived,
        default=default,
        landmarks=read_landmarks(top["landmarks"], parameters, default) if "landmarks" in top else (),
        arguments=arguments,
        launch=with_results(launch, call, arguments, top["call"]) if call else launch,
        compiler_options=_options(top["compiler_options"], names) if "compiler_options" in top else {},
        **read_tolerances(verify, arguments, names),
        full=_full(verify["full"], "verify_sizes" in top) if "full" in verify else REFERENCE,
        errors=read_errors(verify, arguments, dtypes, names, has_file=functions.reference is None),
        special=_special(verify["special"], arguments, dtypes, has_file=functions.reference is None)
        if "special" in verify
        else (),
        variants=_variants(verify["variants"], arguments) if "variants" in verify else (),
        compiler=_compiler(top, dialect),
        include_dirs=_folders(top["include_dirs"]) if "include_dirs" in top else (),
        work=_expressions(top["work"].record((), ("bytes", "flops")), names) if "work" in top else {},
        contrast=_expressions(top["contrast"].mapping(), names) if "contrast" in top else {},
        data=_data(top["data"], arguments) if "data" in top else (),
        measure=_measure(top["measure"]) if "measure" in top else USUAL,
        metrics=metrics,
        objective=top["objective"].expression(measured) if "objective" in top else "",
        require=tuple(item.expression(measured) for item in _items(top, "require")),
        functions=functions,
        call=call,
        device=_expressions(top["device"].record((), DEVICE_SETTINGS), names) if "device" in top else {},
    )


def _check_schema(root: Element) -> None:
    """Refuse another version first: checking its content would only give misleading errors."""
    schema = root.mapping().get("schema")
    supported = f"this version of autotune reads schema {', '.join(map(str, SCHEMAS))}"
    if schema is None:
        raise root.error(f"missing key: schema; add `schema: {SCHEMAS[-1]}`; {supported}")
    if schema.value() not in SCHEMAS or isinstance(schema.value(), bool):
        raise schema.error(
            f"unknown schema {schema.value()!r}; {supported}: write `schema: {SCHEMAS[-1]}` without quotes"
        )


def _examples(root: Element) -> dict[str, str]:
    """Values of required keys, for messages; the default has all parameters of the file."""
    values = "BLOCK_SIZE: 128"
    entries = root.mapping()
    with suppress(SpaceError):
        if "parameters" in entries and "default" not in entries:
            texts = (str(constraint.value()) for constraint in _items(entries, "constraints"))
            parameters = read_parameters(entries["parameters"], ())
            whole = completed({}, parameters, texts) or {parameter.name: "..." for parameter in parameters}
            values = ", ".join(f"{name}: {value}" for name, value in whole.items())
    return {**_EXAMPLES, "default": f"{{{values}}}"}


def _items(entries: Mapping[str, Element], key: str) -> list[Element]:
    """The elements of a list that may be left out."""
    return entries[key].items() if key in entries else []


def _file(element: Element, dialect: str = PYTHON) -> Path:
    in_python = dialect in (PYTHON, TRITON)
    path = Path(os.path.normpath(element.path.parent / element.text()))
    if in_python and not path.is_file():
        path = _in_package(element.text()) or path
    suffixes, others = ((".py",), (".cu", ".cl")) if in_python else ((".cu", ".cl"), (".py",))
    if not path.is_file() or path.suffix in others:
        folder = path if path.is_dir() else path.parent
        inside = sorted(file for file in folder.glob("*") if file.suffix in suffixes)
        such = f", such as {os.path.relpath(inside[0], element.path.parent)}" if inside else ""
        if path.is_file():
            language = "in Python" if in_python else f"of dialect {dialect}"
            raise element.error(f"expected a file {language}, found {path}; write the name of one{such}")
        if path.is_dir():
            raise element.error(f"a folder, not a file: {path}; write the name of a file{such}")
        package, _, inside_package = element.text().partition("/")
        if in_python and inside_package and not path.parent.is_dir() and package.isidentifier():
            raise element.error(
                f"no such file: {element.text()}, neither next to the space file nor in a package "
                f"{package} of this Python; install it, or add the folder that has {package}/ to $PYTHONPATH"
            )
        likely = (*suffixes, path.suffix)
        beside = [file.name for file in element.path.parent.glob("*") if file.suffix in likely]
        near = nearest(path.name, beside)
        raise element.error(f"no such file: {path} (paths are relative to the space file){near}")
    return path


def _in_package(text: str) -> Path | None:
    """The file `PACKAGE/FILE` of a package that Python would import, which it does not."""
    package, _, inside = text.partition("/")
    module = find_spec(package) if package.isidentifier() and inside else None
    for folder in (module and module.submodule_search_locations) or ():
        if (path := Path(os.path.normpath(Path(folder) / inside))).is_file():
            return path
    return None


def _compiler(top: Mapping[str, Element], dialect: str) -> str:
    if dialect != TRITON:
        return top["compiler"].choice(CUDA_COMPILERS) if "compiler" in top else CUDA_COMPILERS[0]
    for key in ("compiler", "compiler_options"):
        if key in top:
            raise top[key].error("is not for Triton, whose options are parameters or derived names")
    return TRITON


def _triton_kernels(top: Mapping[str, Element], root: Element) -> Mapping[str, tuple[TritonParameter, ...]]:
    if "source" not in top:
        raise root.error("a kernel in Triton is a file: name it as source")
    path = _file(top["source"])
    try:
        jitted = kernels(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError):
        raise top["source"].error(f"{path}: cannot be read as text; expected a file in Python") from None
    if not jitted:
        raise top["source"].error(f"{path}: has no function under @triton.jit")
    return jitted


def _folders(element: Element) -> tuple[Path, ...]:
    folders = []
    for item in element.items():
        root_name, *rest = item.text().split("/")
        if root_name.startswith("$"):
            if not (root := os.environ.get(root_name[1:])):
                raise item.error(f"set the environment variable {root_name[1:]} to a folder")
            root_name = root
        path = Path(os.path.normpath(item.path.parent.joinpath(root_name, *rest)))
        if not path.is_dir():
            raise item.error(f"no such folder: {path} (paths are relative to the space file)")
        folders.append(path)
    return tuple(folders)


def _kernel(element: Element) -> str:
    name = element.identifier(
        "; you choose this name: files and look-ups use it, and it need not be the function's"
    )
    if name == "device":
        raise element.error("a kernel cannot be called 'device': the cache has a file of that name")
    return name


def _full(element: Element, has_verify_sizes: bool) -> str:
    full = element.choice((REFERENCE, TRUSTED))
    if full == TRUSTED and not has_verify_sizes:
        raise element.error("trusted configurations need verify_sizes, at which the reference confirms them")
    return full


def _special(
    element: Element, arguments: Sequence[FilledArgument], dtypes: Sequence[str], *, has_file: bool
) -> tuple[str, ...]:
    """The names of the special values; raises SpaceError."""
    values = tuple(dict.fromkeys(item.choice(SPECIAL_VALUES) for item in element.items()))
    if not has_file:
        raise element.error("special values need a reference file, which is run on inputs that have them")
    for item in arguments:
        kinds = dtypes if item.dtype == "DTYPE" else (item.dtype,)
        if (
            item.fill is not None
            and item.fill.kind in RANDOM_FILLS
            and not UNIT_ROUNDOFF.keys().isdisjoint(kinds)
        ):
            return values
    raise element.error(
        f"no input has random floating-point numbers: expected a fill {', '.join(RANDOM_FILLS[:-1])} or "
        f"{RANDOM_FILLS[-1]} of an argument of type {', '.join(UNIT_ROUNDOFF)}"
    )


def _measure(element: Element) -> CallMode:
    entries = element.record((), ("cache", "launch"))
    known = {"cache": CACHES, "launch": LAUNCHES}
    return CallMode(**{name: entry.choice(known[name]) for name, entry in entries.items()})


def _distinct(element: Element, read: Callable[[Element], str] = Element.identifier) -> tuple[str, ...]:
    """The texts of a list, as `read` takes each; one that appears twice is an error."""
    names: list[str] = []
    for item in element.items():
        name = read(item)
        if name in names:
            raise item.error(f"{name} appears twice")
        names.append(name)
    return tuple(names)


def _variants(element: Element, arguments: Iterable[FilledArgument]) -> tuple[str, ...]:
    if not any(argument.fill is not None and argument.fill.kind == INPUTS for argument in arguments):
        raise element.error(f"no function makes variants: expected a fill that is {INPUTS}")
    return _distinct(element)


def _data(element: Element, arguments: Iterable[FilledArgument]) -> tuple[str, ...]:
    names = _distinct(element)
    fills = [argument.fill for argument in arguments if argument.fill is not None]
    if not any(fill.kind == INPUTS or DATA in str(fill.arguments) for fill in fills):
        raise element.error(f"no input depends on it: expected a fill that is {INPUTS} or a file {DATA}.npy")
    return names


def _implied(parameter: Parameter, condition: Element, names: Collection[str]) -> Constraint:
    """A parameter that does not matter has its first value, so that such configurations count once."""
    first = parameter.values[0]
    value = f'"{first}"' if isinstance(first, str) else str(first)
    return Constraint(f"{parameter.name} == {value} or ({condition.expression(names)})", condition.line)


def _expressions(entries: Mapping[str, Element], names: Collection[str]) -> dict[str, str]:
    return {name: entry.expression(names) for name, entry in entries.items()}


def _derived(element: Element, names: Collection[str]) -> dict[str, str]:
    derived: dict[str, str] = {}
    for name, entry in element.mapping().items():
        readable = {*names, *derived}
        derived[new_name(entry, name, readable)] = entry.expression(readable)
    return derived


def _constraints(
    top: Mapping[str, Element],
    names: Collection[str],
    parameters: Iterable[Parameter],
    conditions: Mapping[str, Element],
) -> tuple[Constraint, ...]:
    """The constraints of the file, then those that the conditions of parameters imply."""
    values = {parameter.name: parameter.values for parameter in parameters}
    implied = (_implied(item, conditions[item.name], names) for item in parameters if item.name in conditions)
    items = _items(top, "constraints")
    return (*(Constraint(_condition(item, names, values), item.line) for item in items), *implied)


def _condition(item: Element, names: Collection[str], values: Mapping[str, Sequence[Value]]) -> str:
    """The text of a condition; several with commas between, or a number, would always hold."""
    text = item.expression(names, values)
    match parse_expression(text):
        case ast.Tuple(parts):
            mend = " and ".join(f"({ast.unparse(part)})" for part in parts)
            raise item.error(
                f"expected one condition, found {len(parts)}; write `{mend}`, or a line for each"
            )
        case ast.Constant(value) if not isinstance(value, bool):
            raise item.error(f"expected a condition, such as BLOCK_SIZE <= 256; found {text}")
    return text


def _options(element: Element, names: Collection[str]) -> dict[str, dict[str, str]]:
    dialects = element.record((), COMPILER_DIALECTS)
    options = {dialect: entry.mapping() for dialect, entry in dialects.items()}
    for entries in options.values():
        for flag, entry in entries.items():
            if not is_option(flag):
                raise entry.error("expected an option of letters, digits and hyphens, such as --maxrregcount")
            if reads_files(flag):
                raise entry.error(
                    "this option reads files, whose changes would go unseen; name a folder of headers in "
                    "`include_dirs`, and a header in an #include of the source"
                )
    return {dialect: _expressions(entries, names) for dialect, entries in options.items()}
