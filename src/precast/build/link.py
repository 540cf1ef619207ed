"""Linking: packs and the runtime into one library, with what C, C++, CMake and pkg-config need to find it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from precast.build.headers import c_header, cpp_header
from precast.errors import UserError
from precast.native import native_file, native_folder
from precast.pack.model import Pack

__all__ = ["LibraryError", "find_compiler", "link_library"]

COMPILE_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti")
LINK_FLAGS = (
    "-shared", "-static-libstdc++", "-static-libgcc", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic",
    "-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,--as-needed", "-Wl,-s",  # nodelete: threads that end later free their texts
)  # fmt: skip


class LibraryError(UserError):
    """The library can't be linked or written; the message says what to do."""


def find_compiler() -> list[str]:
    """The system's C++ compiler: $CXX, c++, g++ or clang++.

    Raises:
        LibraryError: if there is none.
    """
    given = os.environ.get("CXX")
    if given and shutil.which(shlex.split(given)[0]):
        return shlex.split(given)
    for name in () if given else ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found]
    raise LibraryError(
        f"no C++ compiler ({given or 'c++, g++, clang++'}): install one (on Debian and Ubuntu: apt-get install g++), "
        "or set CXX"
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One build at a time may write into a folder."""
    with (folder / ".precast-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_id(pack: bytes) -> str:
    return pack[24:40].hex()


def _cmake_config(family: str) -> str:
    return f"""# Finds the {family} library beside this file's folder: target precast::{family}.
get_filename_component(_{family}_root "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
if(NOT TARGET precast::{family})
  add_library(precast::{family} SHARED IMPORTED)
  set_target_properties(precast::{family} PROPERTIES
    IMPORTED_LOCATION "${{_{family}_root}}/lib{family}.so"
    IMPORTED_SONAME "lib{family}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${{_{family}_root}}/include")
endif()
unset(_{family}_root)
"""


def _cmake_version(version: str) -> str:
    return f"""set(PACKAGE_VERSION "{version}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def _pkg_config(family: str, version: str) -> str:
    return f"""root=${{pcfiledir}}/..
Name: {family}
Description: GPU kernels built by precast
Version: {version}
Cflags: -I${{root}}/include
Libs: -L${{root}} -l{family}
"""


def _compile(pack: Pack, packs: dict[str, bytes], work: Path) -> None:
    """Compiles the one file of a library in `work`, where its packs are."""
    family = pack.family
    native = native_folder()
    defines = [f"-DPRECAST_FAMILY={family}"]
    if "" in packs:
        embedded = work / "embedded.pack"
        defines.append(f'-DPRECAST_PACK="{embedded.name}"')
    else:
        files = ",".join(f'"lib{family}.{target}.pack"' for target in packs)
        ids = ",".join(f'"{_build_id(data)}"' for data in packs.values())
        defines += [f"-DPRECAST_PACK_FILES={files}", f"-DPRECAST_BUILD_IDS={ids}"]
    command = [
        *find_compiler(), *COMPILE_FLAGS, *LINK_FLAGS, *defines, f"-I{native / 'include'}", f"-I{native / 'src'}",
        str(native_file("library/library.cpp")), str(native_file("libprecast_runtime.a")),
        f"-Wl,--version-script={native_file('library/exports.map')}", f"-Wl,-soname,lib{family}.so",
        "-o", f"lib{family}.so",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        full = os.strerror(errno.ENOSPC)
        if full in done.stderr:
            raise OSError(errno.ENOSPC, full)
        raise LibraryError(f"linking lib{family}.so failed:\n{done.stderr.strip()[-2000:]}")


def link_library(pack: Pack, packs: dict[str, bytes], output: Path) -> list[Path]:
    """Writes a library and all that comes with it into a folder; each file whole or not at all.

    Args:
        pack: what the library is made of; its operators make the headers.
        packs: bytes of the pack by target; a single one named "" goes into the library.
        output: the folder; made if it isn't there.

    Returns:
        The files written.

    Raises:
        LibraryError: if there is no compiler, linking fails, or the folder can't be written.
    """
    family, version = pack.family, pack.precast_version
    try:
        output.mkdir(parents=True, exist_ok=True)
        with _locked(output), tempfile.TemporaryDirectory(dir=output, prefix=".precast-") as folder:
            work = Path(folder)
            for target, data in packs.items():
                (work / (f"lib{family}.{target}.pack" if target else "embedded.pack")).write_bytes(data)
            _compile(pack, packs, work)
            (work / "embedded.pack").unlink(missing_ok=True)
            texts = {
                f"include/{family}.h": c_header(pack),
                f"include/{family}.hpp": cpp_header(pack),
                "include/precast/precast.h": native_file("include/precast/precast.h").read_text(),
                f"lib/cmake/{family}/{family}Config.cmake": _cmake_config(family),
                f"lib/cmake/{family}/{family}ConfigVersion.cmake": _cmake_version(version),
                f"pkgconfig/{family}.pc": _pkg_config(family, version),
            }
            for name, text in texts.items():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                (work / name).write_text(text)
            return _publish(work, output, family)
    except OSError as error:
        reason = {errno.ENOSPC: "the disk is full", errno.EROFS: "it is read-only", errno.EACCES: "no permission"}
        raise LibraryError(
            f"{output} can't be written: {reason.get(error.errno or 0, error.strerror or error)}; nothing there was "
            "changed that is not whole"
        ) from error


def _publish(work: Path, output: Path, family: str) -> list[Path]:
    """Moves finished files into place: packs before the library that expects them."""
    files = sorted((p for p in work.rglob("*") if p.is_file()), key=lambda p: (p.suffix == ".so", str(p)))
    for stale in output.glob(f"lib{family}.*.pack"):
        if not (work / stale.name).exists():
            stale.unlink()
    written = []
    for file in files:
        place = output / file.relative_to(work)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, place)
        written.append(place)
    return written
