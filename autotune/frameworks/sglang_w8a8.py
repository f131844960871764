"""The files of SGLang's products of two matrices with scales by block, as version 0.5.23 reads them."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.frameworks import vllm_w8a8
from autotune.frameworks.config_file import Entry, Format, Shape


def _unread(shape: Shape, architecture: str) -> str:
    if shape.quantization == "int8_w8a8":
        return ""
    if architecture in ("sm_90", "sm_100", "sm_103", "sm_120"):
        return (
            "SGLang takes DeepGEMM, FlashInfer or CUTLASS for this product on this GPU, unless told otherwise"
        )
    if architecture in ("sm_75", "sm_80", "sm_86", "sm_87"):
        return "this GPU has no float8: SGLang takes Marlin"
    return ""


def _refused(shape: Shape, entry: Entry) -> Iterator[str]:
    columns = shape.sizes.get("group_k", 0)
    tile = int(entry["BLOCK_SIZE_K"])
    if columns and columns % tile and tile > columns:
        yield f"BLOCK_SIZE_K={tile} is larger than the block of {columns}: results are wrong"


FORMAT = Format(
    name="sglang-w8a8",
    package="sglang",
    folder="kernels/ops/gemm/configs",
    subfolder="",
    sizes=("N", "K"),
    separator=", ",
    heads=(),
    asked=(),
    asked_blocks=("fp8_w8a8", "int8_w8a8"),
    device=lambda name: name.replace(" ", "_"),
    default=lambda shape, _: vllm_w8a8.default(shape, 3),
    is_tried=vllm_w8a8.is_tried,
    unread=_unread,
    refused=_refused,
)
