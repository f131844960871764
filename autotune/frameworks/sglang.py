"""The files of SGLang's kernels in Triton, as version 0.5.23 reads them: fused MoE, and products of matrices.

The products have scales by block.
"""

from __future__ import annotations

from collections.abc import Iterator

from autotune.frameworks.config_file import (
    WITHOUT_FLOAT8,
    Entry,
    Format,
    Shape,
    entry_of,
    in_loops,
    not_dividing,
)
from autotune.frameworks.vllm import is_tried_product, product_default

_BLOCKS = ("fp8_w8a8", "int8_w8a8")


def _device(name: str) -> str:
    return name.replace(" ", "_")


def _moe_default(shape: Shape, tokens: int) -> Entry | None:
    if shape.quantization == "fp8_w8a8" and not shape.block:
        return None  # it depends on the GPU's shared memory
    if shape.quantization == "fp8_w8a8" and shape.block:
        tile = (64, *shape.block, 32)
    else:
        tile = (16, 32, 64, 1) if tokens <= shape.sizes["E"] else (64, 64, 32, 8)
    return entry_of(tile, 4, 3)  # Triton's own numbers of warps and stages where it names none


def _is_tried_moe(shape: Shape, entry: Entry) -> bool:
    _, columns = shape.block or (1, 1)
    tile = int(entry["BLOCK_SIZE_K"])
    return in_loops(entry) and (tile % columns == 0 or columns % tile == 0)


def _unread_moe(shape: Shape, architecture: str) -> str:
    if shape.quantization in ("int4_w4a16", "int8_w8a16"):
        return "SGLang takes Marlin for most of these weights"
    if architecture in ("sm_100", "sm_103"):
        return "SGLang takes FlashInfer for most models on this GPU, unless --moe-runner-backend is triton"
    if architecture in WITHOUT_FLOAT8 and shape.quantization == "fp8_w8a8":
        return "this GPU has no float8: SGLang takes Marlin"
    return ""


def _unread_product(shape: Shape, architecture: str) -> str:
    if shape.quantization == "int8_w8a8":
        return ""
    if architecture in ("sm_90", "sm_100", "sm_103", "sm_120"):
        return (
            "SGLang takes DeepGEMM, FlashInfer or CUTLASS for this product on this GPU, unless told otherwise"
        )
    return "this GPU has no float8: SGLang takes Marlin" if architecture in WITHOUT_FLOAT8 else ""


def _refused_product(shape: Shape, entry: Entry) -> Iterator[str]:
    columns = shape.sizes.get("group_k", 0)
    tile = int(entry["BLOCK_SIZE_K"])
    if columns and columns % tile and tile > columns:
        yield f"BLOCK_SIZE_K={tile} is larger than the block of {columns}: results are wrong"


MOE = Format(
    name="sglang-moe",
    package="sglang",
    folder="srt/layers/moe/moe_runner/triton_utils",
    subfolder="configs/triton_{version}",
    sizes=("E", "N"),
    separator=", ",
    asked=("", "float32", "int4_w4a16", "int8_w8a16", *_BLOCKS),
    asked_blocks=_BLOCKS,
    device=_device,
    default=_moe_default,
    is_tried=_is_tried_moe,
    unread=_unread_moe,
    refused=not_dividing,
)
PRODUCT = Format(
    name="sglang-w8a8",
    package="sglang",
    folder="kernels/ops/gemm/configs",
    sizes=("N", "K"),
    separator=", ",
    asked_blocks=_BLOCKS,
    device=_device,
    default=lambda shape, _: product_default(shape, 3),
    is_tried=is_tried_product,
    unread=_unread_product,
    refused=_refused_product,
)
