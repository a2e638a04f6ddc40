"""Triton's exhaustive search over the configurations of `exactile bench tuning`: softmax and a product of `f32`.

Usage: triton_autotune.py ROWS COLUMNS EXTENT; prints a list of what it found as JSON. The cache of compiled kernels is
empty at first, as on the other side.
"""

import json
import os
import sys
import tempfile
import time

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-autotune-")

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

MULTIPROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count

SOFTMAX = [
    triton.Config({"PROGRAMS": programs, "STAGES": stages}, num_warps=warps, num_stages=stages)
    for warps in [4, 8, 16, 2, 32]
    for stages in [2, 1, 3]
    for programs in [2, 1, 4, 8]
]

MATMUL = [
    triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
    for bm, bn in [(64, 64), (128, 64), (64, 32), (32, 64), (32, 32)]
    for bk in [32, 16]
    for warps in [4, 8, 2]
    for stages in [3, 2]
]


@triton.autotune(configs=SOFTMAX, key=["rows", "columns"])
@triton.jit
def softmax(
    x,
    out,
    rows,
    columns,
    BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    STAGES: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        start = row * columns
        tile = tl.load(x + start + offsets, mask=mask, other=float("-inf"))
        weights = tl.exp(tile - tl.max(tile, axis=0))
        tl.store(out + start + offsets, weights / tl.sum(weights, axis=0), mask=mask)


@triton.autotune(configs=MATMUL, key=["m", "n", "k"])
@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        rk = start + tl.arange(0, BK)
        left = tl.load(
            a + rm[:, None] * k + rk[None, :], mask=(rm[:, None] < m) & (rk[None, :] < k), other=0.0
        )
        right = tl.load(
            b + rk[:, None] * n + rn[None, :], mask=(rk[:, None] < k) & (rn[None, :] < n), other=0.0
        )
        sums = tl.dot(left, right, sums, input_precision="ieee")
    tl.store(c + rm[:, None] * n + rn[None, :], sums, mask=(rm[:, None] < m) & (rn[None, :] < n))


def tuned(name, kernel, launch, configurations):
    """Launches once, which searches, and says how long that took and what it found."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    launch()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return {
        "kernel": name,
        "seconds": seconds,
        "configurations": len(configurations),
        "chosen": str(kernel.best_config),
        "ms": triton.testing.do_bench(launch, warmup=25, rep=200, return_mode="median"),
    }


def main():
    rows, columns, extent = (int(text) for text in sys.argv[1:4])
    x = torch.randn(rows, columns, device="cuda")
    out = torch.empty_like(x)
    block = triton.next_power_of_2(columns)

    def softmax_grid(meta):
        return (min(rows, meta["PROGRAMS"] * MULTIPROCESSORS),)

    found = [
        tuned(
            "softmax",
            softmax,
            lambda: softmax[softmax_grid](x, out, rows, columns, BLOCK=block),
            SOFTMAX,
        )
    ]
    torch.testing.assert_close(out, torch.softmax(x, dim=1))
    a = torch.randn(extent, extent, device="cuda")
    b = torch.randn(extent, extent, device="cuda")
    c = torch.empty_like(a)

    def matmul_grid(meta):
        return (triton.cdiv(extent, meta["BM"]), triton.cdiv(extent, meta["BN"]))

    found.append(
        tuned(
            "matmul",
            matmul,
            lambda: matmul[matmul_grid](a, b, c, extent, extent, extent),
            MATMUL,
        )
    )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.testing.assert_close(c, a @ b, rtol=1e-3, atol=1e-3)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
