"""Kernels as loops, compiled by Numba without fast-math, rows on all threads."""

import math

import numba
import numpy as np
from numba import prange


@numba.njit(parallel=True)
def vector_add(x, y, out):
    for i in prange(x.size):
        out[i] = x[i] + y[i]


@numba.njit(parallel=True)
def softmax(x, out):
    for r in prange(x.shape[0]):
        top = x[r, 0]
        for c in range(1, x.shape[1]):
            top = max(top, x[r, c])
        total = np.float32(0)
        for c in range(x.shape[1]):
            out[r, c] = math.exp(x[r, c] - top)
            total += out[r, c]
        for c in range(x.shape[1]):
            out[r, c] /= total


@numba.njit(parallel=True)
def layer_norm(x, weight, bias, out, means, scales):
    count = np.float32(x.shape[1])
    for r in prange(x.shape[0]):
        total = np.float32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
        mean = total / count
        square = np.float32(0)
        for c in range(x.shape[1]):
            square += (x[r, c] - mean) * (x[r, c] - mean)
        scale = np.float32(1) / math.sqrt(square / count + np.float32(1e-5))
        means[r], scales[r] = mean, scale
        for c in range(x.shape[1]):
            out[r, c] = (x[r, c] - mean) * scale * weight[c] + bias[c]


@numba.njit(parallel=True)
def mean(x, out):
    for o in prange(x.shape[0]):
        out[o, :] = 0
        for m in range(x.shape[1]):
            for i in range(x.shape[2]):
                out[o, i] += x[o, m, i]
        for i in range(x.shape[2]):
            out[o, i] /= x.shape[1]


@numba.njit(parallel=True)
def sum_rows(x, out):
    for r in prange(x.shape[0]):
        total = np.float32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
        out[r] = total


@numba.njit(parallel=True)
def sum_columns(x, out):
    strip = 512
    for s in prange((x.shape[1] + strip - 1) // strip):
        first, last = s * strip, min(s * strip + strip, x.shape[1])
        out[first:last] = 0
        for r in range(x.shape[0]):
            for c in range(first, last):
                out[c] += x[r, c]


@numba.njit(parallel=True)
def sum_all(x, out):
    part = 65536
    parts = (x.size + part - 1) // part
    partial = np.zeros(parts, np.float32)
    for p in prange(parts):
        total = np.float32(0)
        for i in range(p * part, min(p * part + part, x.size)):
            total += x[i]
        partial[p] = total
    out[0] = partial.sum()


@numba.njit(parallel=True)
def cumsum(x, out):
    for r in prange(x.shape[0]):
        total = np.float32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
            out[r, c] = total


@numba.njit(parallel=True)
def histogram(x, out):
    threads = numba.get_num_threads()
    part = (x.size + threads - 1) // threads
    counts = np.zeros((threads, out.size), np.int32)
    for t in prange(threads):
        for i in range(t * part, min(t * part + part, x.size)):
            counts[t, x[i]] += 1
    out[:] = counts.sum(axis=0)


@numba.njit(parallel=True)
def sort(x, out):
    for r in prange(x.shape[0]):
        out[r, :] = np.sort(x[r, :])


@numba.njit(parallel=True)
def gather(x, index, out):
    for r in prange(x.shape[0]):
        for c in range(x.shape[1]):
            out[r, c] = x[r, index[r, c]]
