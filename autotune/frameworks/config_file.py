"""The protocol of the formats: a file for each shape on a GPU, with an entry for each number of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from autotune.core import json_values as values
from autotune.core.records import Value
from autotune.processes.files import read_foreign

KEY = "M"  # the size that is the key of an entry: the number of tokens
TOKENS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096)  # of all tuners
TILE = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M")  # every launcher reads them
OPTIONS = ("num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "grf_mode")
SWITCHES = ("SPLIT_K", "USE_TMA", "SWAP_AB")
BLOCKS = ("group_n", "group_k")  # sizes of a block with a scale of its own
WITHOUT_FLOAT8 = ("sm_75", "sm_80", "sm_86", "sm_87")
_NAME = (
    r"{first}=(\d+),{second}=(\d+),device_name=([^,]+?)(?:,dtype=([a-z0-9_]+?))?"
    r"(?:,block_shape=\[(\d+), ?(\d+)\])?((?:,per_channel_quant=True)?(?:_down)?)\.json"
)

Entry = Mapping[str, Value]


@dataclass(frozen=True)
class Shape:
    """The content of a file's name."""

    sizes: Mapping[str, int]  # the format's own, and BLOCKS where blocks have scales
    device: str  # as the framework writes it
    quantization: str  # such as `fp8_w8a8`; empty for 16 bits
    variant: str = ""  # what SGLang puts at the end

    @property
    def block(self) -> tuple[int, int] | None:
        """Rows and columns of a block with one scale."""
        return (self.sizes["group_n"], self.sizes["group_k"]) if "group_n" in self.sizes else None

    @property
    def operand_bytes(self) -> tuple[float, float]:
        """Of an element of activations and of weights."""
        known = {"": (2, 2), "bf16": (2, 2), "float32": (4, 4), "int4_w4a16": (2, 0.5)}
        known |= dict.fromkeys(("int8_w8a16", "fp8_w8a16"), (2, 1))
        return known.get(self.quantization, (1, 1))


@dataclass(frozen=True)
class ConfigFile:
    """The content of a file: entries by numbers of tokens, and what its head says."""

    entries: Mapping[int, Entry]
    head: Mapping[str, str] = field(default_factory=dict)


def nearest(keys: Sequence[int], tokens: int) -> int:
    """The key that a look-up takes, of ascending ones: the nearest, of two the smaller."""
    return min(keys, key=lambda key: abs(key - tokens))


def served(keys: Iterable[int]) -> dict[int, tuple[int, int | None]]:
    """The first and the last number of tokens for which `nearest` takes each key; None for all above."""
    known = sorted({*keys})
    lasts = [(low + high) // 2 for low, high in pairwise(known)]
    firsts = [1, *(last + 1 for last in lasts)]
    return dict(zip(known, zip(firsts, [*lasts, None], strict=True), strict=True))


@dataclass(frozen=True)
class Format:
    """Names and content of one kind of file, and what the framework makes of it."""

    name: str  # of `autotune export --format`
    package: str  # the framework's top package
    folder: str  # where its look-up reads files, inside the package
    sizes: tuple[str, str]  # in a file's name
    separator: str  # between the two numbers of a block
    asked_blocks: tuple[str, ...]  # quantizations that look-ups ask for with a block
    device: Callable[[str], str]  # the framework's spelling of a device's name
    default: Callable[[Shape, int], Entry | None]  # without a file, for so many tokens; None if not known
    is_tried: Callable[[Shape, Entry], bool]  # true if the framework's tuner tries a configuration
    unread: Callable[[Shape, str], str]  # why a file for this architecture is not read; empty if it is
    subfolder: str = ""  # below the folder; `{version}` is Triton's
    heads: tuple[str, ...] = ()  # keys that the look-up takes out before it reads numbers of tokens
    asked: tuple[str, ...] = ()  # quantizations that look-ups ask for without a block
    refused: Callable[[Shape, Entry], Iterable[str]] = lambda shape, entry: ()  # why a result is wrong
    launched: Callable[[Shape, Entry], Entry] = lambda shape, entry: entry  # as the launcher changes it

    def shape(self, name: str) -> Shape | None:
        """Read a file's name, in the spelling of any framework; None if it is of another kind."""
        match = re.fullmatch(_NAME.format(first=self.sizes[0], second=self.sizes[1]), name)
        if match is None or not (match[5] or self.asked):  # others' files have no block
            return None
        names = (*self.sizes, *BLOCKS) if match[5] else self.sizes
        numbers = [int(text) for text in match.group(1, 2, 5, 6) if text]
        return Shape(dict(zip(names, numbers, strict=True)), match[3], match[4] or "", match[7])

    def name_of(self, sizes: Mapping[str, int], device: str, quantization: str, variant: str = "") -> str:
        """The name that the framework's look-up asks for."""
        own = ",".join(f"{name}={sizes[name]}" for name in self.sizes)
        dtype = f",dtype={quantization}" if quantization else ""
        numbers = self.separator.join(str(sizes[name]) for name in BLOCKS if name in sizes)
        block = f",block_shape=[{numbers}]" if numbers else ""
        return f"{own},device_name={self.device(device)}{dtype}{block}{variant}.json"

    def ready_space(self, shape: Shape) -> str:
        """The kernel of the space that comes with autotune for files of a shape."""
        return self.name.replace("-", "_") + ("" if shape.quantization else "_16bit")

    def unasked(self, name: str) -> str:
        """The reason why no look-up asks for a file of this name; empty if one does."""
        shape = self.shape(name)
        if shape is None:
            return f"no look-up of {self.package} makes such a name"
        if shape.quantization not in (self.asked_blocks if shape.block else self.asked):
            blocks = " with a block_shape" if shape.block else ""
            return f"no look-up asks for dtype={shape.quantization or '(none)'}{blocks}"
        right = self.name_of(shape.sizes, shape.device, shape.quantization, shape.variant)
        return "" if name == right else f"no look-up asks for this name, but for {right}"

    def spells(self, path: Path) -> bool:
        """True if a path has what only this format writes: its block, or folders by Triton's version."""
        in_version = re.fullmatch(r"triton_[\d_]+", path.parent.name) is not None
        block = re.search(r"\[\d+(, ?)\d+\]", path.name)
        return block[1] == self.separator if block else in_version == bool(self.subfolder)

    def read(self, text: str) -> ConfigFile:
        """Read a file as the look-up does; raises Damaged or NoJson for what it would not accept."""
        data = values.load_object(text)
        head = {key: values.text(data[key], key) for key in self.heads if key in data}
        entries = {}
        for key, value in data.items():
            if key not in head:
                if not (key.isascii() and key.isdigit()):
                    raise values.Damaged(key, "a number of tokens as the key", key)
                entries[int(key)] = values.mapping_of(values.plain, values.name)(value, key)
        for tokens, entry in entries.items():
            for name in TILE:
                values.size(entry.get(name), f"{tokens}.{name}")
            for name in OPTIONS[:2]:
                values.integer(entry.get(name, 0), f"{tokens}.{name}")
        if not entries:
            raise values.Damaged("", "an entry for a number of tokens", "none")
        return ConfigFile(entries, head)

    def text(self, content: ConfigFile) -> str:
        """The text of a file, as the framework's tuner writes it."""
        entries = {str(tokens): dict(content.entries[tokens]) for tokens in sorted(content.entries)}
        return json.dumps({**content.head, **entries}, indent=4) + "\n"


def load(format_: Format, path: Path) -> ConfigFile:
    """Read a file; raises InputError."""
    return read_foreign(path, format_.read, f"{format_.package} would not read it")


def quantization_of(sizes: Mapping[str, int]) -> str:
    """The quantization of a file's name, unless another one is named."""
    return "fp8_w8a8" if BLOCKS[0] in sizes else ""


def is_power_of_two(value: object) -> bool:
    """True for 1, 2, 4 and so on."""
    return type(value) is int and value > 0 and value & (value - 1) == 0


def spelling(name: str) -> str:
    """A device's name as part of a file's name."""
    return re.sub(r"[\s/]+", "_", name)


def in_loops(entry: Entry, depths: tuple[int, ...] = (64, 128, 256)) -> bool:
    """True for what the tuners of these kernels loop over; `depths` are those of BLOCK_SIZE_K."""
    loops = {
        "BLOCK_SIZE_M": (16, 32, 64, 128, 256),
        "BLOCK_SIZE_N": (32, 64, 128, 256),
        "BLOCK_SIZE_K": depths,
        "GROUP_SIZE_M": (1, 16, 32, 64),
        "num_warps": (4, 8),
        "num_stages": (2, 3, 4, 5),
    }
    return all(entry.get(name) in values_ for name, values_ in loops.items())


def entry_of(tile: tuple[int, ...], warps: int, stages: int) -> Entry:
    """An entry with the usual fields; `tile` in the order of TILE."""
    return dict(zip((*TILE, "num_warps", "num_stages"), (*tile, warps, stages), strict=True))


def not_dividing(shape: Shape, entry: Entry) -> Iterator[str]:
    """The reason why a tile that is not a part of a block of scales gives wrong results; none for others."""
    _, columns = shape.block or (0, 0)
    if columns and columns % (tile := int(entry["BLOCK_SIZE_K"])):
        yield f"BLOCK_SIZE_K={tile} does not divide the block of {columns}: results are wrong"
