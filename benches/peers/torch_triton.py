"""PyTorch and Triton on a GPU."""

import gc
import math
import time

from peers import Contestant

# As many bytes as the other side writes before each launch.
FLUSH = 512 << 20

try:
    import torch
    import triton

    import triton_kernels as kernels

    MISSING = [] if torch.cuda.is_available() else ["torch: no GPU"]
except ImportError as error:
    torch, MISSING = None, [f"torch, triton: {error}"]


def libraries():
    if MISSING:
        return {}, MISSING
    return {"torch": torch.__version__, "triton": triton.__version__}, []


class Clock:
    """Device time of a launch by events, after the caches were flushed."""

    def __init__(self):
        self.flush = torch.empty(FLUSH, dtype=torch.int8, device="cuda")
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time_ms(self, launch):
        self.flush.zero_()
        self.start.record()
        launch()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end)


class Recorded:
    """Launches that a graph replays, so that the host's work for each is not timed."""

    def __init__(self, launch, seconds):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            launch()
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self.launches, self.replay = 4, lambda: [launch() for _ in range(4)]
        once = self.measure(1) / 1e3
        self.launches = max(1, math.ceil(seconds / once))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(self.launches):
                launch()
        self.seconds, self.replay = self.launches * once, graph.replay

    def measure(self, replays):
        """Milliseconds of a launch."""
        self.start.record()
        for _ in range(replays):
            self.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) / (replays * self.launches)

    def time_ms(self, rest, untimed, timed):
        time.sleep(rest)
        for _ in range(math.ceil(untimed / self.seconds)):
            self.replay()
        return self.measure(math.ceil(timed / self.seconds))


def free():
    gc.collect()
    torch.cuda.empty_cache()


def copies(elements):
    x = torch.empty(elements, device="cuda")
    out = torch.empty_like(x)
    return [lambda: out.copy_(x)]


def dtype_of(name):
    return {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
            "f8e4m3": torch.float8_e4m3fn, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64}[name]


def uniform(*shape, dtype, low=-1.0, high=1.0):
    generator = torch.Generator("cuda").manual_seed(1)
    x = torch.empty(*shape, device="cuda").uniform_(low, high, generator=generator)
    return x.to(dtype)


def close(got, want, dtype):
    """Whether results agree with PyTorch's, by the tolerance of the Rust side."""
    tolerance = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}.get(dtype, 0)

    def check():
        expected = want()
        torch.testing.assert_close(got.view(expected.shape), expected, rtol=10 * tolerance,
                                   atol=tolerance, check_dtype=False)
    return check


def grid(**axes):
    """Every combination of the values of the axes."""
    configs = [{}]
    for name, values in axes.items():
        configs = [{**config, name: value} for config in configs for value in values]
    return configs


def near(target, values):
    """The values, those nearest to the target first: short of time, the last ones are not tried."""
    return sorted(values, key=lambda value: abs(math.log2(value / target)))


WARPS = [1, 2, 4, 8, 16, 32]


def likely(configs, elements, lane=32, most=64):
    """Those that give a lane 2 to 256 elements of the tile, the nearest to `lane` first, at most so
    many; `elements` says how many a tile has. Among equals the given order counts."""
    found = []
    for config in configs:
        held = elements(config) / (32 * config["num_warps"])
        if 2 <= held <= 256:
            found.append((abs(math.log2(held / lane)), config))
    return [config for _, config in sorted(found, key=lambda each: each[0])[:most]]


def power(n):
    return triton.next_power_of_2(n)


def multiprocessors():
    return torch.cuda.get_device_properties(0).multi_processor_count


def contestants(kernel, dtype, shape):
    make = globals().get(f"make_{kernel}")
    return make(dtype_of(dtype), *shape) if make else {}


def make_vector_add(dtype, n):
    x, y = uniform(n, dtype=dtype), uniform(n, dtype=dtype)
    out = torch.empty_like(x)

    def launch(BLOCK, num_warps):
        kernels.add[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK, num_warps=num_warps)
    return {
        "torch": Contestant(lambda: torch.add(x, y, out=out)),
        "triton": Contestant(launch, grid(BLOCK=near(1024, [512, 1024, 2048, 4096, 8192]),
                                          num_warps=near(4, [2, 4, 8, 16, 32])),
                             close(out, lambda: x + y, dtype)),
    }


def elementwise(function, *inputs):
    """PyTorch's function as it is, and compiled in f32 with the result rounded once."""
    compiled = torch.compile(
        lambda *inputs: function(*(x.float() for x in inputs)).to(inputs[0].dtype))
    return {
        "torch": Contestant(lambda: function(*inputs)),
        "torch_compile": Contestant(lambda: compiled(*inputs)),
    }


def activation(function):
    return lambda dtype, n: elementwise(function, uniform(n, dtype=dtype))


if not MISSING:
    functional = torch.nn.functional
    make_sigmoid = activation(torch.sigmoid)
    make_silu = activation(functional.silu)
    make_tanh = activation(torch.tanh)
    make_gelu = activation(functional.gelu)
    make_gelu_tanh = activation(lambda x: functional.gelu(x, approximate="tanh"))
    make_softplus = activation(functional.softplus)
    make_relu = activation(torch.relu)


def make_swiglu(dtype, n):
    gate, x = uniform(n, dtype=dtype), uniform(n, dtype=dtype)
    return elementwise(lambda gate, x: functional.silu(gate) * x, gate, x)


def make_softmax(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype)
    out = torch.empty_like(x)
    block = power(columns)

    def launch(programs, num_warps, num_stages):
        kernels.softmax[(min(programs, rows),)](
            x, out, rows, columns, BLOCK=block, STAGES=num_stages, num_warps=num_warps)

    def launch_rows(ROWS, num_warps):
        kernels.softmax_rows[(triton.cdiv(rows, ROWS),)](
            x, out, rows, columns, ROWS=ROWS, BLOCK=block, num_warps=num_warps)
    count = multiprocessors()
    check = close(out, lambda: torch.softmax(x, -1), dtype)
    configs = grid(num_warps=near(block / 512, [4, 8, 16, 32]), num_stages=[2, 1, 4],
                   programs=[rows, count * 2, count * 4, count * 8])
    # Pipelines are for loops.
    configs = [c for c in configs if c["programs"] != rows or c["num_stages"] == 2]
    found = {
        "torch": Contestant(lambda: torch.softmax(x, -1)),
        "triton": Contestant(launch, configs, check),
    }
    if block <= 4096:
        found["triton_rows"] = Contestant(
            launch_rows, grid(ROWS=[2, 4, 8], num_warps=[4, 8, 16, 32]), check)
    return found


def make_rope_by_table(dtype, batch, positions, heads, width):
    x = uniform(batch, positions, heads, width, dtype=dtype)
    half = width // 2
    scales = torch.arange(half, device="cuda") / half
    angles = torch.arange(positions, device="cuda")[:, None] * 10000.0 ** -scales
    cosines, sines = angles.cos()[None, :, None, :], angles.sin()[None, :, None, :]

    def turn(x, cosines, sines):
        a, b = x[..., :half].float(), x[..., half:].float()
        turned = torch.cat((a * cosines - b * sines, a * sines + b * cosines), -1)
        return turned.to(x.dtype)
    compiled = torch.compile(turn)
    return {
        "torch": Contestant(lambda: turn(x, cosines, sines)),
        "torch_compile": Contestant(lambda: compiled(x, cosines, sines)),
    }


def make_vector_add_small(dtype, n):
    x, y = uniform(n, dtype=dtype), uniform(n, dtype=dtype)
    out = torch.empty_like(x)
    return {"torch": Contestant(lambda: torch.add(x, y, out=out))}


def make_matmul(dtype, m, n, k):
    a, b = uniform(m, k, dtype=dtype), uniform(k, n, dtype=dtype)
    return {"torch": Contestant(lambda: torch.matmul(a, b))}


make_tensor_matmul = make_matmul
make_few_rows = make_matmul
make_persistent_matmul = make_matmul


def make_linear_gelu(dtype, m, n, k):
    x, weight, bias = uniform(m, k, dtype=dtype), uniform(n, k, dtype=dtype), uniform(n, dtype=dtype)
    layer = torch.nn.functional.linear
    return {
        "torch": Contestant(
            lambda: torch.nn.functional.gelu(layer(x, weight, bias), approximate="tanh")),
        "torch_fused": Contestant(
            lambda: torch._addmm_activation(bias, x, weight.t(), use_gelu=True)),
    }


def make_grouped_matmul(dtype, groups, m, n, k):
    x, weights = uniform(groups * m, k, dtype=dtype), uniform(groups, k, n, dtype=dtype)
    ends = torch.arange(1, groups + 1, device="cuda", dtype=torch.int32) * m
    return {"torch": Contestant(lambda: torch._grouped_mm(x, weights, offs=ends))}


def make_float8_matmul(dtype, m, n, k, fast=True):
    a, b = (uniform(rows, k, dtype=torch.float32).to(torch.float8_e4m3fn) for rows in (m, n))
    one = torch.ones((), device="cuda")

    def run():
        return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)
    return {"torch": Contestant(run)}


def make_float8_matmul_promoted(dtype, m, n, k):
    return make_float8_matmul(dtype, m, n, k, fast=False)


def make_block_scaled_matmul(dtype, m, n, k):
    a, b = (uniform(rows, k, dtype=torch.float32).to(torch.float8_e4m3fn) for rows in (m, n))
    # What it takes: the scales of rows behind each other, those of blocks of both along the terms.
    of_rows = uniform(k // 128, m, dtype=torch.float32, low=0.5, high=2.0).t()
    of_blocks = uniform(n // 128, k // 128, dtype=torch.float32, low=0.5, high=2.0).t()

    def run():
        return torch._scaled_mm(a, b.t(), of_rows, of_blocks, out_dtype=torch.bfloat16)
    return {"torch": Contestant(run)}


def make_scaled_matmul(dtype, m, n, k):
    a, b = (torch.randint(-128, 128, (rows, k), device="cuda", dtype=dtype) for rows in (m, n))
    of_rows, of_columns = (uniform(rows, dtype=torch.float32, low=0.5, high=2.0) for rows in (m, n))
    scaled = lambda sums: (sums.float() * of_rows[:, None] * of_columns).to(torch.bfloat16)
    compiled = torch.compile(scaled)
    return {"torch": Contestant(lambda: compiled(torch._int_mm(a, b.t())))}


def make_rows_matmul(dtype, m, n, k):
    if dtype == torch.int8:
        a, b = (torch.randint(-128, 128, (rows, k), device="cuda", dtype=dtype) for rows in (m, n))
        return {"torch": Contestant(lambda: torch._int_mm(a, b.t()))}
    a, b = (uniform(rows, k, dtype=dtype) for rows in (m, n))

    def run():
        torch.backends.cuda.matmul.allow_tf32 = True
        found = torch.matmul(a, b.t())
        torch.backends.cuda.matmul.allow_tf32 = False
        return found
    return {"torch": Contestant(run)}


def attention_backends(q, k, v, **options):
    def by(backend):
        def run():
            with torch.nn.attention.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)
        return Contestant(run)

    backend = torch.nn.attention.SDPBackend
    return {"cudnn": by(backend.CUDNN_ATTENTION), "flash": by(backend.FLASH_ATTENTION)}


def make_tensor_attention(dtype, heads, tokens, width, causal=False):
    q, k, v = (uniform(1, heads, tokens, width, dtype=dtype) for _ in range(3))
    return attention_backends(q, k, v, is_causal=causal)


def make_packed_attention(dtype, sequences, heads, tokens, width):
    # Sequences as an axis of their own, which costs no look at starts.
    q, k, v = (uniform(sequences, heads, tokens, width, dtype=dtype) for _ in range(3))
    return attention_backends(q, k, v, is_causal=True)


def make_decode_attention(dtype, sequences, heads, key_heads, keys, width):
    q = uniform(sequences, heads, 1, width, dtype=dtype)
    k, v = (uniform(sequences, key_heads, keys, width, dtype=dtype) for _ in range(2))
    return attention_backends(q, k, v, enable_gqa=True)


def make_cached_attention(dtype, sequences, heads, key_heads, keys, width):
    # All keys, which costs no look at lengths.
    return make_decode_attention(dtype, sequences, heads, key_heads, keys, width)


def make_paged_attention(dtype, sequences, heads, key_heads, keys, width, page):
    # Keys that lie one after the other, which costs no look at a table.
    return make_decode_attention(dtype, sequences, heads, key_heads, keys, width)


def make_grouped_query_attention(dtype, heads, key_heads, tokens, width):
    q = uniform(1, heads, tokens, width, dtype=dtype)
    k, v = (uniform(1, key_heads, tokens, width, dtype=dtype) for _ in range(2))
    return attention_backends(q, k, v, is_causal=True, enable_gqa=True)


def make_attention_backward(dtype, heads, tokens, width, causal=False):
    q, k, v, gradient = (uniform(1, heads, tokens, width, dtype=dtype) for _ in range(4))
    aten = torch.ops.aten
    cudnn = aten._scaled_dot_product_cudnn_attention
    flash = aten._scaled_dot_product_flash_attention
    out, sums, starts, key_starts, most, most_keys, seed, offset, _ = cudnn(
        q, k, v, None, True, 0.0, causal, False)
    by_flash = flash(q, k, v, 0.0, causal, False)

    def of_cudnn():
        return aten._scaled_dot_product_cudnn_attention_backward(
            gradient, q, k, v, out, sums, seed, offset, None, starts, key_starts, most, most_keys,
            0.0, causal)

    def of_flash():
        out, sums, starts, key_starts, most, most_keys, seed, offset, _ = by_flash
        return aten._scaled_dot_product_flash_attention_backward(
            gradient, q, k, v, out, sums, starts, key_starts, most, most_keys, 0.0, causal, seed,
            offset)

    def in_order(run):
        def launch():
            torch.use_deterministic_algorithms(True, warn_only=True)
            try:
                return run()
            finally:
                torch.use_deterministic_algorithms(False)
        return Contestant(launch)

    return {"cudnn": Contestant(of_cudnn), "cudnn_in_order": in_order(of_cudnn),
            "flash": Contestant(of_flash), "flash_in_order": in_order(of_flash)}


def make_causal_attention_backward(dtype, heads, tokens, width):
    return make_attention_backward(dtype, heads, tokens, width, causal=True)


def make_causal_attention(dtype, heads, tokens, width):
    return make_tensor_attention(dtype, heads, tokens, width, causal=True)


def make_cross_entropy(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype)
    classes = torch.randint(0, columns, (rows,), device="cuda")
    loss = lambda: torch.nn.functional.cross_entropy(x, classes, reduction="none")
    compiled = torch.compile(
        lambda: torch.nn.functional.cross_entropy(x.float(), classes, reduction="none"))
    return {"torch": Contestant(loss), "torch_compile": Contestant(compiled)}


def make_embedding(dtype, rows, columns):
    table = uniform(rows, columns, dtype=dtype)
    chosen = torch.randint(0, rows, (rows,), device="cuda", dtype=torch.int32)
    out = torch.empty_like(table)
    return {"torch": Contestant(lambda: torch.index_select(table, 0, chosen, out=out))}


def make_transpose(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype)
    out = torch.empty(columns, rows, device="cuda", dtype=dtype)
    return {"torch": Contestant(lambda: out.copy_(x.t()))}


def make_layer_norm(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype)
    weight, bias = uniform(columns, dtype=dtype), uniform(columns, dtype=dtype)
    out = torch.empty_like(x)
    mean, rstd = torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda")
    norm = lambda: torch.nn.functional.layer_norm(x, (columns,), weight, bias)
    block = power(columns)

    def launch(programs, num_warps, num_stages):
        kernels.layer_norm[(min(programs, rows),)](
            x, weight, bias, out, mean, rstd, rows, columns, 1e-5, BLOCK=block,
            STAGES=num_stages, num_warps=num_warps)
    count = multiprocessors()
    configs = grid(num_warps=near(block / 512, [4, 8, 16, 32]), num_stages=[1, 2],
                   programs=[rows, count * 2, count * 4, count * 8])
    configs = [c for c in configs if c["programs"] != rows or c["num_stages"] == 1]
    return {
        "torch": Contestant(lambda: torch.native_layer_norm(x, (columns,), weight, bias, 1e-5)),
        "triton": Contestant(launch, configs, close(out, norm, dtype)),
    }


def make_add_rms_norm(dtype, rows, columns):
    x = torch.zeros(rows, columns, device="cuda", dtype=dtype)
    residual = uniform(rows, columns, dtype=dtype)
    weight = uniform(columns, dtype=dtype)

    def norm(x, residual, weight):
        residual += x
        return torch.nn.functional.rms_norm(residual, (columns,), weight, 1e-5)
    compiled = torch.compile(norm)
    return {
        "torch": Contestant(lambda: norm(x, residual, weight)),
        "torch_compile": Contestant(lambda: compiled(x, residual, weight)),
    }


def make_mean(dtype, outer, middle, inner):
    n = outer * middle * inner
    x = torch.linspace(-100, 100, n, device="cuda").to(dtype).view(outer, middle, inner)
    out = torch.empty(outer, inner, device="cuda", dtype=dtype)

    def invariant(BLOCK, num_warps):
        kernels.mean_invariant[(outer * inner,)](
            x, out, middle, inner, BLOCK=BLOCK, num_warps=num_warps)

    def strips(ROWS, num_warps, num_stages):
        kernels.mean_strips[(outer,)](
            x, out, middle, inner, ROWS=ROWS, COLUMNS=power(inner), STAGES=num_stages,
            num_warps=num_warps)
    check = close(out, lambda: torch.mean(x.float(), dim=1), dtype)
    blocks = grid(BLOCK=near(1024, [256, 512, 1024, 2048, 4096]), num_warps=near(4, WARPS))
    tiles = grid(ROWS=near(256, [32, 64, 128, 256, 512, 1024]), num_warps=near(4, WARPS),
                 num_stages=[1, 3])
    return {
        "torch": Contestant(lambda: torch.mean(x, dim=1)),
        "triton_batch_invariant": Contestant(
            invariant, likely(blocks, lambda c: c["BLOCK"], lane=8), check),
        "triton": Contestant(
            strips, likely(tiles, lambda c: c["ROWS"] * power(inner)), check),
    }


def make_sum_rows(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype, low=0.0)
    out = torch.empty(rows, device="cuda", dtype=dtype)
    block = power(columns)

    def launch(ROWS, num_warps):
        kernels.sum_rows[(triton.cdiv(rows, ROWS),)](
            x, out, rows, columns, ROWS=ROWS, BLOCK=block, num_warps=num_warps)

    def persistent(programs, num_warps, num_stages):
        kernels.sum_rows_persistent[(programs,)](
            x, out, rows, columns, BLOCK=block, STAGES=num_stages, num_warps=num_warps)
    count = multiprocessors()
    check = close(out, lambda: torch.sum(x, dim=1), dtype)
    tiles = grid(num_warps=near(block / 512, WARPS), ROWS=[1, 2, 4])
    return {
        "torch": Contestant(lambda: torch.sum(x, dim=1, out=out)),
        "triton": Contestant(launch, likely(tiles, lambda c: c["ROWS"] * block, lane=16), check),
        "triton_persistent": Contestant(
            persistent, grid(num_warps=near(block / 512, WARPS), num_stages=[2, 1, 3],
                             programs=[count * 4, count * 2, count * 8]), check),
    }


def make_sum_columns(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype, low=0.0)
    out = torch.empty(columns, device="cuda", dtype=dtype)
    partial = torch.empty(rows // 256 + 1, columns, device="cuda")

    def launch(PART, ROWS, COLUMNS, num_warps):
        parts = triton.cdiv(rows, PART)
        kernels.sum_columns[(triton.cdiv(columns, COLUMNS), parts)](
            x, partial, rows, columns, PART=PART, ROWS=ROWS, COLUMNS=COLUMNS,
            num_warps=num_warps)
        kernels.sum_columns[(triton.cdiv(columns, 32), 1)](
            partial, out, parts, columns, PART=power(parts), ROWS=power(parts), COLUMNS=32,
            num_warps=4)
    configs = grid(PART=[1024, 2048, 512], COLUMNS=near(128, [32, 64, 128, 256, 512]),
                   ROWS=[8, 16, 32], num_warps=near(4, [1, 2, 4, 8]))
    configs = likely(configs, lambda c: c["ROWS"] * c["COLUMNS"])
    return {
        "torch": Contestant(lambda: torch.sum(x, dim=0, out=out)),
        "triton": Contestant(launch, configs, close(out, lambda: torch.sum(x, dim=0), dtype)),
    }


def make_sum_all(dtype, n):
    x = uniform(n, dtype=dtype, low=0.0)
    out = torch.empty(1, device="cuda", dtype=dtype)
    partial = torch.empty(n // 4096 + 1, device="cuda")

    def launch(PART, BLOCK, num_warps):
        parts = triton.cdiv(n, PART)
        kernels.sum_parts[(parts,)](x, partial, n, PART=PART, BLOCK=BLOCK, num_warps=num_warps)
        block = min(power(parts), 8192)
        kernels.sum_parts[(1,)](partial, out, parts, PART=power(parts), BLOCK=block,
                                num_warps=16)
    configs = grid(PART=[65536, 32768, 131072], num_warps=near(8, WARPS),
                   BLOCK=near(8192, [1024, 2048, 4096, 8192, 16384]))
    configs = likely(configs, lambda c: c["BLOCK"])
    return {
        "torch": Contestant(lambda: torch.sum(x)),
        "triton": Contestant(launch, configs,
                             close(out, lambda: torch.sum(x).reshape(1), dtype)),
    }


def make_cumsum(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype, low=0.0)
    out = torch.empty_like(x)

    def launch(num_warps):
        kernels.cumsum[(rows,)](x, out, columns, BLOCK=power(columns), num_warps=num_warps)

    def tiles(BLOCK, num_warps, num_stages):
        kernels.cumsum_tiles[(rows,)](x, out, columns, BLOCK=BLOCK, STAGES=num_stages,
                                      num_warps=num_warps)
    check = close(out, lambda: torch.cumsum(x, dim=1), dtype)
    parts = grid(BLOCK=near(1024, [256, 512, 1024, 2048, 4096]),
                 num_warps=near(4, [1, 2, 4, 8, 16]), num_stages=[1, 3])
    return {
        "torch": Contestant(lambda: torch.cumsum(x, dim=1, out=out)),
        "triton": Contestant(launch, grid(num_warps=near(power(columns) / 1024, WARPS)), check),
        "triton_tiles": Contestant(tiles, likely(parts, lambda c: c["BLOCK"], lane=16), check),
    }


def make_histogram(dtype, n, bins=256):
    x = torch.randint(0, bins, (n,), device="cuda", dtype=torch.int32)
    floats = x.float()
    out = torch.zeros(bins, device="cuda", dtype=torch.int32)

    def launch(programs, BLOCK, num_warps):
        out.zero_()
        kernels.histogram[(programs,)](x, out, n, BINS=bins, BLOCK=BLOCK, num_warps=num_warps)
    count = multiprocessors()
    configs = grid(BLOCK=[2048, 1024, 4096, 8192], num_warps=[4, 8, 16],
                   programs=[count * 4, count * 2, count * 8, count])
    check = close(out, lambda: torch.bincount(x, minlength=bins), dtype)
    return {
        "torch.bincount": Contestant(lambda: torch.bincount(x, minlength=bins)),
        "torch.histc": Contestant(lambda: torch.histc(floats, bins=bins, min=0, max=bins)),
        "triton": Contestant(launch, configs, check),
    }


def make_sort(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype)
    out = torch.empty_like(x)

    def launch(ROWS, num_warps):
        kernels.sort[(triton.cdiv(rows, ROWS),)](
            x, out, rows, columns, ROWS=ROWS, BLOCK=power(columns), num_warps=num_warps)
    return {
        "torch": Contestant(lambda: torch.sort(x, dim=1)),
        "triton": Contestant(launch, grid(ROWS=[1, 2, 4], num_warps=[1, 2, 4, 8]),
                             close(out, lambda: torch.sort(x, dim=1).values, dtype)),
    }


def make_topk(dtype, rows, columns, k=32):
    x = uniform(rows, columns, dtype=dtype)
    out = torch.empty(rows, k, device="cuda", dtype=dtype)

    def launch(ROWS, num_warps):
        kernels.topk[(triton.cdiv(rows, ROWS),)](
            x, out, rows, columns, K=k, ROWS=ROWS, BLOCK=power(columns), num_warps=num_warps)
    return {
        "torch": Contestant(lambda: torch.topk(x, k, dim=1)),
        "triton": Contestant(launch, grid(ROWS=[1, 2, 4], num_warps=[1, 2, 4, 8]),
                             close(out, lambda: torch.topk(x, k, dim=1).values, dtype)),
    }


def make_topk_indices(dtype, rows, columns, k=32):
    x = uniform(rows, columns, dtype=dtype)
    return {"torch": Contestant(lambda: torch.topk(x, k, dim=1))}


def make_gather(dtype, rows, columns):
    x = uniform(rows, columns, dtype=dtype)
    index = torch.randint(0, columns, (rows, columns), device="cuda", dtype=torch.int64)
    out = torch.empty_like(x)

    def through(kernel):
        def launch(ROWS, num_warps):
            kernel[(triton.cdiv(rows, ROWS),)](
                x, index, out, rows, columns, ROWS=ROWS, BLOCK=power(columns),
                num_warps=num_warps)
        return launch
    check = close(out, lambda: torch.gather(x, 1, index), dtype)
    configs = grid(ROWS=[1, 2, 4, 8], num_warps=[1, 2, 4, 8])
    return {
        "torch": Contestant(lambda: torch.gather(x, 1, index, out=out)),
        "triton": Contestant(through(kernels.gather_tile), configs, check),
        "triton_loads": Contestant(through(kernels.gather_loads), configs, check),
    }
