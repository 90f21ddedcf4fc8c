"""`torch.profiler._pattern_matcher`: common causes of slow programs, found in a recording.

This profiler does not record the runtime's own Python functions. Where PyTorch's patterns look for such a function
(`_single_tensor_adam`, `DataLoader.__iter__`), these look for the scopes and ops that the function leaves behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from mtprof.views.event_fields import EventType, TensorMetadata
from mtprof.views.event_tree import ProfilerEvent

from .. import _construct
from .._dispatch.namespace import find
from .._dtype import bfloat16, float16
from ..utils import benchmark as timing
from ._utils import index_of_first_match, traverse_bfs, traverse_dfs
from .pattern import Pattern, input_dtypes, input_shapes, source_code_location

__all__ = [
    "Conv2dBiasFollowedByBatchNorm2dPattern",
    "ExtraCUDACopyPattern",
    "FP32MatMulPattern",
    "ForLoopIndexingPattern",
    "GradNotSetToNonePattern",
    "MatMulDimInFP16Pattern",
    "NamePattern",
    "OptimizerSingleTensorPattern",
    "Pattern",
    "SynchronizedDataLoaderPattern",
    "report_all_anti_patterns",
]

_GUIDE = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
REPORT_FILE = "torchtidy_report.json"


class NamePattern(Pattern):
    """All events with a name."""

    def __init__(self, prof: Any, name: str, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.description = f"Matched Name Event: {name}"
        self.name = name

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it has the name."""
        return event.name == self.name


class _NeedsShapes(Pattern):
    """A pattern that needs the arguments of ops."""

    @property
    def skip(self) -> bool:
        """Whether arguments were not recorded."""
        return not self.prof.record_shapes


class _NeedsShapesAndStacks(_NeedsShapes):
    """A pattern that needs the arguments of ops and the calls around them."""

    @property
    def skip(self) -> bool:
        """Whether arguments or stacks were not recorded."""
        return super().skip or not self.prof.with_stack


class ExtraCUDACopyPattern(_NeedsShapesAndStacks):
    """A tensor that is filled on the CPU only to be moved to a device: the program could make it there."""

    name = "Extra CUDA Copy Pattern"
    description = "Filled a CPU tensor and immediately moved it to GPU. Please initialize it on GPU."
    url = f"{_GUIDE}#create-tensors-directly-on-the-target-device"
    init_ops = frozenset({"aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_"})

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is an `aten::to` to a device directly after the tensor was filled."""
        if event.name != "aten::to" or not _copies_to_device(event):
            return False
        before = self.prev_of(event)
        above = event.parent
        while before is None and above is not None:  # the call that made the copy comes after the one that filled
            before, above = self.prev_of(above), above.parent
        while before is not None and before.children:
            before = before.children[-1]
        filled = self.go_up_until(before, lambda found: found.name in self.init_ops)
        return filled is not None and filled.name in self.init_ops


def _copies_to_device(event: ProfilerEvent) -> bool:
    for below in traverse_dfs(event.children):
        if below.name == "aten::copy_":
            tensors = [given for given in below.extra_fields.inputs[:2] if isinstance(given, TensorMetadata)]
            if len(tensors) == 2 and tensors[0].device.type not in ("cpu", "meta") and tensors[1].device.type == "cpu":
                return True
    return False


class ForLoopIndexingPattern(Pattern):
    """Rows of a tensor that a loop takes one by one, where one op could take all of them."""

    name = "For Loop Indexing Pattern"
    description = "For loop indexing detected. Vectorization recommended."
    fewest_repeats = 10

    def __init__(self, prof: Any, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.visited: set[int] = set()

    def eventTreeTraversal(self) -> Iterable[ProfilerEvent]:
        """Level by level, so that the start of a loop comes before the rest of it."""
        yield from traverse_bfs(self.event_tree)

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is the first `aten::select` of a loop that does the same after each of them."""
        if event.name != "aten::select" or event.id in self.visited:
            return False
        row = [event, *self.siblings_of(event)[1]]
        starts = [place for place, other in enumerate(row) if other.name == "aten::select"]
        if len(starts) < 2:
            return False
        body = [other.name for other in row[:starts[1]]]
        self.visited.add(event.id)
        repeats = 1
        for start in starts[1:]:
            if [other.name for other in row[start:start + len(body)]] != body:
                break
            self.visited.update(other.id for other in row[start:start + len(body)])
            repeats += 1
        return repeats >= self.fewest_repeats


class FP32MatMulPattern(_NeedsShapes):
    """Matrix products in full precision on a device with a faster, reduced one."""

    name = "FP32 MatMul Pattern"
    description = ("You are currently using GPU that supports TF32. Please enable TF32 by setting "
                   "'torch.backends.cuda.matmul.allow_tf32 = True'")
    url = "https://pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-devices"

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is a matrix product without that permission; as in PyTorch, on any device."""
        return event.name == "aten::mm" and event.extra_fields.allow_tf32_cublas is False

    def report(self, event: ProfilerEvent) -> str:
        """Only the advice: it applies to the program, not to one place."""
        return self.description


class OptimizerSingleTensorPattern(Pattern):
    """An optimizer that updates parameters one by one, where it could update them together."""

    name = "Optimizer Single Tensor Pattern"
    description = ("Detected optimizer running with single tensor implementation. Please enable multi tensor "
                   "implementation by passing 'foreach=True' into optimizer.")
    optimizers_with_foreach = ("Adam", "SGD", "AdamW")
    together = ("aten::_foreach_", "aten::_fused_")

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is a step of such an optimizer that updates parameters, none of them together."""
        if event.name not in {f"Optimizer.step#{name}.step" for name in self.optimizers_with_foreach}:
            return False
        ops = [below.name for below in traverse_dfs(event.children) if below.tag is EventType.TorchOp]
        return any(name.endswith("_") for name in ops) and not any(name.startswith(self.together) for name in ops)


class SynchronizedDataLoaderPattern(Pattern):
    """A DataLoader that makes batches while the program waits."""

    name = "Synchronized DataLoader Pattern"
    description = ("Detected DataLoader running with synchronized implementation. Please enable asynchronous "
                   "dataloading by setting num_workers > 0 when initializing DataLoader.")
    url = f"{_GUIDE}#enable-async-data-loading-and-augmentation"
    scope = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is the first batch of a loop over a DataLoader without workers.

        A loop begins by drawing a seed; no other batch has this before it.
        """
        if event.name != self.scope:
            return False
        before = self.siblings_of(event)[0]
        last = next((place for place in reversed(range(len(before))) if before[place].name == self.scope), -1)
        return last < 0 or index_of_first_match(before, lambda other: other.name == "aten::random_", last) is not None


class GradNotSetToNonePattern(Pattern):
    """Gradients that are filled with zeros, although dropping them is cheaper."""

    name = "Gradient Set To Zero Instead of None Pattern"
    description = ("Detected gradient set to zero instead of None. Please add 'set_to_none=True' when calling "
                   "zero_grad().")
    url = f"{_GUIDE}#disable-gradient-calculation-for-validation-or-inference"

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is a `zero_grad` that fills."""
        if not event.name.endswith(": zero_grad"):
            return False
        return any(below.name in ("aten::zero_", "aten::_foreach_zero_") for below in traverse_dfs(event.children))


class Conv2dBiasFollowedByBatchNorm2dPattern(_NeedsShapes):
    """A bias that the batch normalization after the convolution removes again."""

    name = "Enabling Bias in Conv2d Followed By BatchNorm Pattern"
    description = ("Detected bias enabled in Conv2d that is followed by BatchNorm2d. Please set 'bias=False' in "
                   "Conv2d.")
    url = f"{_GUIDE}#disable-bias-for-convolutions-directly-followed-by-a-batch-norm"

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is a convolution with bias whose module is directly before a BatchNorm2d."""
        if event.name != "aten::conv2d" or len(input_dtypes(event)) < 3 or input_dtypes(event)[2] is None:
            return False
        module = self.go_up_until(event, lambda found: found.name.startswith("nn.Module: Conv2d"))
        following = None if module is None or not module.name.startswith("nn.Module: Conv2d") else self.next_of(module)
        while following is not None and following.tag is EventType.Allocation:
            following = self.next_of(following)
        return following is not None and following.name.startswith("nn.Module: BatchNorm2d")


class MatMulDimInFP16Pattern(_NeedsShapesAndStacks):
    """Products of half precision matrices whose sizes do not suit the device."""

    name = "Matrix Multiplication Dimension Not Aligned Pattern"
    description = "Detected matmul with dimension not aligned. Please use matmul with aligned dimension."
    url = f"{_GUIDE}#use-mixed-precision-and-amp"
    products = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm")
    multiple = 8

    def match(self, event: ProfilerEvent) -> bool:
        """Whether it is such a product with a matrix size that is not a multiple of 8."""
        if event.name not in self.products or not any(kind in (float16, bfloat16) for kind in input_dtypes(event)):
            return False
        # The number of matrices does not matter.
        return any(size % self.multiple for shape in input_shapes(event) for size in shape[-2:])

    def benchmark(self, events: Sequence[ProfilerEvent]) -> dict[Any, float]:
        """For each combination of shapes, the time of the product with sizes rounded up, relative to its own."""
        result = {}
        for event in events:
            shapes = input_shapes(event)
            if shapes not in result:
                result[shapes] = self._seconds(event, self.multiple) / self._seconds(event, 1)
        return result

    def _seconds(self, event: ProfilerEvent, multiple: int) -> float:
        op = find(event.name.partition("::")[2])
        tensors = [
            _construct.tensor(1.0, dtype=given.dtype).expand([-(-size // multiple) * multiple for size in given.sizes])
            .contiguous() for given in event.extra_fields.inputs if isinstance(given, TensorMetadata)]
        return timing.Timer(stmt="op(*tensors)", globals={"op": op, "tensors": tensors}).timeit(10).mean


def report_all_anti_patterns(prof: Any, should_benchmark: bool = False, print_enable: bool = True,
                             json_report_dir: str | None = None) -> None:
    """Look for all patterns; print the matches, and write them to `torchtidy_report.json` in a directory."""
    patterns: list[Pattern] = [kind(prof, should_benchmark) for kind in (
        ExtraCUDACopyPattern, FP32MatMulPattern, OptimizerSingleTensorPattern, SynchronizedDataLoaderPattern,
        GradNotSetToNonePattern, Conv2dBiasFollowedByBatchNorm2dPattern, MatMulDimInFP16Pattern,
        ForLoopIndexingPattern)]
    summaries, said = [], []
    found_in: dict[str, list[dict[str, Any]]] = {}
    for pattern in patterns:
        events = pattern.matched_events()
        if not events:
            continue
        summaries.append(pattern.summary(events))
        for event in events:
            message = pattern.report(event)
            if message in said:
                continue
            said.append(message)
            file, _, line = source_code_location(event).rpartition(":")
            if file:
                found_in.setdefault(file, []).append({
                    "line_number": int(line), "name": pattern.name, "url": pattern.url, "message": pattern.description})
    if json_report_dir is not None:
        path = os.path.join(json_report_dir, REPORT_FILE)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file_before:
                found_in = {**json.load(file_before), **found_in}
        with open(path, "w", encoding="utf-8") as file_now:
            json.dump(found_in, file_now, indent=4)
    if print_enable:
        border = f"{'-' * 40}TorchTidy Report{'-' * 40}"
        print("\n".join([border, "Matched Events:", *said, "Summary:", *summaries, border]))
