"""Promises of the ABI and of DESIGN.md at their edges, through the stand-in driver."""

from __future__ import annotations


def test_a_refused_call_has_launched_nothing_even_in_its_second_launch(run):
    run("""
    from dataclasses import replace
    pack = add_pack()
    op = pack.operators[0]; t = op.targets[0]; c = t.candidates[0]
    narrow = replace(t.variants[0], params=(*t.variants[0].params[:3], m.Param(m.ParamKind.SLOT, m.ScalarType.I8, 0), *t.variants[0].params[4:]))
    second = m.Launch((m.LaunchVariant(0, 2),), c.launches[0].grid)
    t = replace(t, variants=(*t.variants, narrow), candidates=(replace(c, launches=(c.launches[0], second)),))
    write(replace(pack, operators=(replace(op, targets=(t,)),)), folder / "m.pack"); lib = Opened(folder / "m.pack")
    status, message = lib.call(tz, tx, ty)
    assert status == "PRECAST_UNSUPPORTED" and "does not fit" in message, (status, message)
    assert record.launches == 0, record.launches
    """)


def test_text_of_describe_belongs_to_the_library(run):
    run("""
    lib = opened()
    describe = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))(lib.api.describe)
    first, again = ctypes.c_void_p(), ctypes.c_void_p()
    assert describe(lib.handle, ctypes.byref(first)) == 0
    text = ctypes.string_at(first.value)
    for _ in range(5): lib.call(tz, tx, ty, function="explain")
    assert ctypes.string_at(first.value) == text
    assert describe(lib.handle, ctypes.byref(again)) == 0
    assert again.value == first.value and ctypes.string_at(first.value) == text
    """)


def test_json_keeps_utf8(run):
    run("""
    import json
    from dataclasses import replace
    from precast.pack.inspect import inspect_bytes
    from precast.pack.writer import dump
    pack = add_pack()
    pack = replace(pack, operators=(replace(pack.operators[0], doc="z ≤ x·y, naïve 𝛼"),))
    assert inspect_bytes(dump(pack), "x")["operators"][0]["doc"] == "z ≤ x·y, naïve 𝛼"
    """)


def test_options_without_size_are_refused(run):
    run("""
    lib = opened()
    values = (Value * 3)()
    for value, t in zip(values, (tz, tx, ty)): value.kind, value.tensor = 1, ctypes.addressof(t)
    assert lib.api.run(lib.handle, 0, values, 3, ctypes.byref(Options(0, 0xDEAD, None))) == 1
    assert b"size" in lib.api.last_error() and record.launches == 0
    assert lib.api.run(lib.handle, 0, values, 3, None) == 0
    """)


def test_in_place_means_the_same_elements(run):
    run("""
    lib = opened(masks=(0, 0)); base = aligned(400)
    assert lib.call(tensor(base[:300]), tensor(base[:300]), ty)[0] == "PRECAST_OK"
    status, message = lib.call(tensor(base[1:301]), tensor(base[:300]), ty)
    assert status == "PRECAST_INVALID_ARGUMENT" and "in place" in message, (status, message)
    assert lib.call(tensor(base[:50]), tensor(base[50:100]), tensor(y[:50]))[0] == "PRECAST_OK"
    """)


def test_interleaved_views_of_one_buffer_do_not_overlap(run):
    run("""
    from dataclasses import replace
    pack = add_pack(objects=(code("standin:nothing"),), masks=(0, 0)); op = pack.operators[0]
    arguments = tuple(replace(a, rank=2, shape=(), in_place_with=m.NO_INDEX) for a in op.arguments)
    write(replace(pack, operators=(replace(op, arguments=arguments),)), folder / "m.pack"); lib = Opened(folder / "m.pack")
    whole = aligned(8 * 96).reshape(8, 96)
    parts = [tensor(whole[:, i * 32 : (i + 1) * 32]) for i in range(3)]
    assert lib.call(*parts) == ("PRECAST_OK", "")
    for shift in (1, 31, 63, -1):
        x = whole.ravel()[40 + shift :][: 4 * 96].reshape(4, 96)[:, :32]
        z = whole.ravel()[40:][: 4 * 96].reshape(4, 96)[:, :32]
        got = lib.call(tensor(z), tensor(x), tensor(aligned(4 * 32).reshape(4, 32)))
        assert (got[0] == "PRECAST_OK") == (shift == 63), (shift, got)
    assert lib.call(tensor(whole[:, :33]), parts[1], tensor(aligned(8 * 32).reshape(8, 32)))[0] == "PRECAST_INVALID_ARGUMENT"
    across = tensor(whole.T[:8, :8])
    assert lib.call(tensor(whole[:8, :32].copy()), across, across)[0] in ("PRECAST_OK", "PRECAST_INVALID_ARGUMENT")
    assert lib.call(parts[0], across, across)[0] == "PRECAST_INVALID_ARGUMENT"
    """)


def test_empty_work_needs_no_variant_that_fits(run):
    run("""
    lib = opened(masks=(3,))
    empty = [tensor(aligned(4, misalign=4)[:0]) for _ in range(3)]
    assert lib.call(*empty) == ("PRECAST_OK", "") and record.launches == 0
    """)


def test_questions_without_outputs_see_the_outputs_that_a_call_would_have(run):
    run("""
    import json
    from dataclasses import replace
    pack = add_pack(conditions=(m.Condition(m.ConditionKind.SLOTS_EQ1, (5,)), m.Condition(m.ConditionKind.OFFSETS_INT32, (0, 1, 2))), masks=(3, 2))
    op = pack.operators[0]
    op = replace(op, slots=(*op.slots, m.Slot(m.SlotKind.STRIDE, 0, 0, "z.stride[0]")), checks=())
    write(replace(pack, operators=(op,)), folder / "m.pack"); lib = Opened(folder / "m.pack")
    status, text = lib.call(None, tx, ty, function="explain")
    assert status == "PRECAST_OK" and json.loads(text)["launches"][0]["class"] == "full", text
    """)


def test_warmup_loads_what_a_fall_back_to_the_next_target_needs(run):
    run(
        """
    from dataclasses import replace
    pack = add_pack(targets=("sm_86", "sm_80")); op = pack.operators[0]; first, second = op.targets
    failed = m.Specialization(m.SpecializationStatus.FAILED, "no config compiled")
    first = replace(first, specializations=(failed, first.specializations[1]))
    write(replace(pack, operators=(replace(op, targets=(first, second)),)), folder / "m.pack"); lib = Opened(folder / "m.pack")
    options = Options(ctypes.sizeof(Options), None, None)
    assert lib.api.warmup(lib.handle, -1, 0, None, 0, ctypes.byref(options)) == 0
    driver.standin_capture(1)
    assert lib.call(tz, tx, ty) == ("PRECAST_OK", "")
    """,
        STANDIN_CAPABILITY="86",
    )


def test_verify_recomputes_the_build_id(run):
    run("""
    import struct, zlib
    from precast.pack.inspect import PackError, inspect_bytes
    from precast.pack.writer import dump
    data = bytearray(dump(add_pack())); data[24] ^= 1
    struct.pack_into("<I", data, 68, zlib.crc32(bytes(data[:68])))
    try: inspect_bytes(bytes(data), "x", verify=True)
    except PackError as error: assert "build id" in str(error)
    else: raise AssertionError("a forged build id went unseen")
    """)


def test_small_tensor_fix_counts_bytes(run):
    run("""
    from dataclasses import replace
    pack = add_pack(params=(m.Param(m.ParamKind.TENSOR_MAP, m.ScalarType.TENSOR_MAP, 0),),
                    variant=dict(tensor_maps=(m.TensorMap(1, 7, 4, 3, False, False, (32,)),)),
                    conditions=(m.Condition(m.ConditionKind.TENSOR_MAPS, (1,)),), masks=(1,), objects=(code("standin:nothing"),))
    write(pack, folder / "m.pack"); lib = Opened(folder / "m.pack")
    driver.standin_map_words.restype = ctypes.POINTER(ctypes.c_uint64)
    for n, cleared in ((32 * 1024 - 32, True), (32 * 1024 + 32, False), (100 * 1024, False)):
        arrays = [tensor(aligned(n)) for _ in range(3)]
        assert lib.call(*arrays)[0] == "PRECAST_OK"
        assert (driver.standin_map_words()[1] >> 21 & 1 == 0) == cleared, n
    """)


def test_a_record_keeps_every_key_field(run, tmp_path):
    import json

    run(
        """
    from dataclasses import replace
    pack = add_pack(); op = pack.operators[0]; dim = op.key[0].expression
    fields = tuple(m.KeyField(f"k{i}", dim if i == 20 else op.targets[0].candidates[0].launches[0].grid[1]) for i in range(24))
    write(replace(pack, operators=(replace(op, key=fields),)), folder / "m.pack"); lib = Opened(folder / "m.pack")
    lib.call(tz, tx, ty); lib.call(*map(tensor, (z[:64], x[:64], y[:64])))
    """,
        PRECAST_RECORD=str(tmp_path / "record.jsonl"),
    )
    lines = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert sorted(line["key"].get("k20") for line in lines) == [64, 300]


def test_a_half_written_last_line_spoils_only_itself(run, tmp_path):
    import json

    file = tmp_path / "record.jsonl"
    file.write_text('{"family":"standin","oper')
    run("opened().call(tz, tx, ty)", PRECAST_RECORD=str(file))
    good = []
    for line in file.read_text().splitlines():
        try:
            good.append(json.loads(line))
        except ValueError:
            continue
    assert [line["count"] for line in good] == [1]


def test_a_number_can_be_no_output(run):
    run("""
    from dataclasses import replace
    pack = add_pack(); op = pack.operators[0]
    wrong = m.Argument("n", m.ArgumentKind.INT, output=True, optional=True, shape=tuple(range(100000, 100100)))
    write(replace(pack, operators=(replace(op, arguments=(*op.arguments, wrong)),)), folder / "m.pack")
    assert "only tensors have" in Opened(folder / "m.pack").error
    """)


def test_floats_are_rounded_once(run):
    run("""
    from dataclasses import replace
    import struct
    for scalar, reference in ((m.ScalarType.FP16, lambda v: int(np.float16(v).view(np.uint16))),
                              (m.ScalarType.FP32, lambda v: int(np.float32(v).view(np.uint32)))):
        pack = add_pack(params=(m.Param(m.ParamKind.FLOAT, scalar, 3),), objects=(code("standin:nothing"),))
        op = pack.operators[0]
        op = replace(op, arguments=(*op.arguments, m.Argument("s", m.ArgumentKind.FLOAT)))
        write(replace(pack, operators=(op,)), folder / "m.pack"); lib = Opened(folder / "m.pack")
        driver.standin_params(1)
        rng = np.random.default_rng(0)
        values = [1 + 2**-11 + 2**-40, 1 + 2**-11, -(1 + 2**-11 + 2**-40), 65519.999, 65520.0, 1e300, -1e300, 5e-324, 2**-25, 2**-25 + 2**-60, 0.0, -0.0]
        values += list(rng.standard_normal(300) * 10.0 ** rng.integers(-9, 6, 300))
        for v in values:
            args = (Value * 4)()
            for value, t in zip(args, (tz, tx, ty)): value.kind, value.tensor = 1, ctypes.addressof(t)
            args[3].kind = 3
            args[3].tensor = struct.unpack("<Q", struct.pack("<d", v))[0]
            assert lib.api.run(lib.handle, 0, args, 4, None) == 0
            with np.errstate(over="ignore", under="ignore"): assert record.params[0] == reference(v), (scalar, v)
    """)


HIP = """
    import ctypes as c
    hip = c.CDLL(hip_path)
    class Counts(c.Structure):
        _fields_ = [(n, c.c_int64) for n in "launches cooperative loads unloads allocations frees memsets device grid_x block_x".split()]
    hip.standin_hip_record.restype = c.POINTER(Counts)
    counts = hip.standin_hip_record().contents
    tz, tx, ty = (tensor(a, device=(10, 1)) for a in (z, x, y))
"""


def hip(run, standin_build, body: str, **environment: str) -> str:
    path = str(standin_build / "libstandin_hip.so")
    return run(
        f"    hip_path = {path!r}" + HIP + body,
        PRECAST_HIP_DRIVER=path,
        PRECAST_CUDA_DRIVER="nowhere.so",
        **environment,
    )


def test_hip_calls(run, standin_build):
    hip(
        run,
        standin_build,
        """
    import json
    params = (*(m.Param(m.ParamKind.POINTER, m.ScalarType.POINTER, i) for i in range(3)), m.Param(m.ParamKind.SLOT, m.ScalarType.I32, 0),
              m.Param(m.ParamKind.WORKSPACE, m.ScalarType.POINTER, 0))
    lib = opened(targets=("gfx90a", "gfx942"), params=params, workspaces=(("w", 100, True),))
    assert lib.call(tz, tx, ty) == ("PRECAST_OK", "")
    assert (z == x + y).all() and (counts.launches, counts.device, counts.grid_x, counts.block_x) == (1, 1, 3, 128)
    assert (counts.allocations, counts.frees, counts.memsets, counts.cooperative) == (1, 1, 1, 0)
    now = c.c_int(); hip.hipGetDevice(c.byref(now)); assert now.value == 0
    assert json.loads(lib.call(tz, tx, ty, function="explain")[1])["target"] == "gfx942"
    status, message = lib.call(tz, tx, tensor(y, device=(2, 1)))
    assert status == "PRECAST_INVALID_ARGUMENT", message
    status, message = lib.call(*(tensor(a, device=(10, 2)) for a in (z, x, y)))
    assert status == "PRECAST_INVALID_ARGUMENT" and "there is no HIP device 2: there are 2" in message
    lib.api.release(lib.handle); assert counts.unloads == counts.loads == 1
    coop = opened(targets=("gfx942",), variant=dict(flags=1))
    assert coop.call(tz, tx, ty)[0] == "PRECAST_OK" and counts.cooperative == 1
    """,
    )


def test_hip_capture_and_targets(run, standin_build):
    hip(
        run,
        standin_build,
        """
    lib = opened(targets=("gfx1100",)); hip.standin_hip_capture(1)
    assert lib.call(tz, tx, ty)[0] == "PRECAST_NOT_WARM"
    hip.standin_hip_capture(0)
    options = Options(ctypes.sizeof(Options), None, None)
    assert lib.api.warmup(lib.handle, 0, 1, None, 0, ctypes.byref(options)) == 0
    hip.standin_hip_capture(1)
    assert lib.call(tz, tx, ty)[0] == "PRECAST_OK"
    status, message = opened(targets=("gfx942", "sm_90")).call(tz, tx, ty)
    assert status == "PRECAST_NO_TARGET" and "gfx1100" in message and "gfx942, sm_90" in message
    """,
        STANDIN_ARCH="gfx1100",
    )


def test_two_copies_and_a_closed_one(standin_build, tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent))
    from standin import add_pack

    from precast.build.link import link_library
    from precast.pack.writer import dump

    pack = add_pack()
    for name in ("one", "two"):
        link_library(pack, {"": dump(pack)}, tmp_path / name)
    files = [tmp_path / name / "libstandin.so" for name in ("one", "two")]
    command = [standin_build / "two_copies_test", *files, "precast_library_standin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "good\n"), (done.returncode, done.stderr)


def test_a_small_pack_can_not_ask_for_much_memory(run):
    run("""
    import resource, struct, zlib, zstandard
    from precast.pack.inspect import PackError, inspect_bytes
    from precast.pack.writer import FORMAT_VERSION
    raw = 256 << 20
    stored = zstandard.ZstdCompressor(level=1).compress(bytes(raw))
    header = struct.pack("<8sIIQ16sQQQI", b"PRECAST\\0", FORMAT_VERSION, 72, 72 + len(stored), bytes(16), 72, len(stored), raw, zlib.crc32(stored))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try: inspect_bytes(header + struct.pack("<I", zlib.crc32(header)) + stored, "bomb")
    except PackError as error: assert "damaged" in str(error)
    else: raise AssertionError("the bomb was read")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10
    """)


def test_questions_are_no_errors_in_the_log(run):
    said = run(
        """
    lib = opened(); assert lib.call(tz, tx, tensor(aligned(7)), function="supports")[0] != "PRECAST_OK"
    """,
        PRECAST_LOG="error",
    )
    assert "must be" not in said


def test_a_refused_call_is_not_recorded(run, tmp_path):
    run(
        """
    lib = opened(); assert lib.call(tz, tx, ty)[0] == "PRECAST_DRIVER_ERROR"
    lib.api.release(lib.handle); assert not Path("record.jsonl").exists() or not Path("record.jsonl").read_text()
    """,
        PRECAST_RECORD="record.jsonl",
        STANDIN_FAIL="cuLaunchKernel=719",
    )


def test_warmup_of_the_kind_of_device_that_was_named(run, standin_build):
    run(
        """
    lib = opened(targets=("sm_90", "gfx942"))
    options = Options(ctypes.sizeof(Options), None, None, 10, 0)
    assert lib.api.warmup(lib.handle, -1, 0, None, 0, ctypes.byref(options)) == 0, lib.api.last_error()
    assert record.loads == 0
    options.device_type = 2
    assert lib.api.warmup(lib.handle, -1, 0, None, 0, ctypes.byref(options)) == 0 and record.loads > 0
    """,
        PRECAST_HIP_DRIVER=str(standin_build / "libstandin_hip.so"),
    )


def test_what_the_driver_s_compiler_says_is_told(run):
    run(
        """
    status, message = opened().call(tz, tx, ty)
    assert status == "PRECAST_DRIVER_ERROR" and "says: ptxas fatal: planted" in message, message
    """,
        STANDIN_FAIL="cuModuleLoadDataEx=218",
    )
