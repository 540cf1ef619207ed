"""Building whole libraries: what is written, what it needs, and what goes wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from precast.build.build import BuildOptions
from precast.build.finish import build_library
from precast.build.link import LibraryError
from precast.pack.inspect import PackError, inspect_file
from precast.pack.writer import FORMAT_VERSION, MAGIC
from precast.runtime import errors, load
from precast.targets import parse_targets


def build(families: Path, cache: Path, out: Path, *, targets: str = "sm_90,gfx942", split: bool = False):
    return build_library(families / "autotuned", out, BuildOptions(parse_targets(targets), cache=cache), split=split)


@pytest.fixture(scope="module")
def built(families: Path, compile_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    build(families, compile_cache, out)
    return out


def test_the_library_needs_only_the_c_library_and_exports_one_symbol(built: Path) -> None:
    with (built / "libautotuned.so").open("rb") as file:
        elf = ELFFile(file)
        dynamic = next(s for s in elf.iter_sections() if isinstance(s, DynamicSection))
        needed = [t.needed for t in dynamic.iter_tags() if t.entry.d_tag == "DT_NEEDED"]
        assert needed == ["libc.so.6"]
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        exported = [s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and s["st_info"]["bind"] != "STB_LOCAL"]
        assert exported == ["precast_library_autotuned"]
        pack = elf.get_section_by_name(".precast_pack")
        assert file.seek(0, 2) - pack["sh_size"] < 1 << 20
        constructors = elf.get_section_by_name(".init_array")
        assert constructors is None or constructors["sh_size"] == 8  # the compiler's own frame registration


def test_inspect_lists_both_targets(built: Path) -> None:
    content = inspect_file(built / "libautotuned.so", verify=True)
    assert [c["targets"] for c in content] == [["sm_90", "gfx942"]]


def test_an_unchanged_build_writes_nothing(families: Path, compile_cache: Path, built: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in built.rglob("*") if p.is_file() and not p.name.startswith(".")}
    again = build(families, compile_cache, built)
    assert again.unchanged and again.built.tally.compiled == 0
    assert {p: p.stat().st_mtime_ns for p in before} == before
    (built / "include" / "autotuned.h").write_text("damaged")
    assert not build(families, compile_cache, built).unchanged
    assert "precast_library_autotuned" in (built / "include" / "autotuned.h").read_text()


def test_a_damaged_library_is_told_not_loaded(built: Path, tmp_path: Path) -> None:
    data = bytearray((built / "libautotuned.so").read_bytes())
    at = data.index(MAGIC + bytes([FORMAT_VERSION]))
    data[at + 100] ^= 1
    damaged = tmp_path / "libautotuned.so"
    damaged.write_bytes(data)
    with pytest.raises(PackError, match="damaged"):
        inspect_file(damaged, verify=True)
    script = f"import precast\ntry: precast.load({str(damaged)!r})\nexcept Exception as e: print(type(e).__name__, e)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "BadPackError" in done.stdout and "checksum" in done.stdout


def test_load_refuses_what_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "libnone.so")
    (tmp_path / "other.so").write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(errors.BadPackError):
        load(tmp_path / "other.so")
    (tmp_path / "short.pack").write_bytes(b"PRECAST\0")
    with pytest.raises(errors.BadPackError, match="no precast pack"):
        load(tmp_path / "short.pack")


def test_split_packs_lie_beside_the_library(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    build(families, compile_cache, tmp_path, split=True)
    assert sorted(p.name for p in tmp_path.glob("*.pack")) == ["libautotuned.gfx942.pack", "libautotuned.sm_90.pack"]
    assert sorted(t for c in inspect_file(tmp_path / "libautotuned.so", verify=True) for t in c["targets"]) == [
        "gfx942",
        "sm_90",
    ]
    library = tmp_path / "libautotuned.so"

    def told(script: str) -> str:
        text = f"import precast\ntry: print(precast.load({str(library)!r}).targets)\nexcept Exception as e: print(type(e).__name__, e)"
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout

    assert "sm_90" in told("") and "gfx942" in told("")
    (tmp_path / "libautotuned.gfx942.pack").unlink()
    assert "gfx942" not in told("")  # only the packs that are there count
    shutil.copy(tmp_path / "libautotuned.sm_90.pack", tmp_path / "kept")
    (tmp_path / "libautotuned.sm_90.pack").unlink()
    assert "NoPackError" in told("")
    other = tmp_path / "other"
    build(families, compile_cache, other, targets="sm_80,sm_90", split=True)
    shutil.copy(other / "libautotuned.sm_80.pack", tmp_path / "libautotuned.sm_90.pack")
    assert "VersionMismatchError" in told("") and "build id" in told("")


def test_two_copies_in_one_process(built: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(built / "libautotuned.so", tmp_path / name)
    script = (
        f"import precast\na, b = (precast.load({str(tmp_path)!r} + f'/{{n}}/libautotuned.so') for n in 'ab')\n"
        "assert a._handle != b._handle and a.build_id == b.build_id\nprint('both')"
    )
    assert "both" in subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_no_compiler(families: Path, compile_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(LibraryError, match=r"no C\+\+ compiler"):
        build(families, compile_cache, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.so"))


def test_an_output_that_is_a_file(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(LibraryError, match="can't be written"):
        build(families, compile_cache, tmp_path / "out")


def build_on_tmpfs(options: str, where: Path, families: Path, cache: Path, *, cache_there: bool = False) -> str:
    """What `precast build` says when its output folder is a file system of its own, and what it left there."""
    mounted = where / "mounted"
    mounted.mkdir(exist_ok=True)
    used = mounted / "cache" if cache_there else cache
    script = (
        f"mount -t tmpfs -o {options} tmpfs {mounted} && {sys.executable} -m precast.cli.main build "
        f"{families / 'autotuned'} --targets sm_90 -o {mounted}/out --cache {used}; echo code $?; "
        f"find {mounted} -type f"
    )
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "code" not in done.stdout:
        pytest.skip(f"file systems can't be mounted here: {done.stderr}")
    return done.stdout + done.stderr


def test_a_full_disk_leaves_nothing_half_written(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    build(families, compile_cache, tmp_path / "elsewhere", targets="sm_90")  # the compiles are in the cache
    said = build_on_tmpfs("size=64k", tmp_path, families, compile_cache)
    assert "code 2" in said and "can't be written: the disk is full" in " ".join(said.split()), said
    assert "mounted/out/lib" not in said and "Traceback" not in said


def test_a_full_disk_under_the_compile_cache(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    said = build_on_tmpfs("size=16k", tmp_path, families, compile_cache, cache_there=True)
    assert "code 2" in said and "give another folder with --cache" in " ".join(said.split()), said
    assert ".new-" not in said and "Traceback" not in said


def test_a_read_only_output(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    said = build_on_tmpfs("ro", tmp_path, families, compile_cache)
    assert "code 2" in said and "can't be written: it is read-only" in " ".join(said.split()), said


def test_two_builds_into_one_folder_at_once(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    failures: list[Exception] = []

    def work() -> None:
        try:
            build(families, compile_cache, tmp_path)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    inspect_file(tmp_path / "libautotuned.so", verify=True)


CONSUMER = """
#include <cstdio>
#include "autotuned.hpp"
int main() {
  using namespace precast::autotuned;
  float memory[4] = {};
  Tensor x(memory, kFloat32, {4}, {}, 0, PRECAST_CPU), y(memory, kFloat32, {4}, {}, 0, PRECAST_CPU);
  const Status status = scale(y, x, 2.0);
  std::printf("%d %s\\n", status, LastError().c_str());
  return status == PRECAST_INVALID_ARGUMENT ? 0 : 1;
}
"""


def test_a_cmake_project_finds_the_library(built: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(CONSUMER)
    (tmp_path / "plain.c").write_text('#include "autotuned.h"\nint used(void) { return autotuned_scale_index; }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(consumer C CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(autotuned 0.1 REQUIRED)\nadd_executable(consumer main.cpp plain.c)\n"
        "target_compile_options(consumer PRIVATE -Wall -Wextra -Werror)\ntarget_link_libraries(consumer precast::autotuned)\n"
    )
    cmake = shutil.which("cmake") or "cmake"
    configure = [cmake, "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={built}"]
    subprocess.run(configure, check=True, capture_output=True)
    done = subprocess.run([cmake, "--build", tmp_path / "b"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = subprocess.run([tmp_path / "b" / "consumer"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "y is on the CPU" in ran.stdout, ran.stdout + ran.stderr


def test_pkg_config_finds_the_library(built: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    env = {**os.environ, "PKG_CONFIG_PATH": str(built / "pkgconfig")}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "autotuned"], env=env, capture_output=True, text=True, check=True
    ).stdout.split()
    (tmp_path / "main.cpp").write_text(CONSUMER)
    compiler = shutil.which("c++") or "g++"
    command = [compiler, "-std=c++17", tmp_path / "main.cpp", "-o", tmp_path / "main", *flags, f"-Wl,-rpath,{built}"]
    subprocess.run(command, check=True)
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=False).returncode == 0
