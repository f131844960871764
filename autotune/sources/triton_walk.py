"""Follow the indices of a kernel in Triton from programs and tiles to addresses, through its helpers.

Each value is a sum of terms. A term knows which parameters multiply it, and what runs along it: the axes of
the grid, tiles of `arange`, loops, elements of arrays. Addresses, comparisons and loops then say what each
parameter is, whatever its name.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.sources.triton_follower import SHORT_TYPES, WHOLE_TYPES, Follower
from autotune.sources.triton_host import translated
from autotune.sources.triton_module import LOOP_RANGES, RESHAPING, TritonModule, decorator_name

_MAX_TERMS, _MAX_FACTORS, _MAX_CALLS, _MAX_LOOPS = 16, 16, 500, 3
_SAME = RESHAPING | {"assume"}  # the first argument is what counts
_SHAPED = ("zeros", "full", "zeros_like", "full_like")
_RANDOM = ("rand", "randn", "randint", "randint4x", "rand4x", "philox")
# Functions that Triton has for 32 and 64 bits only.
_PRECISE = frozenset((
    "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf", "sigmoid", "softmax", "fma",
    "sqrt_rn", "div_rn", "floor", "ceil", "tanh", "pow", "log1p", "rint", "round", "trunc",
))  # fmt: skip
_MASKS = ("mask", "boundary_check")
# Arguments of Triton's functions that are texts, each with one that every GPU takes.
_TEXTS = {"cache_modifier": "", "eviction_policy": "", "input_precision": "ieee", "sem": "acq_rel"}


@dataclass(frozen=True)
class Term:
    """A part of a sum: parameters that multiply it, and what runs along it."""

    factors: tuple[str, ...] = ()
    axes: frozenset[int] = frozenset()  # of the grid
    tiles: frozenset[str] = frozenset()  # parameters in the length of an `arange`
    loops: frozenset[str] = frozenset()  # what loops end at
    loaded: frozenset[str] = frozenset()  # arrays whose elements it is made of
    raw: frozenset[str] = frozenset()  # of these, arrays whose elements have the type of the array

    @property
    def runs(self) -> bool:
        """Whether it differs between elements."""
        return bool(self.axes or self.tiles or self.loops or self.loaded)


@dataclass(frozen=True)
class Sum:
    """A value: its terms, its text as an expression of parameters if it is one, and items of a tuple."""

    terms: tuple[Term, ...] = ()
    text: str = ""
    items: tuple[Sum, ...] = ()
    constant: Value | None = None

    @property
    def runs(self) -> bool:
        """Whether it differs between elements."""
        return any(term.runs for term in self.terms)

    @property
    def factors(self) -> tuple[str, ...]:
        """All parameters in it."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.factors))

    @property
    def parameter(self) -> str:
        """The parameter that it is; empty for anything else."""
        alone = len(self.terms) == 1 and len(self.terms[0].factors) == 1 and not self.terms[0].runs
        return self.terms[0].factors[0] if alone else ""


NOTHING = Sum()


@dataclass
class TritonFindings:
    """What a kernel's body says of its parameters."""

    constants: frozenset[str]
    accesses: list[tuple[str, Sum]] = field(default_factory=list)  # load, store or atomic, and the address
    bounds: list[tuple[Sum, Sum]] = field(default_factory=list)  # what is compared with what
    tiles: set[str] = field(default_factory=set)
    steps: dict[str, set[int]] = field(default_factory=dict)  # axes of the grid that a parameter multiplies
    loops: dict[str, set[str]] = field(default_factory=dict)  # ends of loops that step by a parameter
    flags: set[str] = field(default_factory=set)
    choices: dict[str, list[Value]] = field(default_factory=dict)  # what a parameter is compared with
    kinds: set[str] = field(default_factory=set)  # parameters that are element types
    whole_kinds: set[str] = field(default_factory=set)  # of these, types of indices
    sum_kinds: set[str] = field(default_factory=set)  # and of what begins at a value or is summed up
    short_types: set[str] = field(default_factory=set)  # of 16 bits, to which values are converted
    indices: set[str] = field(default_factory=set)  # numbers that are whole, as their use shows
    loaded_indices: set[str] = field(default_factory=set)  # arrays whose elements become whole numbers
    alike: list[set[str]] = field(default_factory=list)  # parameters of which a branch takes one
    either: set[str] = field(default_factory=set)  # parameters that one branch loads from, and another adds
    reals: dict[str, set[str]] = field(default_factory=dict)  # arrays whose elements a number meets
    tuples: set[str] = field(default_factory=set)  # parameters of which an item is taken
    given_blocks: set[str] = field(default_factory=set)  # blocks of elements, which another kernel passes
    stored: dict[str, set[str]] = field(default_factory=dict)  # arrays of whose elements each array is made
    precise: set[str] = field(default_factory=set)  # arrays whose elements go to functions of 32 bits
    computed: set[str] = field(default_factory=set)  # arrays whose elements meet operations in their own type
    descriptors: set[str] = field(default_factory=set)  # parameters with `load` and `store` of their own
    ends: set[str] = field(default_factory=set)  # parameters that a loop ends at
    asserted: list[str] = field(default_factory=list)  # what `static_assert` demands, as expressions
    axes: set[int] = field(default_factory=set)
    has_dot: bool = False
    has_loop: bool = False
    has_mask: bool = False

    def base(self, address: Sum) -> str:
        """The array that an address starts from, which nothing multiplies; empty if there is none."""
        names = [term.factors[0] for term in address.terms if len(term.factors) == 1 and not term.runs]
        names = [name for name in names if name not in self.constants]
        return next((name for name in names if name not in self.indices), names[0] if names else "")


def walk(module: TritonModule, function: ast.FunctionDef, constants: Collection[str]) -> TritonFindings:
    """Follow the body of a kernel with these constants."""
    walker = _Walker(module, constants)
    arguments = function.args
    own = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    walker.follow(
        module, function, (), {argument.arg: Sum((Term((argument.arg,)),), argument.arg) for argument in own}
    )
    return walker.found


class _Walker(Follower[Sum]):
    unknown = NOTHING

    def __init__(self, module: TritonModule, constants: Collection[str]) -> None:
        super().__init__(module)
        self.found = TritonFindings(frozenset(constants))
        self._calls = self._loops = self._branches = 0

    @property
    def _may_enter(self) -> bool:
        self._calls += 1
        return super()._may_enter and self._calls <= _MAX_CALLS

    # statements

    def _loop(self, node: ast.For | ast.While, names: dict[str, Sum], returned: list[Sum]) -> None:
        self.found.has_loop = True
        variable = self._turns(node.iter, names) if isinstance(node, ast.For) else NOTHING
        for _ in self._twice():
            if isinstance(node, ast.For):
                self._bind(node.target, variable, names)
            else:
                self._decided(self._value(node.test, names))
            self._block(node.body, names, returned)
        self._loops -= 1

    def _branch(self, node: ast.If, names: dict[str, Sum], returned: list[Sum]) -> bool:
        self._branches += 1
        ends = super()._branch(node, names, returned)
        self._branches -= 1
        return ends

    def _twice(self) -> range:
        """The turns of a loop that are followed: the second has what the first assigned."""
        self._loops += 1
        return range(2 if self._loops <= _MAX_LOOPS else 1)

    def _turns(self, node: ast.expr, names: dict[str, Sum]) -> Sum:
        """The variable of a loop."""
        if not (isinstance(node, ast.Call) and decorator_name(node) in LOOP_RANGES):
            return _merged([self._value(node, names)])
        given = [self._value(argument, names) for argument in node.args]
        start, end, step = [*([NOTHING] if len(given) < 2 else []), *given, NOTHING, NOTHING][:3]
        self._whole(*given)
        for one in given:
            self.found.indices.update(one.factors)
        self.found.ends.update(end.factors)
        text = end.text or (end.factors[0] if len(end.factors) == 1 else "")
        for name in step.factors:
            self.found.loops.setdefault(name, set()).add(text)
        own = Term(loops=frozenset({text} if text else {"?"}))
        is_by_programs = len(given) == 3 and not step.factors and step.constant is None
        if is_by_programs and start.runs and text and not end.runs:  # as if each turn had its own program
            self.found.bounds.append((start, replace(end, text=text)))
            return start
        return Sum((*(one for one in start.terms if one.runs), own))

    def _decided(self, value: Sum) -> bool | None:
        """A condition: parameters alone in it are flags."""
        if value.parameter and value.text:
            self.found.flags.add(value.parameter)
        return None

    # values

    def _call(self, node: ast.Call, names: dict[str, Sum]) -> Sum:
        if decorator_name(node) == "static_assert" and node.args and not self._branches:
            known = {name: parse_expression(value.text) for name, value in names.items() if value.text}
            self.found.asserted.append(translated(node.args[0], "", known))
        return super()._call(node, names)

    def _constant(self, value: Any) -> Sum:
        match value:
            case int() | float():
                return Sum(text=repr(value), constant=value)
            case str():
                return Sum(constant=value)
        return NOTHING

    def _joined(self, values: Sequence[Sum]) -> Sum:
        """The value of the last branch, unless one has more terms than what is no expression."""
        self.found.alike.append({self.found.base(value) for value in values} - {""})
        sums = [term for value in values if len(value.terms) > 1 for term in value.terms]
        added = {term.factors[0] for term in sums if len(term.factors) == 1 and not term.runs}
        self.found.either |= added & {
            name for value in values for term in value.terms for name in term.loaded
        }
        *others, last = values or [NOTHING]
        widest = max(others, key=lambda value: len(value.terms), default=last)
        return widest if len(widest.terms) > len(last.terms) and not last.text else last

    def _chosen(self, values: Sequence[Sum]) -> Sum:
        return replace(self._listed(values), items=())

    def _listed(self, values: Sequence[Sum]) -> Sum:
        return Sum(_limited(tuple(term for value in values for term in value.terms)), items=tuple(values))

    def _item(self, held: Sum, index: ast.expr, names: dict[str, Sum]) -> Sum:
        self._value(index, names)  # an item of another may be in it
        if held.items and isinstance(index, ast.Constant) and isinstance(index.value, int):
            return held.items[index.value] if index.value < len(held.items) else NOTHING
        is_item = held.parameter in self.found.constants or (
            isinstance(index, ast.Constant) and index.value is not None
        )
        if held.parameter and held.parameter == held.text and is_item:  # not of what is made with it
            self.found.tuples.add(held.parameter)
        elif not isinstance(index, ast.Constant):
            self._block_of_caller(held)
        return held

    def _block_of_caller(self, value: Sum) -> None:
        """Note a parameter that gets a further axis, or is a mask or a matrix: launches pass no blocks."""
        if value.parameter and value.parameter == value.text and value.parameter not in self.found.constants:
            self.found.given_blocks.add(value.parameter)

    def _unary(self, operator: ast.unaryop, value: Sum) -> Sum:
        number = value.constant
        return Sum(value.terms, constant=-number if isinstance(number, int | float) else number)

    def _binary(self, left: Sum, operator: ast.operator, right: Sum) -> Sum:
        self._meet(left, right)
        self._compute(left, right)
        text = _text(operator, left, right)
        match operator:
            case ast.Add() | ast.Sub():
                terms = (*left.terms, *right.terms)
                return Sum(_limited(_cast(terms) if any(map(_is_cast, terms)) else terms), text)
            case ast.Mult():
                self._steps(left, right)
                if not left.terms or not right.terms:
                    return Sum(left.terms or right.terms, text)
                products = tuple(_times(one, other) for one, other in product(left.terms, right.terms))
                return Sum(_limited(products), text)
            case ast.FloorDiv() | ast.Mod():
                self._whole(left, right)
                if isinstance(operator, ast.Mod) and any(term.tiles for term in left.terms):
                    self.found.bounds.append((left, right))
                return Sum(_merged([left]).terms, text)
            case ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.LShift() | ast.RShift():
                self._whole(left, right)
        return Sum(_merged([left, right]).terms)

    def _compute(self, *operands: Sum) -> None:
        """Note arrays whose elements are operands as they were loaded."""
        self.found.computed.update(
            name for operand in operands for term in operand.terms for name in term.raw
        )

    def _meet(self, left: Sum, right: Sum) -> None:
        """Note numbers that meet loaded elements in arithmetic."""
        for number, element in ((left, right), (right, left)):
            if number.parameter:
                arrays = {name for term in element.terms for name in term.loaded}
                if arrays or isinstance(element.constant, float):
                    self.found.reals.setdefault(number.parameter, set()).update(arrays)

    def _whole(self, *sums: Sum) -> None:
        """Note numbers, and arrays whose elements are numbers, that are whole."""
        for value in sums:
            if value.parameter:
                self.found.indices.add(value.parameter)
            self.found.loaded_indices.update(name for term in value.terms for name in term.raw)

    def _steps(self, left: Sum, right: Sum) -> None:
        """Note parameters that multiply an axis of the grid, or the turns of a loop."""
        for factor, index in ((left, right), (right, left)):
            if len(factor.factors) != 1:
                continue
            name = factor.factors[0]
            for term in index.terms:
                if term.loaded or term.tiles:
                    continue
                if term.axes:
                    self.found.steps.setdefault(name, set()).update(term.axes)
                for end in term.loops:
                    if end.startswith("ceil_div(") and end.endswith(f", {name})"):
                        whole = end[len("ceil_div(") : -len(f", {name})")]
                        self.found.loops.setdefault(name, set()).add(whole)

    def _compared(self, values: Sequence[Sum], operators: Sequence[ast.cmpop]) -> Sum:
        for operator, first, second in zip(operators, values, values[1:], strict=False):
            is_none = isinstance(operator, ast.Is | ast.IsNot)
            is_equality = isinstance(operator, ast.Eq | ast.NotEq)
            for this, that in ((first, second), (second, first)):
                if this.parameter and (is_none or isinstance(that.constant, bool)):
                    self.found.flags.add(this.parameter)
                elif this.parameter and that.constant is not None and is_equality:
                    self.found.choices.setdefault(this.parameter, []).append(that.constant)
                if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    self.found.bounds.append((this, that))
                    if any(term.runs and not term.loaded for term in this.terms):
                        self._whole(that)
        self._compute(*values)
        return Sum(_cast(_merged(values).terms))

    def _built_in(self, called: str, own: Sequence[Sum], named: Mapping[str, Sum], *, is_method: bool) -> Sum:
        first = own[0] if own else NOTHING
        self._element_types(called, own, named)
        match called:
            case "program_id":
                axis = (named.get("axis") or first).constant
                if isinstance(axis, int):
                    self.found.axes.add(axis)
                    return Sum((Term(axes=frozenset({axis})),))
                return NOTHING
            case "num_programs":
                return NOTHING
            case "arange":
                end = own[1] if len(own) > 1 else named.get("end", NOTHING)
                self.found.tiles.update(end.factors)
                return Sum((Term(tiles=frozenset(end.factors)),)) if end.factors else NOTHING
            case "cdiv":
                self._whole(*own)
                return Sum(_merged(own).terms, _call_text("ceil_div", own))
            case "minimum" | "maximum" if len(own) > 1:
                self._meet(own[0], own[1])
                self._compute(*own)
                return Sum(_merged(own).terms, _call_text(called[:3], own))
            case "next_power_of_2":
                text = f"2 ** ceil(log2({first.text}))" if first.text else ""
                return Sum(_merged(own).terms, text)
            case "make_block_ptr" | "make_tensor_descriptor":
                return self._block_pointer(own, named)
            case "load" | "store" | "gather" | "scatter":
                return self._access(called, own, named, is_method=is_method)
            case "_experimental_descriptor_load" | "_experimental_descriptor_store":
                return self._access(called.rpartition("_")[2], own, named, is_method=True)
            case _ if called.startswith("atomic"):
                return self._access("atomic", own, named, is_method=is_method)
            case "dot" | "dot_scaled":
                self.found.has_dot = True
                for operand in own:
                    self._block_of_caller(operand)
            case "where" if len(own) == 3:
                return self._joined(own[1:]) if all(map(self.found.base, own[1:])) else _merged(own[1:])
            case _ if called in _RANDOM:
                self._whole(*own[:1])
                return NOTHING  # no index
            case _ if called in _SHAPED:
                return NOTHING
        if called in ("to", "cast"):
            if any(term.axes or term.tiles for term in first.terms):
                kinds = {value.parameter for value in own[1:]}
                self.found.whole_kinds.update(kinds & self.found.kinds)
            kind = next(reversed([*own[1:], *named.values()]), NOTHING)
            self.found.short_types.update(one for one in SHORT_TYPES if one == kind.constant)
            if kind.constant in WHOLE_TYPES:
                self.found.loaded_indices.update(name for term in first.terms for name in term.loaded)
            return Sum(_cast(first.terms), first.text, first.items)
        if called in _SAME:
            return Sum(first.terms, "", first.items)
        merged = _merged([*own, *named.values()])
        self._compute(*own, *named.values())
        if called in _PRECISE:
            for name in {name for one in own for name in one.factors}:
                self.found.reals.setdefault(name, set())
            self.found.precise.update(name for term in merged.terms for name in term.raw)
        return Sum(merged.terms)

    def _element_types(self, called: str, own: Sequence[Sum], named: Mapping[str, Sum]) -> None:
        """Note parameters that stand for an element type."""
        candidates = [named[key] for key in ("dtype", "out_dtype", "acc_dtype") if key in named]
        place = {"to": 1, "cast": 1, "zeros": 1, "full": 2}.get(called)
        if place is not None and len(own) > place:
            candidates.append(own[place])
        kinds = {candidate.parameter for candidate in candidates if candidate.parameter}
        self.found.kinds.update(kinds)
        if called not in ("to", "cast"):
            self.found.sum_kinds.update(kinds)
        for key in named.keys() & _TEXTS.keys():
            if named[key].parameter:
                self.found.choices.setdefault(named[key].parameter, []).insert(0, _TEXTS[key])

    def _block_pointer(self, given: Sequence[Sum], named: Mapping[str, Sum]) -> Sum:
        """A pointer with the shape of its block, or a descriptor, which has no offsets."""
        is_pointer = len(given) + len(named) >= 5
        order = ["base", "shape", "strides", *(["offsets"] if is_pointer else []), "block_shape"]
        parts = dict(zip(order, given, strict=False)) | dict(named)
        base, shape, strides, block = (
            parts.get(part, NOTHING) for part in ("base", "shape", "strides", "block_shape")
        )
        offsets = parts.get("offsets", NOTHING).items
        terms: list[Term] = list(base.terms)
        for place, tile in enumerate(block.items):
            self.found.tiles.update(tile.factors)
            extent = shape.items[place] if place < len(shape.items) else NOTHING
            stride = strides.items[place] if place < len(strides.items) else NOTHING
            offset = offsets[place] if place < len(offsets) else NOTHING
            own = Term(tiles=frozenset(tile.factors))
            along = Sum((own, *offset.terms))
            self.found.bounds.append((along, extent))
            self._whole(extent, stride)
            for name in tile.factors if not is_pointer else ():
                self.found.loops.setdefault(name, set()).add(extent.text)
            terms += [
                Term((*term.factors, *stride.factors), term.axes, term.tiles, term.loops, term.loaded)
                for term in along.terms
                if term.runs
            ]
        return Sum(tuple(terms))

    def _access(self, kind: str, own: Sequence[Sum], named: Mapping[str, Sum], *, is_method: bool) -> Sum:
        """A load or store, through `tl` or as a method of a descriptor."""
        address = own[0] if own else named.get("pointer", NOTHING)
        if is_method and address.parameter:
            self.found.descriptors.add(address.parameter)
        place = 1 if kind == "load" else 2
        self._block_of_caller(own[place] if len(own) > place else named.get("mask", NOTHING))
        is_masked = len(own) > place or not named.keys().isdisjoint(_MASKS)
        self.found.has_mask |= is_method or is_masked
        self.found.accesses.append((kind, address))
        if kind == "store":
            value = own[1] if len(own) > 1 else named.get("value", NOTHING)
            made_of = {name for term in value.terms for name in term.raw}
            self.found.stored.setdefault(self.found.base(address), set()).update(made_of)
        if kind == "atomic":
            self.found.computed.add(self.found.base(address))
        return Sum((_element(self.found.base(address)),)) if kind in ("load", "atomic", "gather") else NOTHING


def _element(array: str) -> Term:
    names = frozenset({array} - {""})
    return Term(loaded=names, raw=names)


def _cast(terms: Sequence[Term]) -> tuple[Term, ...]:
    return tuple(replace(term, raw=frozenset()) if term.raw else term for term in terms)


def _times(left: Term, right: Term) -> Term:
    return Term(
        (*left.factors, *right.factors)[:_MAX_FACTORS],
        left.axes | right.axes,
        left.tiles | right.tiles,
        left.loops | right.loops,
        left.loaded | right.loaded,
        frozenset() if _is_cast(left) or _is_cast(right) else left.raw | right.raw,
    )


def _is_cast(term: Term) -> bool:
    return bool(term.loaded) and not term.raw


def _merged(values: Iterable[Sum]) -> Sum:
    """One term with all that runs along several values; their parameters do not multiply it."""
    terms = [term for value in values for term in value.terms]
    if len(terms) == 1 and not terms[0].runs:
        return Sum((terms[0],))
    axes = frozenset[int]().union(*(term.axes for term in terms))
    tiles, loops, loaded, raw = (
        frozenset[str]().union(*(getattr(term, name) for term in terms))
        for name in ("tiles", "loops", "loaded", "raw")
    )
    merged = Term((), axes, tiles, loops, loaded, frozenset() if any(map(_is_cast, terms)) else raw)
    return Sum((merged,)) if merged.runs else NOTHING


def _limited(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return terms if len(terms) <= _MAX_TERMS else (terms[0], *_merged([Sum(terms[1:])]).terms)


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}


def _text(operator: ast.operator, left: Sum, right: Sum) -> str:
    sign = _SIGNS.get(type(operator))
    if sign is None or not left.text or not right.text or len(left.text) + len(right.text) > 200:
        return ""
    return f"{_factor(left.text)} {sign} {_factor(right.text)}"


def _factor(text: str) -> str:
    is_one = text.isidentifier() or text.isdecimal() or text.startswith(("ceil_div(", "min(", "max("))
    return text if is_one else f"({text})"


def _call_text(name: str, given: Sequence[Sum]) -> str:
    """The text of a function of two values; empty if one of them has none."""
    texts = [value.text for value in given if value.text]
    return f"{name}({texts[0]}, {texts[1]})" if len(texts) == 2 else ""
