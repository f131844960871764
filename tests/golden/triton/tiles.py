"""A matrix product as such files are written: a list from a function, a rule, strides, a launch."""

import torch
import triton
import triton.language as tl

assert torch.cuda.is_available()  # a file that cannot be imported here


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


def configurations():
    if not is_cuda():
        return []
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 32, "GROUP_M": 8}, num_stages=s, num_warps=w)
        for m, n, s, w in ((128, 256, 3, 8), (64, 256, 4, 4), (32, 64, 5, 2))
    ]


@triton.autotune(configs=configurations(), key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_m = tl.cdiv(M, BLOCK_M)
    first = pid // (GROUP_M * tiles_n) * GROUP_M
    height = min(tiles_m - first, GROUP_M)
    pid_m = first + (pid % (GROUP_M * tiles_n)) % height
    pid_n = (pid % (GROUP_M * tiles_n)) // height
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        else:
            left = tl.load(a_ptrs, mask=depth[None, :] < K - k * BLOCK_K, other=0.0)
            right = tl.load(b_ptrs, mask=depth[:, None] < K - k * BLOCK_K, other=0.0)
            total = tl.dot(left, right, total)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + stride_cm * rows[:, None] + stride_cn * columns[None, :]
    tl.store(c_ptrs, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]),)
    product[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride())
    return c


print(matmul(torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")))
