"""Run a kernel's statements on indices alone: which elements its threads reach, and which meet at a barrier.

All threads of some blocks run at once, each statement on a vector with a place for each thread. What is read
from memory and what is no whole number is unknown. Where a condition is unknown, threads only may be there;
what is found is about threads that surely are.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from autotune.core.c_types import SCALARS, element_bytes
from autotune.core.records import Launch
from autotune.sources.exact_statements import exact_body
from autotune.sources.facts import BARRIERS, LOADS, STORES
from autotune.sources.kernel_source import Function, KernelSource
from autotune.sources.launch_run import Divergent, FollowedArray, LaunchRun, Mask, NotUnderstood, Steps
from autotune.sources.statements import Declared, Loop, changed_by, parsed_expression
from autotune.sources.thread_values import (
    ARGUMENTS,
    EXACT,
    NO,
    UNKNOWN,
    YES,
    Bools,
    Ints,
    Value,
    arithmetic,
    common,
    compared,
    converted,
    joined,
    negative,
    whole,
)
from autotune.sources.type_layouts import TypeLayouts

_ENDS_OF_16_BITS = (0xFFFF, 0x10000)
_DEPTH = 8  # of calls
_text = lru_cache(maxsize=1024)(ast.unparse)


@dataclass(frozen=True)
class Pointer:
    """A place in an array in each thread; `extents` are those of what one index leads through."""

    memory: FollowedArray | None
    offset: Value  # in bytes
    item: int  # bytes of an element; 0 if they are unknown
    extents: tuple[int, ...] = (0,)


_OF_VARIABLE = Pointer(FollowedArray("", None, 0, "thread"), UNKNOWN, 0)


@dataclass
class _Frame:
    """What belongs to one call of a function."""

    types: Mapping[str, str]  # of its template
    left: Bools  # threads that may have returned
    turned: Bools  # and those that may have left the turn of a loop
    ended: Bools  # or the loop
    variables: dict[str, Value | Pointer] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    pinned: set[str] = field(default_factory=set)  # whose address is taken
    result: Value | Pointer = UNKNOWN


def blocks_of(axes: Sequence[Sequence[int]]) -> Ints:
    """Blocks with all indices of each axis: those along x, y and z in three rows."""
    z, y, x = np.meshgrid(axes[2], axes[1], axes[0], indexing="ij")
    return np.stack([x.ravel(), y.ravel(), z.ravel()]).astype(np.int64)


class DryRun(LaunchRun):
    """Runs blocks of one launch."""

    def __init__(
        self,
        source: KernelSource,
        steps: Steps,
        bodies: dict[str, list[ast.stmt]],
        *,
        most_turns: float = math.inf,
        is_wide: bool = False,
    ) -> None:
        """Prepare to run, given the statements of functions that were needed so far.

        What turns of a loop beyond `most_turns` change is unknown. A run that is wide counts with 64 bits
        where the source counts with 32.
        """
        super().__init__(steps)
        self.turns: dict[int, int] = {}  # the most that a thread surely takes of each loop, by its place
        self._most_turns, self._is_wide = most_turns, is_wide
        self.has_16_bits = False  # True once an integer of so many bits is made, or their end is named
        self.cuts_to_16_bits = False  # True once a number does not fit in one
        self.ways: set[tuple[str, bool]] = set()  # conditions that sizes alone decide, and if they hold
        self._source, self._bodies = source, bodies
        self._types = TypeLayouts.compiled(source)
        own = [function for function in source.device_functions if not function.is_kernel]
        names = [one.name for one in own]
        self._functions = {one.name: one for one in own if names.count(one.name) == 1}
        self._variables = {variable.name: variable for variable in source.variables}
        self._outer: dict[str, Value | Pointer] = {}
        self._depth = 0
        self._exited = NO
        self._frame = _Frame({}, NO, NO, NO)

    def run(
        self,
        kernel: Function,
        launch: Launch,
        template: Sequence[str],
        arguments: Sequence[FollowedArray | Pointer | int | None],
        blocks: Ints,
    ) -> None:
        """Run some blocks, given by their indices along x, y and z in three rows.

        Raises:
            NotUnderstood: The kernel has what only a compiler understands.
            OutOfSteps: It takes too long; what was found until then is right.
        """
        x, y, z = launch.block
        threads = np.indices((z, y, x)).reshape(3, -1)[::-1]
        self._threads = np.tile(threads, blocks.shape[1])
        self._blocks = np.repeat(blocks, threads.shape[1], axis=1)
        self._per_block = threads.shape[1]
        self._lanes = self._threads.shape[1]
        self._launch = launch
        size = "i64" if self._is_wide else "u64" if self._source.dialect == "opencl" else "u32"
        self._indices: dict[str, Value] = {}
        for number, axis in enumerate("xyz"):
            grids = {"threadIdx": self._threads[number], "blockIdx": self._blocks[number]}
            extents = {"blockDim": launch.block[number], "gridDim": launch.grid[number]}
            for name, data in (*grids.items(), *((one, np.array([many])) for one, many in extents.items())):
                self._indices[f"{name}.{axis}"] = Value(size, data.astype(np.int64), YES)
        given: list[Value | Pointer] = []
        for one, parameter in zip(arguments, kernel.parameters, strict=True):
            if isinstance(one, FollowedArray):
                given.append(Pointer(one, whole(0, "i64"), 0))
            elif isinstance(one, int) and not parameter.pointers:
                given.append(whole(one, "i64"))
            else:
                given.append(one if isinstance(one, Pointer) else UNKNOWN)
        everyone = np.ones(self._lanes, np.bool_)
        bound = dict(zip((one.name for one in kernel.template or ()), template, strict=False))
        self._call(kernel, given, Mask(everyone, everyone), bound)

    # functions

    def _call(
        self,
        function: Function,
        given: Sequence[Value | Pointer],
        mask: Mask,
        template: Mapping[str, str],
        names: Sequence[str] = (),
    ) -> Value | Pointer:
        if function.name not in self._bodies:
            self._bodies[function.name] = exact_body(function)
        if self._depth == _DEPTH:
            raise NotUnderstood
        outer = self._frame
        nobody = self._nobody().sure
        self._frame = frame = _Frame(template, left=nobody, turned=nobody, ended=nobody)
        for name, text in template.items():
            if re.fullmatch(r"\d+", text):
                frame.variables[name] = whole(int(text))
        for parameter, value in zip(function.parameters, given, strict=False):
            if isinstance(value, Pointer):
                item = self._bytes(parameter.type) or (0 if self._depth == 0 else value.item)
                bound: Value | Pointer = replace(value, item=item) if parameter.pointers else value
            else:
                frame.kinds[parameter.name] = parameter.type
                bound = self._converted(value, parameter.type)
            frame.variables[parameter.name] = bound if parameter.pointers < 2 else UNKNOWN
        self._depth += 1
        try:
            self._block(self._bodies[function.name], mask)
        finally:
            self._depth -= 1
            self._frame = outer
        for parameter, name in zip(function.parameters, names, strict=False):
            if parameter.is_reference and name:
                self._assign(name, frame.variables.get(parameter.name, UNKNOWN), mask)
        return frame.result

    # statements: each gives the threads that go on after it

    def _block(self, body: Sequence[ast.stmt], mask: Mask) -> Mask:
        for statement in body:
            if not mask.may.any():
                break
            mask = self._statement(statement, mask)
        return mask

    def _statement(self, statement: ast.stmt, mask: Mask) -> Mask:
        frame = self._frame
        self._steps.pay(self._lanes)
        self._at = statement.lineno
        match statement:
            case ast.AnnAssign(ast.Name(name), ast.Constant(Declared() as own), value):
                self._declare(name, own, value, mask)
            case ast.Assign(targets=[target], value=value):
                self._store(target, self._of(value, mask), mask, is_read=False)
            case ast.AugAssign(target=target, op=op, value=value):
                changed = self._binary(target, op, value, mask) if isinstance(target, ast.Name) else UNKNOWN
                if not isinstance(target, ast.Name):
                    self._of(value, mask)
                self._store(target, changed, mask, is_read=True)
            case ast.If(test=test, body=body, orelse=orelse):
                yes, no = self._split(test, mask)
                yes, no = self._block(body, yes), self._block(orelse, no)
                may = yes.may | no.may
                gone = frame.left | frame.turned | frame.ended
                return Mask(mask.sure & may & ~gone, may)
            case Loop():
                return self._loop(statement, mask)
            case ast.Return(value=value):
                if value is not None:
                    frame.result = self._merged(frame.result, self._of(value, mask), mask)
                frame.left = frame.left | mask.may
                if self._depth == 1:
                    self._exited = self._exited | mask.may
                return self._nobody()
            case ast.Break():
                frame.ended = frame.ended | mask.may
                return self._nobody()
            case ast.Continue():
                frame.turned = frame.turned | mask.may
                return self._nobody()
            case ast.Expr(value=value):
                self._of(value, mask)
            case ast.Assert():  # by the compiler
                pass
            case _:
                raise NotUnderstood
        return mask

    def _nobody(self) -> Mask:
        nobody = np.zeros(self._lanes, np.bool_)
        return Mask(nobody, nobody)

    def _loop(self, loop: Loop, mask: Mask) -> Mask:
        frame = self._frame
        outer = frame.turned, frame.ended
        frame.turned = frame.ended = done = np.zeros(self._lanes, np.bool_)
        inside, is_first, place, turns = mask, loop.is_late, self._at, 0
        while inside.may.any():
            if not is_first:
                inside = self._block(loop.before, inside)
                inside, out = self._split(loop.test, inside)
                done = done | out.may
                if not inside.sure.any() or turns >= self._most_turns:  # the rest may take any number
                    if inside.may.any():
                        self._forget(loop, inside)
                        self._turn(loop, Mask(self._nobody().sure, inside.may))
                        done = done | inside.may
                    break
            is_first, turns = False, turns + 1
            if inside.sure.any():
                self.turns[place] = max(self.turns.get(place, 0), turns)
            inside = self._turn(loop, inside)
        done = done | frame.ended
        frame.turned, frame.ended = outer
        gone = frame.left | frame.turned | frame.ended
        return Mask(mask.sure & done & ~gone, done)

    def _turn(self, loop: Loop, mask: Mask) -> Mask:
        frame = self._frame
        frame.turned = np.zeros(self._lanes, np.bool_)
        after = self._block(loop.body, mask)
        may = after.may | frame.turned
        sure = mask.sure & may & ~frame.ended & ~frame.left
        frame.turned = np.zeros(self._lanes, np.bool_)
        return self._block(loop.step, Mask(sure, may))

    def _forget(self, loop: Loop, mask: Mask) -> None:
        """Make what a loop changes unknown."""
        for name, is_passed in changed_by(loop):
            if not (is_passed and isinstance(self._of(name, mask), Pointer)):
                self._assign(name.id, UNKNOWN, mask)

    def _declare(self, name: str, own: Declared, value: ast.expr | None, mask: Mask) -> None:
        frame = self._frame
        item = self._bytes(own.type)
        if own.extents and not own.is_pointer:
            extents = [self._number(extent, mask) for extent in own.extents]
            if own.is_dynamic:
                made = self._array(name, item, self._launch.shared_bytes, "block", [0, *extents[1:]])
            elif isinstance(value, ast.List) and extents == [0]:
                made = self._array(name, item, item * len(value.elts), "thread", [0])
            elif None in extents or not all(extents):
                made = Pointer(FollowedArray(name, None, item, "thread"), whole(0, "i64"), item)
            else:
                size = item * math.prod(extent or 0 for extent in extents)
                made = self._array(name, item, size, "block" if own.is_shared else "thread", extents)
            frame.variables[name] = made
            for one in value.elts if isinstance(value, ast.List) else ():
                self._of(one, mask)
            return
        frame.kinds[name] = "" if own.is_pointer else own.type
        value_there = UNKNOWN if value is None else self._of(value, mask)
        if own.is_pointer and isinstance(value_there, Pointer) and item:
            value_there = replace(value_there, item=item)
        self._assign(name, value_there, mask, is_new=name not in frame.variables)

    def _array(
        self, name: str, item: int, size: int | None, kind: str, extents: Sequence[int | None]
    ) -> Pointer:
        known = tuple(extent or 0 for extent in extents)
        memory = FollowedArray(name, size if item and None not in extents else None, item, kind)
        return Pointer(memory, whole(0, "i64"), item if None not in extents[1:] else 0, known)

    def _assign(self, name: str, value: Value | Pointer, mask: Mask, *, is_new: bool = False) -> None:
        frame = self._frame
        if isinstance(value, Value):
            value = self._converted(value, frame.kinds.get(name, ""))
        old = None if is_new else frame.variables.get(name)
        if name in frame.pinned:
            value = UNKNOWN
        frame.variables[name] = self._merged(old, value, mask)

    def _merged(self, old: Value | Pointer | None, new: Value | Pointer, mask: Mask) -> Value | Pointer:
        """What a variable is after an assignment."""
        if mask.sure.all():
            return new
        if isinstance(new, Pointer):
            if isinstance(old, Pointer) and (old.memory is not new.memory or old.item != new.item):
                return Pointer(None, UNKNOWN, 0)
            before = old.offset if isinstance(old, Pointer) else UNKNOWN
            return replace(new, offset=joined(before, new.offset, mask.sure, mask.may))
        if isinstance(old, Pointer):
            return Pointer(None, UNKNOWN, 0)
        return joined(old or UNKNOWN, new, mask.sure, mask.may)

    def _store(self, target: ast.expr, value: Value | Pointer, mask: Mask, *, is_read: bool) -> None:
        while isinstance(target, ast.Attribute):
            target, is_read = target.value, True
            value = UNKNOWN
        match target:
            case ast.Name(id=name):
                self._assign(name, value, mask)
            case ast.Subscript():
                place = self._place(target, mask)
                if place is not None:
                    self._access(place, mask, is_read=is_read, is_written=True)
            case _:
                self._of(target, mask)
                self.is_whole = False

    # memory

    def _place(self, node: ast.Subscript, mask: Mask) -> Pointer | None:
        base, index = self._of(node.value, mask), self._of(node.slice, mask)
        if not isinstance(base, Pointer) or isinstance(index, Pointer):
            is_vector = isinstance(node.value, ast.Name) and self._frame.kinds.get(node.value.id)
            if isinstance(base, Pointer) or not is_vector:
                self.is_whole = False
            return None
        return self._moved(base, index, base.extents[1:])

    def _moved(self, base: Pointer, index: Value, extents: tuple[int, ...] | None = None) -> Pointer:
        stride = whole(base.item * math.prod(base.extents[1:]), "i64")
        offset = arithmetic(ast.Add(), base.offset, arithmetic(ast.Mult(), converted(index, "i64"), stride))
        return replace(base, offset=offset, extents=base.extents if extents is None else extents)

    def _access(self, place: Pointer, mask: Mask, *, is_read: bool = False, is_written: bool = False) -> None:
        memory, item = place.memory, place.item
        if memory is None:
            self.is_whole = False
            return
        everywhere = np.broadcast_to(place.offset.data, (self._lanes,))
        offset = place.offset._replace(data=everywhere)
        self._reach(memory, offset, mask, item, memory.unit, is_read=is_read, is_written=is_written)

    def _who(self, lane: int) -> str:
        return f"thread {_of_lane(self._threads, lane)} of block {_of_lane(self._blocks, lane)}"

    def _barrier(self, mask: Mask) -> None:
        away = ~mask.may
        if self._source.dialect == "cuda":  # which does not wait for threads that have returned
            away &= ~self._exited
        there = mask.sure.reshape(-1, self._per_block)
        missing = away.reshape(-1, self._per_block)
        if (parted := there.any(axis=1) & missing.any(axis=1)).any():
            block = int(parted.argmax())
            first = block * self._per_block
            lanes = (first + int(lanes_of[block].argmax()) for lanes_of in (there, missing))
            thread, other = (_of_lane(self._threads, lane) for lane in lanes)
            divergent = Divergent(thread, other, _of_lane(self._blocks, first))
            self.found.setdefault((self._at, ""), divergent)

    # expressions

    def _of(self, node: ast.expr, mask: Mask) -> Value | Pointer:
        self._steps.pay(self._lanes)
        match node:
            case ast.Constant(value=bool(one)) | ast.Constant(value=int(one)):
                self.has_16_bits |= one in _ENDS_OF_16_BITS
                return whole(int(one))
            case ast.Name(id=name):
                return self._named(name, mask)
            case ast.Attribute(value=ast.Name(id=name), attr=axis) if f"{name}.{axis}" in self._indices:
                return self._indices[f"{name}.{axis}"]
            case ast.Attribute(value=value):
                self._of(value, mask)
            case ast.Subscript():
                place = self._place(node, mask)
                if place is not None and place.extents:
                    return place
                if place is not None:
                    self._access(place, mask, is_read=True)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(left, op, right, mask)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self._of(operand, mask))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                smaller, larger = self._of(left, mask), self._of(right, mask)
                if isinstance(smaller, Value) and isinstance(larger, Value):
                    return compared(smaller, op, larger)
            case ast.BoolOp() | ast.IfExp():
                return self._chosen(node, mask)
            case ast.Call():
                return self._called(node, mask)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for part in parts:
                    self._of(part, mask)
        return UNKNOWN

    def _named(self, name: str, mask: Mask) -> Value | Pointer:
        if name in self._frame.variables:
            return self._frame.variables[name]
        if name == "warpSize":
            return whole(32)
        if name not in self._outer:
            self._outer[name] = UNKNOWN
            meaning = self._source.code.meaning(name)
            if meaning is not None:
                node = parsed_expression(meaning)
                self._outer[name] = UNKNOWN if node is None else self._of(node, mask)
            elif name in self._variables:
                variable = self._variables[name]
                item = self._bytes(variable.type)
                texts = [parsed_expression(text) if text else None for text in variable.extents]
                extents = [None if text is None else self._number(text, mask) for text in texts]
                if extents:
                    size = item * math.prod(extent or 0 for extent in extents)
                    self._outer[name] = self._array(name, item, size, "source", extents)
                elif variable.value is not None:
                    self._outer[name] = self._converted(self._of(variable.value, mask), variable.type)
        return self._outer[name]

    def _binary(self, left: ast.expr, op: ast.operator, right: ast.expr, mask: Mask) -> Value | Pointer:
        first, second = self._of(left, mask), self._of(right, mask)
        if isinstance(second, Pointer) and isinstance(op, ast.Add):
            first, second = second, first
        if isinstance(first, Pointer):
            if isinstance(second, Pointer) or not isinstance(op, ast.Add | ast.Sub) or not first.item:
                if not isinstance(second, Pointer):
                    self.is_whole = False
                return UNKNOWN
            return self._moved(first, negative(second) if isinstance(op, ast.Sub) else second)
        return UNKNOWN if isinstance(second, Pointer) else arithmetic(op, first, second)

    def _unary(self, op: ast.unaryop, value: Value | Pointer) -> Value:
        if isinstance(value, Pointer) or not value.kind:
            return UNKNOWN
        if isinstance(op, ast.Not):
            return Value("i32", (value.data == 0).astype(np.int64), value.known)
        if isinstance(op, ast.USub):
            return negative(value)
        if isinstance(op, ast.Invert):
            return arithmetic(ast.BitXor(), value, whole(-1))
        return value

    def _split(self, test: ast.expr, mask: Mask) -> tuple[Mask, Mask]:
        """The threads for which a condition holds, and the others."""
        value = self._of(test, mask)
        if isinstance(value, Pointer) or not value.kind:
            nobody = np.zeros(self._lanes, np.bool_)
            return Mask(nobody, mask.may), Mask(nobody, mask.may)
        yes, known = value.data != 0, value.known
        if value.data.size == 1 and known.all() and mask.sure.any():
            self.ways.add((_text(test), bool(yes.all())))
        return (
            Mask(mask.sure & known & yes, mask.may & (yes | ~known)),
            Mask(mask.sure & known & ~yes, mask.may & ~(yes & known)),
        )

    def _chosen(self, node: ast.BoolOp | ast.IfExp, mask: Mask) -> Value | Pointer:
        """The value of an expression of which not every part is evaluated."""
        if isinstance(node, ast.IfExp):
            yes, no = self._split(node.test, mask)
            first = self._of(node.body, yes) if yes.may.any() else None
            second = self._of(node.orelse, no) if no.may.any() else None
            if first is None or second is None:
                return first or second or UNKNOWN
            if isinstance(first, Value) and isinstance(second, Value):
                kind = common(first, second)
                first, second = converted(first, kind), converted(second, kind)
            return self._merged(self._merged(UNKNOWN, second, no), first, yes)
        is_and = isinstance(node.op, ast.And)
        settled = np.zeros(self._lanes, np.bool_)  # by a part that decides
        known = np.ones(self._lanes, np.bool_)
        for part in node.values:
            yes, no = self._split(part, mask)
            stops, mask_on = (no, yes) if is_and else (yes, no)
            settled |= mask.may & ~mask_on.may & stops.may
            known &= ~(yes.may & no.may)
            mask = mask_on
            if not mask.may.any():
                break
        data = settled != is_and
        return Value("i32", data.astype(np.int64), known | settled)

    def _called(self, node: ast.Call, mask: Mask) -> Value | Pointer:
        match node:
            case ast.Call(func=ast.Name(id="cast"), args=[ast.Constant(value=str(kind)), value]):
                found = self._of(value, mask)
                return found if isinstance(found, Pointer) else self._converted(found, kind)
            case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Constant(value=str(kind))]):
                size = self._bytes(kind)
                return whole(size, "u64") if size else UNKNOWN
            case ast.Call(func=ast.Name(id="pointer_cast"), args=[ast.Constant(value=kind), value]):
                found = self._of(value, mask)
                item = self._bytes(str(kind))
                return replace(found, item=item, extents=(0,)) if isinstance(found, Pointer) else UNKNOWN
            case ast.Call(func=ast.Name(id="address_of"), args=[ast.Subscript() as inside]):
                place = self._place(inside, mask)
                return UNKNOWN if place is None else replace(place, extents=place.extents or (0,))
            case ast.Call(func=ast.Name(id="address_of"), args=[ast.Name(id=name)]):
                found = self._named(name, mask)
                if not isinstance(found, Pointer):
                    self._frame.pinned.add(name)
                    self._assign(name, UNKNOWN, mask)
                return found if isinstance(found, Pointer) else _OF_VARIABLE
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute):
            self._of(node.func.value, mask)
        if name in BARRIERS:
            self._barrier(mask)
            return UNKNOWN
        given = [self._of(argument, mask) for argument in node.args]
        if name in self._functions and self._is_understood(name):
            names = [argument.id if isinstance(argument, ast.Name) else "" for argument in node.args]
            return self._call(self._functions[name], given, mask, {}, names)
        if name in EXACT and all(isinstance(one, Value) for one in given):
            return EXACT[name](*given) if len(given) == ARGUMENTS[name] else UNKNOWN
        is_read = "atomic" in name.lower() or name in LOADS
        is_written = "atomic" in name.lower() or name in STORES
        for number, (one, part) in enumerate(zip(given, node.args, strict=True)):
            if isinstance(one, Pointer):
                if number == 0 and (is_read or is_written):
                    self._access(one, mask, is_read=is_read, is_written=is_written)
                elif one.memory is not None:
                    one.memory.is_lost = True
                else:
                    self.is_whole = False
            elif isinstance(part, ast.Name) and self._source.dialect != "opencl":
                self._assign(part.id, UNKNOWN, mask)  # it may be passed by reference
        return UNKNOWN

    def _is_understood(self, name: str) -> bool:
        if name not in self._bodies:
            try:
                self._bodies[name] = exact_body(self._functions[name])
            except NotUnderstood:
                self._bodies[name] = []
                del self._functions[name]
        return name in self._functions

    # types

    def _bytes(self, kind: str) -> int:
        """The size of a type; 0 if it is not known."""
        return self._types.bytes_of(self._frame.types.get(kind, kind)) or 0

    def _converted(self, value: Value | Pointer, kind: str) -> Value | Pointer:
        """A value as a variable of a type holds it."""
        if isinstance(value, Pointer) or not kind or kind == "auto":
            return value
        plain = self._types.resolved(self._frame.types.get(kind, kind))
        dtype = SCALARS.get(plain, "")
        self.has_16_bits |= dtype in ("int16", "uint16")
        if not value.kind:
            return value
        if plain == "bool":
            return Value("i32", (value.data != 0).astype(np.int64), value.known)
        if "int" not in dtype:
            return UNKNOWN
        bits, is_unsigned = 8 * element_bytes(dtype), dtype.startswith("u")
        if bits >= 32 and self._is_wide:
            return converted(value, "i64")
        if bits >= 32:
            return converted(value, f"{'u' if is_unsigned else 'i'}{bits}")
        data = value.data & ((1 << bits) - 1)
        half = 1 << (bits - 1)
        data = data if is_unsigned else (data ^ half) - half
        self.cuts_to_16_bits |= bits == 16 and bool((value.known & (data != value.data)).any())
        return Value("i32", data, value.known)

    def _number(self, node: ast.expr, mask: Mask) -> int | None:
        """What is one number in all threads; None if it is not known."""
        value = self._of(node, mask)
        if isinstance(value, Pointer) or not value.kind or not value.known.all():
            return None
        lowest, highest = int(value.data.min()), int(value.data.max())
        return lowest if lowest == highest >= 0 else None


def _of_lane(rows: Ints, lane: int) -> tuple[int, int, int]:
    """The indices of one thread, or of its block, along x, y and z."""
    x, y, z = rows[:, lane].tolist()
    return x, y, z
