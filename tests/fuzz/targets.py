"""What is fuzzed: a function of bytes, the errors it may raise, the seeds, and how inputs are changed."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import mutate

CORPUS = pathlib.Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Target:
    """`run` raises one of `allowed`, or returns; anything else is a finding."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    mutators: tuple[mutate.Mutator, ...]
    allowed: Callable[[BaseException], bool]
    watched: tuple[str, ...]  # the files whose lines are counted
    quick: int  # how many inputs a quick run tries


def corpus(name: str) -> list[bytes]:
    """The files of the repository for a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


# -- checkpoints -----------------------------------------------------------------------------------------------------


def _load_checkpoint(data: bytes) -> None:
    import mindtorch_v2 as torch

    made = torch.load(io.BytesIO(data))
    if isinstance(made, torch.Tensor) and made.numel() < 1000:
        made.tolist()


def _checkpoint_seeds() -> list[bytes]:
    import mindtorch_v2 as torch

    objects: list[Any] = [
        {"w": torch.arange(6.0).view(2, 3).t(), "b": torch.ones(2, dtype=torch.bfloat16), "n": [1, "a", None, 2.5]},
        torch.nn.Parameter(torch.ones(2)), torch.Size([2]), torch.tensor([1 + 2j]),
        (torch.float16, torch.device("cpu")), torch.arange(4).to(torch.uint16)[1:], torch.nn.Linear(2, 1).state_dict(),
    ]
    seeds = []
    for one in objects:
        buffer = io.BytesIO()
        torch.save(one, buffer)
        seeds.append(buffer.getvalue())
    return seeds


def _checkpoint_error(error: BaseException) -> bool:
    return isinstance(error, (RuntimeError, ValueError, EOFError, pickle.UnpicklingError)) and not isinstance(
        error, (RecursionError, UnicodeError))


# -- traces ----------------------------------------------------------------------------------------------------------

_NAME = "fuzzed-input"


def _load_trace(suffix: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        import mtprof

        with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = os.path.join(directory, _NAME + suffix)
            pathlib.Path(path).write_bytes(data)
            recording = mtprof.load(path)
            recording.key_averages().table()
            recording.events()
            recording.step_summary()
            again = os.path.join(directory, "again.json")
            recording.export_chrome_trace(again)
            if len(mtprof.load(again).trace) != len(recording.trace):
                raise AssertionError("the trace has another number of events when it is written and read again")

    return run


def _recorded() -> Any:
    import mindtorch_v2 as torch

    model = torch.nn.Linear(2, 2)
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True,
                                with_flops=True) as prof:
        with torch.profiler.record_function("ProfilerStep#3"):
            model(torch.ones(1, 2)).sum().backward()
        prof.step()
        torch.cat([torch.ones(2), torch.zeros(1)])
    return prof


def _exported(suffix: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        prof = _recorded()
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / f"t{suffix}"
            (prof.save if suffix == ".mtp" else prof.export_chrome_trace)(path)
            return [path.read_bytes()]

    return seeds


def _trace_error(error: BaseException) -> bool:
    return isinstance(error, ValueError) and _NAME in str(error)


TARGETS = {target.name: target for target in (
    Target("checkpoint", _load_checkpoint, _checkpoint_seeds, (mutate.some_bytes, mutate.archive, mutate.pickles),
           _checkpoint_error, ("_serialization/", "mindtorch_v2/serialization.py"), 4000),
    Target("kineto", _load_trace(".json"), _exported(".json"), (mutate.some_bytes, mutate.json_values), _trace_error,
           ("mtprof/store/", "mtprof/builder.py", "mtprof/tables/", "mtprof/views/", "mtprof/export/"), 1000),
    Target("recording", _load_trace(".mtp"), _exported(".mtp"), (mutate.some_bytes, mutate.cuts), _trace_error,
           ("mtprof/store/", "mtprof/builder.py", "mtprof/tables/"), 1000),
)}
