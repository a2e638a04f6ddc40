#!/usr/bin/env python3
"""The host's side of launches of PyTorch and Triton, measured as `exactile bench launch` measures its own.

    launch.py [BATCHES]

Prints one JSON object: libraries with versions, rows (name, library, median_us, least_us, times), notes on what is
missing. A launch is timed in batches of 50 in a row, with the device waited for in between; a graph has 1,000 kernels that
do nothing, one after the other.
"""

import json
import statistics
import sys
import time

BATCH, WARM_UP, LENGTH, CHAIN, REPLAYS = 50, 3, 4096, 1000, 10


def row(name, library, seconds):
    return {"name": name, "library": library, "median_us": statistics.median(seconds) * 1e6,
            "least_us": min(seconds) * 1e6, "times": len(seconds)}


def batches(torch, launch, count):
    """Seconds of a launch, batch by batch."""
    times = []
    for _ in range(count + WARM_UP):
        begin = time.perf_counter()
        for _ in range(BATCH):
            launch()
        times.append((time.perf_counter() - begin) / BATCH)
        torch.cuda.synchronize()
    return times[WARM_UP:]


def graph_rows(torch, name, library, launch, count):
    """A node on the device, and the call of a replay."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CHAIN):
            launch()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    on_device, on_host = [], []
    for _ in range(-(-count // 4)):
        torch.cuda.synchronize()
        start.record()
        begin = time.perf_counter()
        for _ in range(REPLAYS):
            graph.replay()
        on_host.append((time.perf_counter() - begin) / REPLAYS)
        end.record()
        end.synchronize()
        on_device.append(start.elapsed_time(end) / 1e3 / REPLAYS / CHAIN)
    return [row(f"graph of 1,000 {name}, a node on the device", library, on_device),
            row(f"graph of 1,000 {name}, the call of a replay", library, on_host)]


def measure(torch, triton, count):
    import launch_kernels as kernels

    x, y = (torch.full((LENGTH,), float(value), device="cuda") for value in (1, 2))
    out = torch.empty_like(x)
    grid = (triton.cdiv(LENGTH, 1024),)
    square = [each.view(64, 64) for each in (x, y, out)]

    def add():
        torch.add(x, y, out=out)

    def triton_add():
        kernels.add[grid](x, y, out, LENGTH, BLOCK=1024)

    def triton_ten():
        kernels.scale_and_add[(1,)](*square, 1.0, 2.0, 3.0, 4.0, 0, 0, 1, 64, 64)

    def empty():
        kernels.nothing[(1,)]()

    rows, notes = [], []
    rows.append(row("torch.add into an array", "torch", batches(torch, add, count)))
    rows.append(row("torch add, a new array", "torch", batches(torch, lambda: x + y, count)))
    rows.append(row("vector add", "triton", batches(torch, triton_add, count)))
    rows.append(row("three arrays of twelve", "triton", batches(torch, triton_ten, count)))
    for name, library, launch in [("empty kernels", "triton", empty),
                                  ("sleeps of no cycles", "torch", lambda: torch.cuda._sleep(0))]:
        try:
            rows += graph_rows(torch, name, library, launch, count)
        except Exception as error:  # a figure of one way is enough
            notes.append(f"graph of {name}: {type(error).__name__}: {str(error)[:200]}")
    return rows, notes


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    libraries, rows, notes = {}, [], []
    try:
        import torch
        import triton

        libraries = {"torch": torch.__version__, "triton": triton.__version__}
        if torch.cuda.is_available():
            rows, notes = measure(torch, triton, count)
        else:
            notes = ["torch: no GPU"]
    except ImportError as error:
        notes = [f"torch, triton: {error}"]
    print(json.dumps({"libraries": libraries, "rows": rows, "notes": notes}))


if __name__ == "__main__":
    main()
