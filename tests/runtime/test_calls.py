"""Calls through the stand-in driver (no GPU): dispatch, refusals, workspaces, launch attributes, threads."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest


def test_a_call_computes_and_launches_once(run):
    run("""
    lib = opened(); driver.standin_params(6)
    assert lib.call(tz, tx, ty, stream=77) == ("PRECAST_OK", "")
    assert (z == x + y).all()
    assert list(record.grid) == [3, 1, 1] and record.block[0] == 128 and record.stream == 77
    assert record.params[0] == z.ctypes.data and record.params[3] & 0xFFFFFFFF == 300
    for _ in range(10): lib.call(tz, tx, ty)
    assert record.launches == 11 and record.loads == 1 and record.allocations == 0
    lib.api.release(lib.handle); assert record.unloads == 1
    """)


@pytest.mark.parametrize("n", [0, 1, 2, 127, 128, 131])
def test_sizes(run, n):
    run(f"""
    n = {n}
    z, x, y = (aligned(n) for _ in range(3)); lib = opened()
    assert lib.call(*map(tensor, (z, x, y)))[0] == "PRECAST_OK"
    assert (z == x + y).all() and record.launches == (n > 0)
    """)


def test_each_bad_argument_is_refused_and_named(run):
    run("""
    lib = opened()
    def refused(*tensors, status="PRECAST_INVALID_ARGUMENT", says):
        got = lib.call(*tensors)
        assert got[0] == status and says in got[1], got
    refused(tz, tx, says="y is missing")
    refused(tz, tx, ty, ty, says="takes 3 arguments, 4 were given")
    refused(tz, tensor(x, device=(1, 0)), ty, says="x is on the CPU")
    refused(tz, tx, tensor(y, device=(2, 1)), says="y is on device 1")
    refused(*(tensor(a, dtype=(0, 32)) for a in (z, x, y)), says="int32, it must be one of float32, float16")
    refused(tz, tx, tensor(y, dtype=(2, 64)), says="y is float64")
    refused(tz, tensor(x.reshape(2, 150)), ty, says="x has 2 dims, it must have 1")
    refused(tz, tx, tensor(y[:200]), says="y.shape[0] must be x.shape[0]")
    refused(tensor(y), tx, ty, says="shares memory with y")
    refused(tensor(np.broadcast_to(z[:1], (300,))), tx, ty, says="overlaps itself")
    null = tensor(x); null.data = None
    refused(tz, null, ty, says="x has no data")
    negative = tensor(x); negative.shape[0] = -1
    refused(tz, negative, ty, says="negative")
    half = [tensor(aligned(8, np.float16)) for _ in range(3)]
    refused(*half, status="PRECAST_UNSUPPORTED", says="half is excluded for this test")
    refused(tz, tensor(x, device=(2, 5)), ty, says="device")
    five = [tensor(a, device=(2, 5)) for a in (z, x, y)]
    refused(*five, says="there is no CUDA device 5")
    assert record.launches == 0
    assert lib.call(tx, tx, ty)[0] == "PRECAST_OK"  # declared as in place
    """)


def test_the_alignment_class_that_holds_is_used(run):
    run("""
    import json
    lib = opened()
    for misalign, wanted in ((0, "full"), (4, "none")):
        tensors = [tensor(aligned(64, misalign=misalign)) for _ in range(3)]
        assert json.loads(lib.call(*tensors, function="explain")[1])["launches"][0]["class"] == wanted
        assert lib.call(*tensors)[0] == "PRECAST_OK"
    lib = opened(masks=(3,))
    status, message = lib.call(*(tensor(aligned(64, misalign=4)) for _ in range(3)))
    assert status == "PRECAST_UNSUPPORTED" and "not 16-byte aligned" in message
    """)


def test_tensors_past_32_bits_are_refused(run):
    run("""
    lib = opened()
    big = [tensor(aligned(4)) for _ in range(3)]
    for i, t in enumerate(big):
        t.shape[0] = 2**31 + 16; t.data = (1 << 40) * (i + 1)
    status, message = lib.call(*big)
    assert status == "PRECAST_UNSUPPORTED" and "2^31" in message, message
    for t in big: t.shape[0] = 2**62
    assert lib.call(*big)[0] in ("PRECAST_INVALID_ARGUMENT", "PRECAST_UNSUPPORTED")
    assert record.launches == 0
    """)


def test_workspaces_are_zeroed_and_freed(run):
    run("""
    params = (*(m.Param(m.ParamKind.POINTER, m.ScalarType.POINTER, i) for i in range(3)), m.Param(m.ParamKind.SLOT, m.ScalarType.I32, 0),
              m.Param(m.ParamKind.WORKSPACE, m.ScalarType.POINTER, 0), m.Param(m.ParamKind.WORKSPACE, m.ScalarType.POINTER, 1),
              m.Param(m.ParamKind.GLOBAL_SCRATCH, m.ScalarType.POINTER))
    lib = opened(params=params, variant=dict(global_scratch_bytes=64, global_scratch_align=128, cluster=2),
                 workspaces=(("counters", symbol("x.shape[0]") * 4, True), ("partial", 100, False)))
    driver.standin_params(7)
    for i in range(3): assert lib.call(tz, tx, ty)[0] == "PRECAST_OK"
    assert record.allocations == record.frees == 3 and record.live_bytes == 0 and record.memsets == 3
    assert record.params[4] % 256 == 0 and record.params[5] == record.params[4] + 1280 and record.params[6] == record.params[5] + 256
    huge = opened(params=params, workspaces=(("counters", symbol("x.shape[0]") * 2**40, True), ("partial", 1, False)))
    status, message = huge.call(tz, tx, ty)
    assert status == "PRECAST_OUT_OF_MEMORY" and "workspace" in message
    bad = opened(params=params, workspaces=(("counters", symbol("x.shape[0]") // (symbol("num_sms") - 132), True), ("partial", 1, False)))
    assert bad.call(tz, tx, ty)[0] == "PRECAST_ARITHMETIC"
    """)


def test_launch_attributes(run):
    run("""
    lib = opened(variant=dict(cluster=2, flags=3))
    assert lib.call(tz, tx, ty)[0] == "PRECAST_OK"
    assert record.grid[0] == 6
    pairs = {record.attributes[2 * i]: record.attributes[2 * i + 1] for i in range(record.attribute_count)}
    assert pairs == {6: 1, 2: 1, 4: 2, 5: 1}
    """)


def test_tensor_maps_are_encoded_innermost_first(run):
    run("""
    from dataclasses import replace
    pack = add_pack(params=(m.Param(m.ParamKind.TENSOR_MAP, m.ScalarType.TENSOR_MAP, 0),),
                    variant=dict(tensor_maps=(m.TensorMap(1, 7, 4, 3, False, False, (16, 32)),)),
                    conditions=(m.Condition(m.ConditionKind.TENSOR_MAPS, (1,)),), masks=(1,))
    op = pack.operators[0]
    arguments = tuple(replace(a, rank=2, shape=()) for a in op.arguments)
    t = op.targets[0]
    pack = replace(pack, operators=(replace(op, arguments=arguments),), objects=(code("standin:nothing"),))
    write(pack, folder / "m.pack"); lib = Opened(folder / "m.pack")
    a, b, c = (aligned(8 * 64).reshape(8, 64) for _ in range(3))
    assert lib.call(*map(tensor, (a, b, c))) == ("PRECAST_OK", "")
    assert list(record.map_dims)[:2] == [64, 8] and record.map_strides[0] == 256 and list(record.map_box)[:2] == [32, 16]
    assert (record.map_rank, record.map_swizzle, record.map_data_type) == (2, 3, 7)
    status, message = lib.call(tensor(a), tensor(aligned(8 * 63).reshape(8, 63)), tensor(c))
    assert status in ("PRECAST_UNSUPPORTED", "PRECAST_INVALID_ARGUMENT"), message
    odd = aligned(8 * 64, misalign=4).reshape(8, 64)
    status, message = lib.call(tensor(a), tensor(odd), tensor(c))
    assert status == "PRECAST_UNSUPPORTED" and "TMA" in message
    """)


def test_grids_that_cannot_be_launched(run):
    run("""
    for grid, status in ((lambda b: (1, 70000, 1), "PRECAST_UNSUPPORTED"), (lambda b: (symbol("x.shape[0]") - 301, 1, 1), "PRECAST_UNSUPPORTED"),
                         (lambda b: (symbol("x.shape[0]") // (symbol("y.shape[0]") - 300), 1, 1), "PRECAST_ARITHMETIC"),
                         (lambda b: (symbol("x.shape[0]") * 2**60, 1, 1), "PRECAST_ARITHMETIC")):
        lib = opened(grid=grid)
        assert lib.call(tz, tx, ty)[0] == status
    assert record.launches == 0
    """)


@pytest.mark.parametrize(
    ("capability", "targets", "status", "target"),
    [
        ("90", "('sm_80', 'sm_90')", "PRECAST_OK", "sm_90"),
        ("86", "('sm_80', 'sm_90')", "PRECAST_OK", "sm_80"),
        ("89", "('sm_80', 'sm_86')", "PRECAST_OK", "sm_86"),
        ("100", "('sm_80', 'sm_90')", "PRECAST_NO_TARGET", ""),
        ("100", "('sm_90', 'compute_80')", "PRECAST_OK", "compute_80"),
        ("90", "('gfx942',)", "PRECAST_NO_TARGET", ""),
    ],
)
def test_which_code_a_device_runs(run, capability, targets, status, target):
    run(
        f"""
    import json
    lib = opened(targets={targets})
    got = lib.call(tz, tx, ty, function="explain")
    assert got[0] == {status!r}, got
    if got[0] == "PRECAST_OK": assert json.loads(got[1])["target"] == {target!r}
    else: assert "it has " + {targets}[0] in got[1]
    """,
        STANDIN_CAPABILITY=capability,
    )


def test_questions_without_a_gpu(run):
    run(
        """
    lib = opened()
    asked = [tensor(a, device=(1, 0)) for a in (z, x, y)]
    assert lib.call(*asked, function="supports", target=b"sm_90")[0] == "PRECAST_OK"
    status, message = lib.call(*asked, function="supports")
    assert status == "PRECAST_NO_DRIVER" and "name a target" in message
    status, message = lib.call(tz, tx, ty)
    assert status == "PRECAST_NO_DRIVER" and "can't be opened" in message
    """,
        PRECAST_CUDA_DRIVER="nowhere.so",
        PRECAST_HIP_DRIVER="nowhere.so",
    )


@pytest.mark.parametrize("function", ["cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel"])
def test_driver_errors_are_told(run, function):
    run(
        """
    status, message = opened().call(tz, tx, ty)
    assert status == "PRECAST_DRIVER_ERROR" and "STANDIN_ERROR" in message and "719" in message
    """,
        STANDIN_FAIL=f"{function}=719",
    )


def test_capture_needs_warmup(run):
    run("""
    lib = opened(); driver.standin_capture(1)
    status, message = lib.call(tz, tx, ty)
    assert status == "PRECAST_NOT_WARM" and "warmup" in message and record.launches == 0
    driver.standin_capture(0)
    options = Options(ctypes.sizeof(Options), None, None)
    assert lib.api.warmup(lib.handle, -1, 0, None, 0, ctypes.byref(options)) == 0
    driver.standin_capture(1)
    assert lib.call(tz, tx, ty)[0] == "PRECAST_OK"
    """)


def test_frozen_refuses_what_was_not_measured(run):
    run(
        """
    status, message = opened().call(tz, tx, ty)
    assert status == "PRECAST_UNTUNED" and "n=300" in message
    leaf = m.Node(m.NO_INDEX, 0, 0, 0)
    def tuned(keys, **more): return m.Table((leaf,), (m.Leaf((0,), 1),), rung=m.Rung.MEASURED, measured=keys, **more)
    assert opened(tables=(tuned(((7,), (300,), (301,))),)).call(tz, tx, ty)[0] == "PRECAST_OK"
    status, message = opened(tables=(tuned(((7,), (299,), (301,))),)).call(tz, tx, ty)
    assert status == "PRECAST_UNTUNED" and "n=300" in message
    other = (tuned(((300,),), device=0), m.Table((leaf,), (m.Leaf((0,)),)))
    assert opened(devices=("Another GPU",), tables=other).call(tz, tx, ty)[0] == "PRECAST_UNTUNED"
    assert opened(devices=("stand-in (no GPU)",), tables=other).call(tz, tx, ty)[0] == "PRECAST_OK"
    """,
        PRECAST_FROZEN="1",
    )


def test_record_counts_problems(run, tmp_path: Path):
    run(
        """
    lib = opened()
    for _ in range(5): lib.call(tz, tx, ty)
    lib.call(*map(tensor, (z[:64], x[:64], y[:64])))
    """,
        PRECAST_RECORD=str(tmp_path / "record.jsonl"),
    )
    lines = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert {(line["key"]["n"], line["count"]) for line in lines} == {(300, 5), (64, 1)}
    assert lines[0]["specialization"] == {"T": "float32"} and lines[0]["operator"] == "add"


def test_log_says_what_was_loaded(run):
    output = run("opened().call(tz, tx, ty)", PRECAST_LOG="debug")
    assert "loaded add (full)" in output and "stand-in" in output


def test_old_callers_options_are_read_to_their_size(run):
    run("""
    lib = opened()
    values = (Value * 3)()
    for value, t in zip(values, (tz, tx, ty)): value.kind, value.tensor = 1, ctypes.addressof(t)
    old = Options(ctypes.sizeof(ctypes.c_size_t), 0xDEAD, b"sm_80")
    assert lib.api.run(lib.handle, 0, values, 3, ctypes.byref(old)) == 0
    assert not record.stream
    """)


def test_context_of_the_caller_is_left_alone(run):
    run("""
    mine, now = ctypes.c_void_p(), ctypes.c_void_p()
    lib = opened()
    driver.cuCtxPushCurrent_v2(ctypes.c_void_p(12345))
    assert lib.call(tz, tx, ty)[0] == "PRECAST_OK"
    driver.cuCtxGetCurrent(ctypes.byref(now)); assert now.value == 12345
    """)


def test_sixty_four_threads_first_call(standin_build: Path, tmp_path: Path):
    from standin import add_pack

    from precast.pack.writer import write

    write(add_pack(), tmp_path / "a.pack")
    env = {**os.environ, "PRECAST_CUDA_DRIVER": str(standin_build / "libstandin_cuda.so")}
    done = subprocess.run(
        [standin_build / "call_test", tmp_path / "a.pack"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "64 threads, 0 failures" in done.stdout, done.stdout + done.stderr


def test_a_type_of_outputs_alone_is_the_first_that_is_not_excluded(run):
    run("""
    import json
    from dataclasses import replace
    pack = add_pack(); op = pack.operators[0]; target = op.targets[0]
    built, excluded = target.specializations
    arguments = (replace(op.arguments[0], type_variable=1), *op.arguments[1:])
    types = (*op.type_variables, m.TypeVariable("O", 0, (FP16, FP32), ("float16", "float32")))
    target = replace(target, specializations=(excluded, built, excluded, excluded))
    op = replace(op, arguments=arguments, type_variables=types, targets=(target,))
    write(replace(pack, operators=(op,)), folder / "o.pack"); lib = Opened(folder / "o.pack")
    status, text = lib.call(None, tx, ty, function="explain")
    assert status == "PRECAST_OK" and json.loads(text)["specialization"] == {"T": "float32", "O": "float32"}, text
    """)
