"""The files of SGLang's fused MoE kernel in Triton, as version 0.5.23 reads them."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.frameworks.config_file import Entry, Format, Shape, entry_of, in_loops

_BLOCKS = ("fp8_w8a8", "int8_w8a8")


def _default(shape: Shape, tokens: int) -> Entry | None:
    if shape.quantization == "fp8_w8a8" and not shape.block:
        return None  # it depends on the GPU's shared memory
    if shape.quantization == "fp8_w8a8" and shape.block:
        tile = (64, *shape.block, 32)
    else:
        tile = (16, 32, 64, 1) if tokens <= shape.sizes["E"] else (64, 64, 32, 8)
    return entry_of(tile, 4, 3)  # Triton's own numbers of warps and stages where it names none


def _is_tried(shape: Shape, entry: Entry) -> bool:
    _, columns = shape.block or (1, 1)
    tile = int(entry["BLOCK_SIZE_K"])
    return in_loops(entry) and (tile % columns == 0 or columns % tile == 0)


def _refused(shape: Shape, entry: Entry) -> Iterator[str]:
    _, columns = shape.block or (0, 0)
    if columns and columns % (tile := int(entry["BLOCK_SIZE_K"])):
        yield f"BLOCK_SIZE_K={tile} does not divide the block of {columns}: results are wrong"


def _unread(shape: Shape, architecture: str) -> str:
    if shape.quantization in ("int4_w4a16", "int8_w8a16"):
        return "SGLang takes Marlin for most of these weights"
    if architecture in ("sm_100", "sm_103"):
        return "SGLang takes FlashInfer for most models on this GPU, unless --moe-runner-backend is triton"
    if architecture in ("sm_75", "sm_80", "sm_86", "sm_87") and shape.quantization == "fp8_w8a8":
        return "this GPU has no float8: SGLang takes Marlin"
    return ""


FORMAT = Format(
    name="sglang-moe",
    package="sglang",
    folder="srt/layers/moe/moe_runner/triton_utils",
    subfolder="configs/triton_{version}",
    sizes=("E", "N"),
    separator=", ",
    heads=(),
    asked=("", "float32", "int4_w4a16", "int8_w8a16", *_BLOCKS),
    asked_blocks=_BLOCKS,
    device=lambda name: name.replace(" ", "_"),
    default=_default,
    is_tried=_is_tried,
    unread=_unread,
    refused=_refused,
)
