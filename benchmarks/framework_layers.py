"""vLLM's fused MoE layer and its product of float8, on tensors of PyTorch, launched by vLLM's own functions.

The functions are taken out of the package's files: to import it needs all that it depends on. What they ask
of the rest of vLLM is answered as for an NVIDIA GPU with the usual settings.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

Config = Mapping[str, Any]
Call = Callable[[], Any]  # launches; returns the output tensors

MOE = "vllm/model_executor/layers/fused_moe/fused_moe.py"
MOE_UTILS = "vllm/model_executor/layers/fused_moe/utils.py"
PRODUCT = "vllm/model_executor/layers/quantization/utils/fp8_utils.py"
WANTED = {
    MOE: ("write_zeros_to_output", "fused_moe_kernel", "invoke_fused_moe_triton_kernel"),
    MOE_UTILS: ("enable_swap_ab",),
    PRODUCT: ("_w8a8_triton_block_scaled_mm", "w8a8_triton_block_scaled_mm"),
}
PRELUDE = """\
from __future__ import annotations
import functools
import threading
from types import SimpleNamespace
from typing import Any
import torch
import triton
import triton.language as tl

def _is_capability(number):
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == divmod(number, 10)

current_platform = SimpleNamespace(is_rocm=lambda: False, is_device_capability=_is_capability)
envs = SimpleNamespace(VLLM_BATCH_INVARIANT=False)
resolve_moe_use_td = lambda: False
warn_if_moe_use_td_ineffective = lambda *_, **__: None
CHOSEN = threading.local()  # the launcher looks its configuration up
get_w8a8_block_fp8_configs = lambda *_: {1: CHOSEN.config}
"""
INIT_ROWS = 2**22  # elements of a weight that are drawn at once, at least one row of them
SPARSE = 4  # times the rows are at most the experts: a block for each row


def vllm_functions(site: Path, folder: Path) -> ModuleType:
    """A module with vLLM's functions, written to a folder, because Triton reads their source there."""
    parts = [PRELUDE]
    for file, wanted in WANTED.items():
        text = (site / file).read_text(encoding="utf-8")
        lines, found = text.splitlines(), {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name in wanted:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
        if missing := {*wanted} - {*found}:
            raise SystemExit(f"{site / file}: has no {', '.join(sorted(missing))}; expected vLLM 0.33")
        parts += found.values()
    path = folder / "vllm_functions.py"
    path.write_text("\n\n\n".join(parts) + "\n", encoding="utf-8")
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class Product:
    """C = A B of float8 with scales for blocks of 128 times 128."""

    def __init__(self, functions: ModuleType, sizes: Mapping[str, int], device: str) -> None:
        """Make the weights, which all numbers of tokens share."""
        self._functions, self._sizes, self._device = functions, sizes, device
        torch = functions.torch
        self._type = torch.bfloat16
        n, k = sizes["N"], sizes["K"]
        self._weights = drawn(torch, (n, k), torch.float8_e4m3fn, device)
        self._scales = scales(torch, (blocks(n), blocks(k)), device)

    def inputs(self, tokens: int) -> Any:
        """The activations for a number of tokens."""
        torch, k = self._functions.torch, self._sizes["K"]
        left = drawn(torch, (tokens, k), torch.float8_e4m3fn, self._device)
        return left, scales(torch, (tokens, blocks(k)), self._device)

    def call(self, inputs: Any, config: Config) -> Call:
        """The launch with a configuration."""
        left, left_scales = inputs

        def run() -> Any:
            self._functions.CHOSEN.config = dict(config)
            multiply = self._functions.w8a8_triton_block_scaled_mm
            return (multiply(left, self._weights, left_scales, self._scales, [128, 128], self._type),)

        return run


class Moe:
    """Both products of a fused MoE layer, in float8 with scales by block or in bfloat16."""

    def __init__(
        self, functions: ModuleType, sizes: Mapping[str, int], device: str, *, is_float8: bool
    ) -> None:
        """Make the weights, which all numbers of tokens share."""
        self._functions, self._sizes, self._device = functions, sizes, device
        torch = functions.torch
        self._type, self._is_float8 = torch.bfloat16, is_float8
        self._stored = torch.float8_e4m3fn if is_float8 else torch.bfloat16
        e, n, k = (sizes[name] for name in "ENK")
        self._w13 = drawn(torch, (e, 2 * n, k), self._stored, device)
        self._w2 = drawn(torch, (e, k, n), self._stored, device)
        self._w13_scales = self._scales((e, blocks(2 * n), blocks(k)))
        self._w2_scales = self._scales((e, blocks(k), blocks(n)))

    def inputs(self, tokens: int) -> Any:
        """Activations, and the experts that the tokens go to, uniformly."""
        torch, device = self._functions.torch, self._device
        n, k, chosen = (self._sizes[name] for name in ("N", "K", "top_k"))
        rows = tokens * chosen
        x, h = (drawn(torch, shape, self._stored, device) for shape in ((tokens, k), (rows, n)))
        x_scales, h_scales = self._scales((tokens, blocks(k))), self._scales((rows, blocks(n)))
        experts = torch.rand(tokens, self._sizes["E"]).topk(chosen).indices
        weights = torch.rand(tokens, chosen, device=device)
        outputs = (
            torch.empty(tokens, chosen, 2 * n, dtype=self._type, device=device),
            torch.empty(tokens, chosen, k, dtype=self._type, device=device),
        )
        return x, x_scales, h, h_scales, experts, weights, outputs

    def call(self, inputs: Any, config: Config) -> Call:
        """The launches with a configuration, whose BLOCK_SIZE_M the order of the rows depends on."""
        tl = self._functions.tl
        x, x_scales, h, h_scales, experts, weights, (gate_up, down) = inputs
        route = self._route(experts, int(config["BLOCK_SIZE_M"]))
        usual = dict(config)
        block = [128, 128] if self._is_float8 else None

        def product(left: Any, left_scales: Any, right: Any, right_scales: Any, out: Any, top_k: int) -> None:
            self._functions.invoke_fused_moe_triton_kernel(
                left,
                right,
                out,
                left_scales,
                right_scales,
                weights,
                *route,
                top_k == 1,
                top_k,
                usual,
                compute_type=tl.bfloat16,
                use_fp8_w8a8=self._is_float8,
                use_int8_w8a8=False,
                use_int8_w8a16=False,
                use_int4_w4a16=False,
                per_channel_quant=False,
                block_shape=block,
            )

        def run() -> Any:
            product(x, x_scales, self._w13, self._w13_scales, gate_up, self._sizes["top_k"])
            product(h, h_scales, self._w2, self._w2_scales, down, 1)
            return gate_up, down

        return run

    def _scales(self, shape: tuple[int, ...]) -> Any:
        return scales(self._functions.torch, shape, self._device) if self._is_float8 else None

    def _route(self, experts: Any, height: int) -> tuple[Any, Any, Any]:
        """Rows by expert, each expert's padded to whole blocks; a few rows have a block each."""
        torch, count = self._functions.torch, self._sizes["E"]
        flat = experts.reshape(-1)
        rows = flat.numel()

        def whole(values: Any) -> Any:
            return values.to(torch.int32).to(self._device)

        if rows * SPARSE <= count:
            return None, whole(flat), whole(torch.tensor([rows * height]))
        padded = rows + count * (height - 1)
        if rows < count:
            padded = min(padded, rows * height)
        order = torch.full((padded,), rows)
        of_block = torch.zeros(-(-padded // height))
        start = 0
        for expert in range(count):
            mine = (flat == expert).nonzero().reshape(-1)
            order[start : start + len(mine)] = mine
            end = start + -(-len(mine) // height) * height
            of_block[start // height : end // height] = expert
            start = end
        return whole(order), whole(of_block), whole(torch.tensor([start]))


def blocks(extent: int) -> int:
    """Number of blocks with a scale."""
    return -(-extent // 128)


def drawn(torch: Any, shape: tuple[int, ...], dtype: Any, device: str) -> Any:
    """Normal numbers; float8 cannot be drawn as a whole without four times the memory."""
    values = torch.empty(shape, dtype=dtype, device=device)
    flat = values.view(-1, shape[-1])
    step = max(1, INIT_ROWS // shape[-1])
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        part.copy_(torch.randn(part.shape, device=device).to(dtype))
    return values


def scales(torch: Any, shape: tuple[int, ...], device: str) -> Any:
    """Scales between a half and two."""
    return torch.rand(shape, device=device) * 1.5 + 0.5
