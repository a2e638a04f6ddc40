"""NumPy and Numba on the CPU, on the threads that NUMBA_NUM_THREADS allows.

NumPy writes where it can to arrays made before; indices have the type that it computes with.
"""

import time

from peers import Contestant

MISSING = []
try:
    import numpy as np
except ImportError as error:
    np = None
    MISSING.append(f"numpy: {error}")
try:
    import numba

    import numba_kernels as kernels
except ImportError as error:
    numba = None
    MISSING.append(f"numba: {error}")


def libraries():
    found = {module.__name__: module.__version__ for module in (np, numba) if module}
    return (found if np else {}), MISSING


class Clock:
    """Time by the clock of the host, caches as they are."""

    def time_ms(self, launch):
        begin = time.perf_counter()
        launch()
        return (time.perf_counter() - begin) * 1e3


def free():
    pass


def copies(elements):
    x = np.zeros(elements, np.float32)
    out = np.empty_like(x)
    return [lambda: np.copyto(out, x)]


def uniform(*shape, low=-1.0):
    return np.random.default_rng(1).uniform(low, 1, shape).astype(np.float32)


def close(got, want):
    def check():
        np.testing.assert_allclose(got, want(), rtol=1e-4, atol=1e-5)
    return check


def contestants(kernel, dtype, shape):
    make = globals().get(f"make_{kernel}")
    # NumPy has no bf16, and its f16 is not what anybody computes with.
    if make is None or dtype not in ("f32", "i32"):
        return {}
    numpy_run, numba_run, check = make(*shape)
    found = {"numpy": Contestant(numpy_run)}
    if numba and numba_run:
        found["numba"] = Contestant(numba_run, check=check)
    return found


def make_vector_add(n):
    x, y, out = uniform(n), uniform(n), np.empty(n, np.float32)
    return (lambda: np.add(x, y, out=out), lambda: kernels.vector_add(x, y, out),
            close(out, lambda: x + y))


def make_softmax(rows, columns):
    x = uniform(rows, columns)
    out = np.empty_like(x)

    def run():
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=1, keepdims=True), out=out)

    def want():
        power = np.exp(x - x.max(axis=1, keepdims=True))
        return power / power.sum(axis=1, keepdims=True)
    return run, lambda: kernels.softmax(x, out), close(out, want)


def make_layer_norm(rows, columns):
    x, weight, bias = uniform(rows, columns), uniform(columns), uniform(columns)
    out = np.empty_like(x)
    means, scales = np.empty(rows, np.float32), np.empty(rows, np.float32)

    def run():
        np.mean(x, axis=1, out=means)
        np.subtract(x, means[:, None], out=out)
        np.einsum("ij,ij->i", out, out, out=scales)
        scales[:] = 1 / np.sqrt(scales / columns + np.float32(1e-5))
        np.multiply(out, scales[:, None], out=out)
        np.multiply(out, weight, out=out)
        np.add(out, bias, out=out)

    def want():
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * weight + bias
    launch = lambda: kernels.layer_norm(x, weight, bias, out, means, scales)
    return run, launch, close(out, want)


def make_mean(outer, middle, inner):
    x = np.linspace(-100, 100, outer * middle * inner, dtype=np.float32)
    x = x.reshape(outer, middle, inner)
    out = np.empty((outer, inner), np.float32)
    want = lambda: np.mean(x, axis=1, dtype=np.float64)
    check = lambda: np.testing.assert_allclose(out, want(), rtol=1e-3, atol=1e-3)
    return lambda: np.mean(x, axis=1, out=out), lambda: kernels.mean(x, out), check


def make_sum_rows(rows, columns):
    x, out = uniform(rows, columns, low=0.0), np.empty(rows, np.float32)
    return (lambda: np.sum(x, axis=1, out=out), lambda: kernels.sum_rows(x, out),
            close(out, lambda: np.sum(x, axis=1)))


def make_sum_columns(rows, columns):
    x, out = uniform(rows, columns, low=0.0), np.empty(columns, np.float32)
    return (lambda: np.sum(x, axis=0, out=out), lambda: kernels.sum_columns(x, out),
            close(out, lambda: np.sum(x, axis=0)))


def make_sum_all(n):
    x, out = uniform(n, low=0.0), np.empty(1, np.float32)
    return (lambda: np.sum(x), lambda: kernels.sum_all(x, out),
            close(out, lambda: np.sum(x)))


def make_cumsum(rows, columns):
    x = uniform(rows, columns, low=0.0)
    out = np.empty_like(x)
    return (lambda: np.cumsum(x, axis=1, out=out), lambda: kernels.cumsum(x, out),
            close(out, lambda: np.cumsum(x, axis=1)))


def make_histogram(n):
    x = np.random.default_rng(1).integers(0, 256, n, dtype=np.int32)
    # Of any other type bincount would make a copy first.
    numbers = x.astype(np.intp)
    out = np.zeros(256, np.int32)
    return (lambda: np.bincount(numbers, minlength=256), lambda: kernels.histogram(x, out),
            close(out, lambda: np.bincount(numbers, minlength=256)))


def make_sort(rows, columns):
    x = uniform(rows, columns)
    out = np.empty_like(x)

    def run():
        np.copyto(out, x)
        out.sort(axis=1)
    return run, lambda: kernels.sort(x, out), close(out, lambda: np.sort(x, axis=1))


def make_topk(rows, columns):
    x = uniform(rows, columns)
    work, out = np.empty_like(x), np.empty((rows, 32), np.float32)

    def run():
        np.copyto(work, x)
        work.partition(columns - 32, axis=1)
        np.copyto(out, work[:, columns - 32:])
        out.sort(axis=1)
    return run, None, None


def make_topk_indices(rows, columns):
    x = uniform(rows, columns)

    def run():
        # These have no out, and take with out on flat indices is slower for rows so short.
        chosen = np.argpartition(x, columns - 32, axis=1)[:, columns - 32:]
        values = np.take_along_axis(x, chosen, 1)
        order = np.argsort(values, axis=1)
        return np.take_along_axis(values, order, 1), np.take_along_axis(chosen, order, 1)
    return run, None, None


def make_gather(rows, columns):
    x = uniform(rows, columns)
    index = np.random.default_rng(1).integers(0, columns, (rows, columns), dtype=np.int64)
    out = np.empty_like(x)
    flat, places = x.reshape(-1), index + np.arange(rows)[:, None] * columns
    # By the mode "raise" take would write to a copy of out first.
    return (lambda: np.take(flat, places, out=out, mode="clip"),
            lambda: kernels.gather(x, index, out),
            close(out, lambda: np.take_along_axis(x, index, 1)))
