"""`torch.utils.collect_env`: facts about the machine and the program's libraries, for bug reports."""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import subprocess
import sys
from typing import Any, NamedTuple

from ..version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str", "run"]
PACKAGES = ("mindtorch", "mtprof", "numpy", "ml_dtypes", "orjson", "onednn-cpu-gomp", "mpi4py", "torch", "torchvision")


class SystemEnv(NamedTuple):
    """The facts, as texts; "N/A" for what is not here."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str
    clang_version: str
    cmake_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cpu_info: str
    packages: tuple[str, ...]


def run(command: Any) -> tuple[int, str, str]:
    """A command's exit code, output and errors."""
    done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, check=False)
    encoding = locale.getpreferredencoding()
    return (done.returncode, done.stdout.decode(encoding, "replace").strip(),
            done.stderr.decode(encoding, "replace").strip())


def _first_line(*command: str) -> str:
    try:
        code, out, _ = run(list(command))
    except OSError:
        return "Could not collect"
    return out.splitlines()[0] if code == 0 and out else "Could not collect"


def _packages() -> tuple[str, ...]:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"[pip3] {name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)


def get_env_info() -> SystemEnv:
    """The facts."""
    return SystemEnv(
        torch_version=__version__, is_debug_build="False", cuda_compiled_version="None",
        gcc_version=_first_line("gcc", "--version"), clang_version=_first_line("clang", "--version"),
        cmake_version=_first_line("cmake", "--version"), os=f"{platform.system()} ({platform.machine()})",
        libc_version="-".join(platform.libc_ver()) or "N/A",
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
        python_platform=platform.platform(), is_cuda_available="False",
        cpu_info=f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors", packages=_packages())


def pretty_str(envinfo: SystemEnv) -> str:
    """The facts in lines."""
    packages = "\n".join(envinfo.packages) or "No relevant packages"
    return "\n".join([
        f"PyTorch version: {envinfo.torch_version}", f"Is debug build: {envinfo.is_debug_build}",
        f"CUDA used to build PyTorch: {envinfo.cuda_compiled_version}", "", f"OS: {envinfo.os}",
        f"GCC version: {envinfo.gcc_version}", f"Clang version: {envinfo.clang_version}",
        f"CMake version: {envinfo.cmake_version}", f"Libc version: {envinfo.libc_version}", "",
        f"Python version: {envinfo.python_version}", f"Python platform: {envinfo.python_platform}",
        f"Is CUDA available: {envinfo.is_cuda_available}", "", "CPU:", envinfo.cpu_info, "",
        "Versions of relevant libraries:", packages])


def get_pretty_env_info() -> str:
    """All of it as one text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
