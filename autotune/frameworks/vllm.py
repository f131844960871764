"""The files of vLLM's kernels in Triton, as version 0.33 reads them: fused MoE, and products of matrices.

The products are of float8 with scales by block.
"""

from __future__ import annotations

from autotune.frameworks.config_file import (
    WITHOUT_FLOAT8,
    Entry,
    Format,
    Shape,
    entry_of,
    in_loops,
    not_dividing,
    spelling,
)

_FLOAT8 = ("fp8_w8a8", "fp8_w8a16")


def _device(name: str) -> str:
    """All variants of the H200 read the same files."""
    spelt = spelling(name)
    return "NVIDIA_H200" if "H200" in spelt.split("_") else spelt


def _moe_default(shape: Shape, tokens: int) -> Entry | None:
    if not shape.device.startswith("NVIDIA") or shape.quantization not in ("", "fp8_w8a8", "float32"):
        return None
    if shape.block and shape.quantization == "fp8_w8a8":
        rows, columns = shape.block
        is_small = tokens <= 8 and rows % 64 == 0
        tile = (16 if tokens <= 64 else 64, 64 if is_small else rows, columns)
        group, warps, stages = 1 if tokens <= 16 else 32, 4, 4 if is_small and tokens <= 4 else 3
    else:
        height = next((size for most, size in ((32, 16), (96, 32), (512, 64)) if tokens <= most), 128)
        is_wide = shape.quantization == "fp8_w8a8" or tokens <= 64
        tile = (height, 64 if tokens <= 64 else 128, 128 if is_wide else 64)
        group = 16 if tokens // shape.sizes["E"] > 128 else 1
        warps, stages = 4 if tokens <= 128 else 8, 4 if tokens <= 32 else 3
    return entry_of((*tile, group), warps, stages)


def _is_tried_moe(shape: Shape, entry: Entry) -> bool:
    """With blocks the tuner wants whole ones in a tile, although the kernel needs none."""
    rows, columns = shape.block or (1, 1)
    whole = not (int(entry["BLOCK_SIZE_N"]) % rows or int(entry["BLOCK_SIZE_K"]) % columns)
    return in_loops(entry) and whole


def _launched_moe(shape: Shape, entry: Entry) -> Entry:
    """A step over K is not longer than a block of scales."""
    if shape.block is None:
        return entry
    return {**entry, "BLOCK_SIZE_K": min(int(entry["BLOCK_SIZE_K"]), *shape.block)}


def _unread_moe(shape: Shape, architecture: str) -> str:
    if shape.quantization in ("int4_w4a16", "int8_w8a16"):
        return "vLLM takes Marlin for these weights, unless told otherwise"
    if architecture in ("sm_100", "sm_103"):
        return "vLLM takes FlashInfer or DeepGEMM on this GPU, unless told otherwise"
    if architecture == "sm_90" and shape.quantization == "fp8_w8a8" and not shape.block:
        return "vLLM takes CUTLASS for fp8 without blocks on this GPU, unless told otherwise"
    if architecture in WITHOUT_FLOAT8 and shape.quantization in _FLOAT8:
        return "this GPU has no float8: vLLM takes Marlin"
    return ""


def is_tried_product(_shape: Shape, entry: Entry) -> bool:
    """True if the tuner tries a configuration."""
    return in_loops(entry, (64, 128))


def product_default(shape: Shape, stages: int) -> Entry | None:
    """The one configuration without a file, which AMD's GPUs change."""
    if shape.block is None or not shape.device.startswith("NVIDIA"):
        return None
    return entry_of((64, *shape.block, 32), 4, stages)


def _unread_product(_shape: Shape, architecture: str) -> str:
    if architecture in ("sm_90", "sm_100", "sm_103", "sm_120"):
        return "vLLM takes DeepGEMM or CUTLASS for this product on this GPU, unless told otherwise"
    return "this GPU has no float8: vLLM takes Marlin" if architecture in WITHOUT_FLOAT8 else ""


MOE = Format(
    name="vllm-moe",
    package="vllm",
    folder="model_executor/layers/fused_moe/configs",
    sizes=("E", "N"),
    separator=",",
    heads=("triton_version",),
    asked=("", "float32", "int4_w4a16", "int8_w8a16", *_FLOAT8),
    asked_blocks=_FLOAT8,
    device=_device,
    default=_moe_default,
    is_tried=_is_tried_moe,
    unread=_unread_moe,
    launched=_launched_moe,
)
PRODUCT = Format(
    name="vllm-w8a8",
    package="vllm",
    folder="model_executor/layers/quantization/utils/configs",
    sizes=("N", "K"),
    separator=",",
    asked_blocks=("fp8_w8a8",),
    device=spelling,
    default=lambda shape, _: product_default(shape, 2),
    is_tried=is_tried_product,
    unread=_unread_product,
    refused=not_dividing,
)
