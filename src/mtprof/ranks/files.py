"""The trace files in a folder, and one function run on all of them: here, by a pool of processes, or on Dask."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..errors import BadFile
from ..store.arrow import MAGIC
from .digest import Digest, digest

__all__ = ["check", "choose_run", "digests", "traces_in"]

_SUFFIXES = (".json", ".json.gz")
_TOGETHER = 64  # files in flight at once, so that results do not pile up


def traces_in(folder: str) -> list[str]:
    """Trace files. If there are .mtp files, Chrome traces beside them are the same recordings and are left out."""
    own, other = [], []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.is_file():
            continue
        if entry.name.endswith(_SUFFIXES):
            other.append(entry.path)
            continue
        with open(entry.path, "rb") as file:
            start = file.read(len(MAGIC))
        # An empty .mtp is a recording whose writer was killed before it wrote anything.
        if start == MAGIC or entry.name.endswith(".mtp"):
            own.append(entry.path)
    found = own or other
    if not found:
        raise IsADirectoryError(errno.EISDIR, f"{folder} is a directory without traces in it", folder)
    return found


def digests(paths: Sequence[str], workers: int = 1, dask: str | None = None,
            progress: Callable[[int], None] | None = None) -> list[Digest]:
    """What is kept of each file, in their order."""
    if dask is not None:
        made = _on_dask(paths, dask)
    elif workers > 1 and len(paths) > 1:
        made = _in_pool(paths, min(workers, len(paths)))
    else:
        made = (digest(path, number) for number, path in enumerate(paths))
    found = []
    for one in made:
        found.append(one)
        if progress is not None:
            progress(len(found))
    return found


def _in_pool(paths: Sequence[str], workers: int) -> Iterator[Digest]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for low in range(0, len(paths), _TOGETHER):
            part = range(low, min(low + _TOGETHER, len(paths)))
            yield from pool.map(digest, [paths[number] for number in part], part)


def _on_dask(paths: Sequence[str], address: str) -> Iterator[Digest]:
    """The workers must see the files under the same paths."""
    try:
        from distributed import Client
    except ImportError as error:
        raise BadFile(f"Dask is not installed here ({error}): pip install 'mindtorch-v2[dask]'") from error
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise BadFile(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        for low in range(0, len(paths), _TOGETHER):
            part = range(low, min(low + _TOGETHER, len(paths)))
            made: list[Any] = client.map(digest, [os.path.abspath(paths[number]) for number in part], list(part),
                                         pure=False)
            yield from client.gather(made)


def choose_run(folder: str, found: Iterable[Digest], run: str | None) -> list[Digest]:
    """The files of one run, by rank. If a folder has several runs, `run` chooses one."""
    readable = [one for one in found if not one.error]
    runs: dict[str, list[Digest]] = {}
    for one in readable:
        runs.setdefault(one.run, []).append(one)
    if len(runs) == 2 and "" in runs:
        name = max(runs)
        taken = {one.rank for one in runs[name]}
        if not any(one.rank in taken for one in runs[""]):  # from ranks that ended before their file stated the run
            for one in runs.pop(""):
                one.problems.append(f"{one.name} does not say which run it belongs to; run {name} is assumed")
                runs[name].append(one)
    if run is not None:
        if run not in runs:
            known = ", ".join(sorted(name for name in runs if name)) or "none with a name"
            raise BadFile(f"{folder} has no run {run!r}; it has: {known}")
        readable = runs[run]
    elif len(runs) > 1:
        listed = "; ".join(f"run {name or 'without a name'}: {', '.join(one.name for one in files[:3])}"
                           f"{f' and {len(files) - 3} more' if len(files) > 3 else ''}"
                           for name, files in runs.items())
        raise BadFile(f"{folder} has more than one run ({listed}); choose one with --run")
    chosen: dict[int, Digest] = {}
    for one in readable:
        if one.rank in chosen:
            raise BadFile(f"{folder} has more than one run: {chosen[one.rank].name} and {one.name} are both from rank "
                          f"{one.rank}")
        chosen[one.rank] = one
    sizes = {one.world_size for one in readable if one.world_size}
    if len(sizes) > 1:
        raise BadFile(f"{folder} has more than one run: its files are from runs of {sorted(sizes)} ranks")
    return [chosen[rank] for rank in sorted(chosen)]


def check(found: Sequence[Digest], chosen: Sequence[Digest]) -> list[str]:
    """What is wrong with the files, as sentences."""
    problems = [f"{one.name} cannot be read: {one.error}" for one in found if one.error]
    problems += [problem for one in chosen for problem in one.problems]
    size = max((one.world_size for one in chosen), default=0)
    missing = sorted(set(range(size)) - {one.rank for one in chosen})
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        problems.append(f"no file of rank {listed} (of {size})")
    return problems
