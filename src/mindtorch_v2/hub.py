"""`torch.hub`: entry points of repositories that are on this machine. Nothing is downloaded by this runtime."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from ._absent import refusing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
           "urlparse"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the part of a file's name that its checksum begins with
REASON = ("torch.hub.{0}: this runtime does not download code or weights. Fetch the file yourself and use torch.load, "
          "or import the repository's Python code.")

MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"
ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR = "TORCH_HOME", "XDG_CACHE_HOME", "~/.cache"
_refuse_load, _refuse_list, _refuse_help = (
    refusing(name, NotImplementedError, REASON) for name in ("load", "list", "help"))


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
         force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:
    """The result of a repository's entry point; with `source="local"` the repository is a directory."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    return _refuse_load() if source == "github" else _load_local(repo_or_dir, model, *args, **kwargs)


def list(github: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
         verbose: bool = True) -> Any:
    """The entry points of a repository that was downloaded into `get_dir()` before."""
    module = _hubconf(_downloaded(github) or _refuse_list())
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: Any, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: Any = None) -> Any:
    """The documentation of an entry point of a repository that was downloaded into `get_dir()` before."""
    return _load_entry_from_hubconf(_hubconf(_downloaded(github) or _refuse_help()), model).__doc__


def _load_local(hubconf_dir: str, model: str, *args: Any, **kwargs: Any) -> Any:
    """The result of an entry point in a directory."""
    with _add_to_sys_path(hubconf_dir):
        return _load_entry_from_hubconf(_hubconf(hubconf_dir), model)(*args, **kwargs)


def _hubconf(directory: str) -> ModuleType:
    with _add_to_sys_path(directory):
        return _import_module(MODULE_HUBCONF, os.path.join(directory, MODULE_HUBCONF))


def _downloaded(github: str) -> str | None:
    """The directory of a repository, if PyTorch has downloaded it."""
    owner, name, ref = _parse_repo_info(github)
    found = os.path.join(get_dir(), f"{owner}_{name}_{ref.replace('/', '_')}")
    return found if os.path.exists(found) else None


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and branch of `owner/name:branch`; the branch is `main` by default."""
    repository, _, ref = github.partition(":")
    owner, name = repository.split("/")
    return owner, name, ref or "main"


def _git_archive_link(repo_owner: str, repo_name: str, ref: str) -> str:
    """The address of a repository's archive on GitHub."""
    return f"https://github.com/{repo_owner}/{repo_name}/zipball/{ref}"


@contextmanager
def _add_to_sys_path(path: str) -> Iterator[None]:
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_module(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_attr_from_module(module: ModuleType, func_name: str) -> Any:
    return getattr(module, func_name, None)


def _check_module_exists(name: str) -> bool:
    """Whether a module can be imported."""
    return importlib.util.find_spec(name) is not None


def _check_dependencies(module: ModuleType) -> None:
    """Refuse a repository that needs modules which are not there."""
    missing = [name for name in _load_attr_from_module(module, VAR_DEPENDENCY) or () if not _check_module_exists(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _load_entry_from_hubconf(module: ModuleType, model: str) -> Any:
    """An entry point by its name."""
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(module)
    function = _load_attr_from_module(module, model)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


load_state_dict_from_url = refusing("load_state_dict_from_url", NotImplementedError, REASON)
download_url_to_file = refusing("download_url_to_file", NotImplementedError, REASON)


class _Place:
    """The directory that the user set for downloads."""

    directory: str | None = None


def get_dir() -> str:
    """The directory in which PyTorch keeps what it downloads."""
    if _Place.directory is not None:
        return _Place.directory
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The directory in which PyTorch keeps files of its own."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str) -> None:
    """Set what `get_dir` returns."""
    _Place.directory = os.path.expanduser(d)


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # libraries take it from here to show progress; nothing of this runtime needs it
        return importlib.import_module("tqdm").tqdm
    raise AttributeError(f"module 'torch.hub' has no attribute '{name}'")
