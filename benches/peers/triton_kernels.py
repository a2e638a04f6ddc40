"""Kernels in Triton, as its users write them."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row * columns + column
        value = tl.load(x + at, mask=mask, other=-float("inf")).to(tl.float32)
        power = tl.exp(value - tl.max(value, 0))
        tl.store(out + at, (power / tl.sum(power, 0)).to(out.dtype.element_ty), mask=mask)


@triton.jit
def softmax_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    at = row * columns + column
    value = tl.load(x + at, mask=mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 1)[:, None])
    result = power / tl.sum(power, 1)[:, None]
    tl.store(out + at, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def layer_norm(x, weight, bias, out, means, scales, rows, columns, epsilon,
               BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    w = tl.load(weight + column, mask=mask)
    b = tl.load(bias + column, mask=mask)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row * columns + column
        value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(value, 0) / columns
        centred = tl.where(mask, value - mean, 0.0)
        scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
        tl.store(means + row, mean)
        tl.store(scales + row, scale)
        tl.store(out + at, (centred * scale * w + b).to(out.dtype.element_ty), mask=mask)


@triton.jit
def mean_invariant(x, out, middle, inner, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    outer, column = program // inner, program % inner
    total = 0.0
    for first in range(0, middle, BLOCK):
        row = first + tl.arange(0, BLOCK)
        at = (outer * middle + row) * inner + column
        total += tl.sum(tl.load(x + at, mask=row < middle, other=0.0).to(tl.float32))
    tl.store(out + program, total / middle)


@triton.jit
def mean_strips(x, out, middle, inner, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
                STAGES: tl.constexpr):
    outer = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for first in tl.range(0, middle, ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        at = (outer * middle + row[:, None]) * inner + column[None, :]
        mask = (row[:, None] < middle) & (column[None, :] < inner)
        total += tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + outer * inner + column, tl.sum(total, 0) / middle, mask=column < inner)


@triton.jit
def sum_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    at = row[:, None].to(tl.int64) * columns + column[None, :]
    value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(value, 1), mask=row < rows)


@triton.jit
def sum_rows_persistent(x, out, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * columns + column
        value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row, tl.sum(value, 0))


@triton.jit
def sum_columns(x, out, rows, columns, PART: tl.constexpr, ROWS: tl.constexpr,
                COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1).to(tl.int64)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for first in range(0, PART, ROWS):
        row = part * PART + first + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        at = row[:, None] * columns + column[None, :]
        total += tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + part * columns + column, tl.sum(total, 0), mask=column < columns)


@triton.jit
def sum_parts(x, out, n, PART: tl.constexpr, BLOCK: tl.constexpr):
    part = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, PART, BLOCK):
        at = part * PART + first + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out + part, tl.sum(total, 0))


@triton.jit
def cumsum(x, out, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    at = tl.program_id(0).to(tl.int64) * columns + column
    value = tl.load(x + at, mask=mask, other=0.0)
    tl.store(out + at, tl.cumsum(value, 0), mask=mask)


@triton.jit
def cumsum_tiles(x, out, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    before = 0.0
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        mask = column < columns
        value = tl.load(x + row * columns + column, mask=mask, other=0.0)
        tl.store(out + row * columns + column, before + tl.cumsum(value, 0), mask=mask)
        before += tl.sum(value, 0)


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    counts = tl.zeros([BINS], dtype=tl.int32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        mask = at < n
        counts += tl.histogram(tl.load(x + at, mask=mask, other=0), BINS, mask=mask)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def sort(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, mask=mask, other=float("inf"))
    tl.store(out + row * columns + column, tl.sort(value, 1), mask=mask)


@triton.jit
def topk(x, out, rows, columns, K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, mask=mask, other=-float("inf"))
    place = tl.arange(0, K)[None, :]
    tl.store(out + row * K + place, tl.topk(value, K, dim=1), mask=row < rows)


@triton.jit
def gather_tile(x, index, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    at = row * columns + column
    value = tl.load(x + at, mask=mask)
    chosen = tl.load(index + at, mask=mask, other=0).to(tl.int32)
    tl.store(out + at, tl.gather(value, chosen, 1), mask=mask)


@triton.jit
def gather_loads(x, index, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    at = row * columns + column
    chosen = tl.load(index + at, mask=mask, other=0)
    tl.store(out + at, tl.load(x + row * columns + chosen, mask=mask), mask=mask)
