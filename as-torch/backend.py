"""Builds `mindtorch-v2-as-torch`: the files of `mindtorch_v2/_as_torch`, put on the path of an environment for good.

The wheel holds these files in a directory of their own and a `.pth` file that names it. Python puts the directory at
the end of `sys.path`, so an installed PyTorch keeps its name, and pip sees a distribution `torch` there: libraries that
require PyTorch install without it. It is built by hand because no build tool puts a `.pth` file into a wheel.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sysconfig
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "mindtorch_v2_as_torch"


def sources() -> Path:
    """The files to install: in a checkout those of the package, in a source distribution a copy beside this file."""
    copied = HERE / "_as_torch"
    return copied if copied.is_dir() else HERE.parent / "src" / "mindtorch_v2" / "_as_torch"


def version() -> str:
    """That of the package, which stands in the local part of the version of `torch`."""
    metadata, = sources().glob("torch-*.dist-info/METADATA")
    found = re.search(r"^Version: .*\+mindtorch\.(.+)$", metadata.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{metadata} does not say for which mindtorch-v2 it stands")
    return found[1]


def refuse_beside_pytorch() -> None:
    """Raise where a PyTorch is installed: it would keep the name, and this distribution would have no effect."""
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        if (Path(place) / "torch" / "__init__.py").exists():
            raise SystemExit(f"PyTorch is installed in {place}. mindtorch-v2-as-torch does not take its name: "
                             "uninstall PyTorch first, use another environment, or `python -m mindtorch_v2 script.py`.")


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Write the wheel; PEP 517."""
    refuse_beside_pytorch()
    files = {f"{NAME}.pth": f"{NAME}\n".encode()}
    for path in sorted(sources().rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[f"{NAME}/{path.relative_to(sources()).as_posix()}"] = path.read_bytes()
    info = f"{NAME}-{version()}.dist-info"
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: mindtorch-v2\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    made = f"{NAME}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
    return made


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Write the source distribution; PEP 517."""
    stem = f"{NAME}-{version()}"
    with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
        for name in ("pyproject.toml", "backend.py"):
            archive.add(HERE / name, f"{stem}/{name}")
        archive.add(sources(), f"{stem}/_as_torch", filter=lambda one: None if "__pycache__" in one.name else one)
        information = Path(sdist_directory) / "PKG-INFO"
        information.write_text(metadata(), "utf-8")
        archive.add(information, f"{stem}/PKG-INFO")
        information.unlink()
    return f"{stem}.tar.gz"


def metadata() -> str:
    """What the distribution says of itself."""
    return (f"Metadata-Version: 2.1\nName: mindtorch-v2-as-torch\nVersion: {version()}\n"
            "Summary: import torch means mindtorch_v2, in every program of an environment. This is not PyTorch.\n"
            f"License: Apache-2.0\nRequires-Python: >=3.10\nRequires-Dist: mindtorch-v2 (=={version()})\n")


def digest(content: bytes) -> str:
    """A hash as RECORD files have it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
