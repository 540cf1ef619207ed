"""Calling from Python through tvm-ffi and the stand-in driver (no GPU): tensors of any kind that speaks DLPack."""

from __future__ import annotations

PRELUDE = """
    import precast
    from precast.runtime import errors

    class Exported(ctypes.Structure):
        _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    class GpuArray:
        '''Host memory that says it is on a GPU, as the stand-in driver's is.'''
        def __init__(self, array, device=(2, 0)):
            self.array, self.device = array, device
            made = tensor(array, device=device); self.keep = Exported(made, None, None), made.keep
        def __dlpack_device__(self): return self.device
        def __dlpack__(self, **options):
            new = ctypes.pythonapi.PyCapsule_New
            new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
            return new(ctypes.addressof(self.keep[0]), b"dltensor", None)

    write(add_pack(), folder / "a.pack")
    lib = precast.load(folder / "a.pack"); add = lib.add
    gz, gx, gy = map(GpuArray, (z, x, y))
"""


def test_a_call_by_position_and_by_name(run):
    run(
        PRELUDE
        + """
    assert add(gz, gx, gy) is None and (z == x + y).all()
    z[:] = 0; add(y=gy, x=gx, z=gz); assert (z == x + y).all() and record.launches == 2
    z[:] = 0; add(gx, gy, z=gz); assert (z == x + y).all()
    assert lib.operators["add"](gz, gx, gy) is None
    assert add.__name__ == "add" and list(__import__("inspect").signature(add).parameters) == ["z", "x", "y"]
    """
    )


def test_questions(run):
    run(
        PRELUDE
        + """
    assert add.supports(gz, gx, gy) is None
    assert "y.shape[0] must be" in add.supports(gz, gx, GpuArray(aligned(7)))
    assert add.explain(gz, gx, gy)["config"] and add.explain(gz, gx, gy, target="sm_90")["operator"] == "add"
    add.warmup(gz, gx, gy); assert record.loads == 1 and record.launches == 0
    """
    )


def test_refusals_are_exceptions_with_the_library_s_words(run):
    run(
        PRELUDE
        + """
    def refused(kind, words, *args, **named):
        try: add(*args, **named)
        except kind as error: assert words in str(error), error
        else: raise AssertionError(words)
    refused(errors.InvalidArgumentError, "move it to a GPU", z, x, y)
    refused(errors.InvalidArgumentError, "no argument 'w'", gz, gx, w=gy)
    refused(errors.InvalidArgumentError, "must be a tensor", gz, gx, 3)
    refused(errors.InvalidArgumentError, "neither a tensor nor a number", gz, gx, "three")
    refused(errors.InvalidArgumentError, "shares memory", GpuArray(x[1:]), GpuArray(x[:-1]), GpuArray(y[1:]))
    refused(errors.InvalidArgumentError, "on the CPU", x, y)
    refused(ValueError, "float64", GpuArray(z.astype("f8")), GpuArray(x.astype("f8")), GpuArray(y.astype("f8")))
    assert record.launches == 0
    """
    )


def test_no_driver_and_no_target(run):
    run(
        PRELUDE
        + """
    try: add(GpuArray(z, (10, 0)), GpuArray(x, (10, 0)), GpuArray(y, (10, 0)))
    except errors.NoDriverError as error: assert "HIP" in str(error), error
    else: raise AssertionError
    """,
        PRECAST_HIP_DRIVER="/nowhere/libamdhip64.so",
    )
    run(
        PRELUDE
        + """
    write(add_pack(targets=("sm_80",)), folder / "b.pack"); other = precast.load(folder / "b.pack")
    try: other.add(gz, gx, gy)
    except errors.NoTargetError as error: assert "sm_75" in str(error) and "it has sm_80" in str(error), error
    else: raise AssertionError
    """,
        STANDIN_CAPABILITY="75",
    )
