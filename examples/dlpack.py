"""Arrays of NumPy or PyTorch through a library in Rust and back, by DLPack:

    cargo build --example dlpack_library --features dlpack
    python3 examples/dlpack.py target/debug/examples/libdlpack_library.so numpy

With `--features dlpack,nvptx` and `torch` in place of `numpy` the arrays are on a GPU.
"""

import ctypes
import sys

NAME = ctypes.create_string_buffer(b"dltensor")
USED = ctypes.create_string_buffer(b"used_dltensor")

api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_void_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]


class Given:
    """What the library gives, for `from_dlpack`."""

    def __init__(self, pointer, device):
        self.pointer, self.device = pointer, device

    def __dlpack__(self, **options):
        return api.PyCapsule_New(self.pointer, ctypes.addressof(NAME), None)

    def __dlpack_device__(self):
        return self.device


def drained(library, array, stream):
    """Twice the numbers of an array, which are zero afterwards."""
    capsule = array.__dlpack__()
    pointer = api.PyCapsule_GetPointer(capsule, NAME.value)
    api.PyCapsule_SetName(capsule, ctypes.addressof(USED))
    given = library.drained(pointer, stream)
    if not given:
        raise RuntimeError("the library failed")
    return Given(given, array.__dlpack_device__())


def main():
    path, package = sys.argv[1:]
    library = ctypes.CDLL(path)
    library.drained.restype = ctypes.c_void_p
    library.drained.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    for count in [1, 255, 256, 100_000]:
        if package == "numpy":
            import numpy

            x, stream = numpy.arange(3 * count, dtype=numpy.float32), None
            new = numpy.from_dlpack
        else:
            import torch

            x = torch.arange(3 * count, dtype=torch.float32, device="cuda")
            stream = torch.cuda.current_stream().cuda_stream
            new = torch.from_dlpack
        # Every third number, and the same backwards where views may be so.
        views = [x[1::3]] + ([x[2::3][::-1]] if package == "numpy" else [])
        for view in views:
            # On a GPU this runs just before the kernel, in the stream that it waits for.
            view += 1
            wanted = view * 2
            out = new(drained(library, view, stream))
            assert (out == wanted).all(), (out, wanted)
            assert (view == 0).all(), view
            del out
    print(f"{package}: all numbers are right")


main()
