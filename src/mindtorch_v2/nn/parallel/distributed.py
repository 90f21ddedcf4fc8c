"""`DistributedDataParallel`: each rank trains a replica on its share of a batch; gradients are averaged in between."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import distributed as dist
from ..._autograd.grad_mode import is_grad_enabled, no_grad
from ..._dispatch.namespace import aten
from ..._tensor import Tensor, wrap
from ...distributed._bucket import BuiltinCommHookType, GradBucket
from ...distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...futures import Future
from ...profiler.record_function import record_function
from ...utils._pytree import tree_leaves
from ..modules.module import Module
from ..modules.sparse import Embedding, EmbeddingBag
from ._reducer import FIRST_BUCKET_BYTES, Reducer, megabytes

__all__ = ["DistributedDataParallel"]

_DEFAULT_MEGABYTES = 25


def broadcast_coalesced(tensors: list[Tensor], group: Any, root: int) -> None:
    """Give all ranks the tensors of one (a place in the group), those of one dtype in one message."""
    kinds: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    with no_grad():
        for alike in kinds.values():
            flat = aten.cat([tensor.detach().reshape(-1) for tensor in alike])
            dist.broadcast(flat, group=group, group_src=root)
            place = 0
            for tensor in alike:
                tensor.detach().copy_(flat[place:place + tensor.numel()].view(tensor.shape))
                place += tensor.numel()


def _sparse_parameters(module: Any) -> set[int]:
    """The parameters whose gradients are sparse, by identity."""
    return {id(one.weight) for one in module.modules() if isinstance(one, (Embedding, EmbeddingBag)) and one.sparse}


def _check_signature(hook: Callable[..., Any]) -> None:
    """Raise if a communication hook says that it takes or returns something else."""
    said = inspect.signature(hook)
    bucket = said.parameters.get("bucket")
    if bucket is not None and bucket.annotation not in (inspect.Parameter.empty, GradBucket, "GradBucket",
                                                        "dist.GradBucket", Any, "Any"):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    kind = said.return_annotation
    if isinstance(kind, type) and kind not in (inspect.Signature.empty, Future, Tensor):
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients are averaged over the ranks of a group during the backward.

    Parameters and buffers start as those of rank 0.
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
                 delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None, skip_all_reduce_unused_params: bool = False,
                 bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
                 forward_sync_buffers: bool | None = None) -> None:
        super().__init__()
        Joinable.__init__(self)
        for name, value in (("mixed_precision", mixed_precision), ("device_mesh", device_mesh),
                            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
                            ("param_to_hook_all_reduce", param_to_hook_all_reduce)):
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: the argument {name} is not supported by this "
                                          f"runtime")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("DistributedDataParallel: device_ids can only be None or contain a single element.")
        if not dist.is_initialized():
            raise RuntimeError("Default process group has not been initialized, please make sure to call "
                               "init_process_group.")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, parameter) for name, parameter in module.named_parameters() if name not in ignored]
        learning = [(name, parameter) for name, parameter in named if parameter.requires_grad]
        if not learning:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that "
                               "requires a gradient.")
        self.module = module
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
        self.device = next(iter(learning))[1].device
        self.device_type = self.device.type
        self.is_multi_device_module = False
        if device_ids and self.device_type == "cpu":
            raise ValueError(f"DistributedDataParallel: the module is on the CPU, but device_ids is {device_ids}; it "
                             "names an accelerator, so leave it out")
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap = megabytes(_DEFAULT_MEGABYTES if bucket_cap_mb is None else bucket_cap_mb)
        self.parameters_to_ignore = ignored
        self._buffers_in_step = [buffer for name, buffer in module.named_buffers() if name not in ignored]
        limits = [megabytes(limit) for limit in bucket_cap_mb_list] if bucket_cap_mb_list else [
            FIRST_BUCKET_BYTES if bucket_cap_mb is None else self.bucket_bytes_cap, self.bucket_bytes_cap]
        if init_sync:
            broadcast_coalesced([parameter for _, parameter in named] + self._buffers_in_step, self.process_group, 0)
        self._divides_by_all = True  # in a join context: also by the ranks that have no inputs any more
        self.reducer = Reducer(learning, self.process_group, limits, find_unused_parameters, gradient_as_bucket_view,
                               static_graph, _sparse_parameters(module))

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to the running job."""
        if self.process_group is not dist.group.WORLD:
            raise RuntimeError("DistributedDataParallel: a module on a group other than the default one cannot be "
                               "pickled")
        kept = dict(self.__dict__)
        del kept["process_group"], kept["reducer"]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the default group of the job that runs now."""
        super().__setstate__(state)
        self.process_group = dist.group.WORLD
        named = [(name, parameter) for name, parameter in self.module.named_parameters() if parameter.requires_grad]
        self.reducer = Reducer(named, self.process_group, [FIRST_BUCKET_BYTES, self.bucket_bytes_cap],
                               self.find_unused_parameters, self.gradient_as_bucket_view, self.static_graph,
                               _sparse_parameters(self.module))

    # -- a step ----------------------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's output; the next backward averages gradients."""
        with record_function("DistributedDataParallel.forward"):
            reduces = is_grad_enabled() and self.require_backward_grad_sync
            if reduces:
                self.reducer.check_finished()
            syncs, root, divisor = self.will_sync_module_buffers(), 0, self.reducer.size
            if self._join_config.enable and (reduces or syncs):
                work = Join.notify_join_context(self)
                if work is not None:
                    work.wait()
                _, _, root, divisor = self._plan(reduces, syncs, dist.get_rank(self.process_group))
            if syncs:
                self._sync_buffers(root)
            output = self.module(*inputs, **kwargs)
            self.require_forward_param_sync = reduces
            if reduces:
                self.reducer.divisor = divisor
                self.reducer.expect([leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
                                    if self.find_unused_parameters else ())
            return output

    def will_sync_module_buffers(self) -> bool:
        """Whether a forward brings the buffers of rank 0 to all."""
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self._buffers_in_step)

    def _sync_buffers(self, root: int = 0) -> None:
        current = [buffer for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore]
        broadcast_coalesced(current, self.process_group, root)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of forwards in here are only added up; the first forward after it averages them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Set the mode of the module too."""
        super().train(mode)
        return self

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """The arguments: there is one device."""
        return (inputs,), (kwargs,)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The first of the outputs: there is one device."""
        return outputs[0]

    # -- hooks -----------------------------------------------------------------------------------------------------

    def register_comm_hook(self, state: object, hook: Callable[[object, GradBucket], Future[Tensor]]) -> None:
        """Reduce buckets by a function of the program, which returns a future of the reduced buffer."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        _check_signature(hook)
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = lambda bucket: hook(state, bucket)

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Reduce buckets by one of the hooks that PyTorch has in C++."""
        hooks = {BuiltinCommHookType.ALLREDUCE: allreduce_hook, BuiltinCommHookType.FP16_COMPRESS: fp16_compress_hook}
        self.register_comm_hook(self.process_group, hooks[comm_hook_type])

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.static = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Facts about how it works."""
        return {"world_size": self.reducer.size, "rank": dist.get_rank(self.process_group), "module_name":
                type(self.module).__name__, "backend_name": dist.get_backend(self.process_group),
                "bucket_cap_bytes": self.bucket_bytes_cap, "find_unused_parameters": self.find_unused_parameters,
                "gradient_as_bucket_view": self.gradient_as_bucket_view, "static_graph": self.static_graph,
                "bucket_sizes": ", ".join(str(bucket.buffer().numel() * bucket.buffer().element_size())
                                          for bucket in self.reducer.buckets)}

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, params_and_buffers_to_ignore: Any) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    # -- ranks with fewer inputs -----------------------------------------------------------------------------------

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Join:
        """A context in which ranks that run out of inputs take part in the collectives of the others."""
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without inputs does for this module."""
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _GoAlong(self)

    @property
    def join_device(self) -> Any:
        """Where the module is."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group of the module."""
        return self.process_group

    def _plan(self, reduces: bool, syncs: bool, rank: int) -> tuple[bool, bool, int, int]:
        """In a join context: what the ranks that still work will do in this step, whose buffers they take, and by how
        many gradients are divided. A rank that has no inputs any more is -1."""
        told = np.empty((self.reducer.size, 3), np.int64)
        dist.all_gather_into_tensor(wrap(told), wrap(np.array([reduces, syncs, rank], np.int64)), self.process_group)
        working = int((told[:, 2] >= 0).sum())
        return (bool(told[:, 0].any()), bool(told[:, 1].any()), int(told[:, 2].max()),
                self.reducer.size if self._divides_by_all else working)


class _GoAlong(JoinHook):
    """Takes part in the collectives of a step, with gradients of zero."""

    def __init__(self, module: DistributedDataParallel) -> None:
        self.module = module

    def main_hook(self) -> None:
        """One step of the others."""
        module, reducer = self.module, self.module.reducer
        reduces, syncs, root, _ = module._plan(False, False, -1)
        if syncs:
            module._sync_buffers(root)
        if not reduces:
            return
        reducer._reset()
        for bucket in reducer.buckets:
            bucket.clear()
            reducer._start(bucket)
        reducer._used_somewhere()
        for bucket in reducer.buckets:
            bucket.waited.wait()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All ranks end with the model of the one that worked longest."""
        module = self.module
        flag = wrap(np.array([dist.get_rank(module.process_group) if is_last_joiner else -1], np.int64))
        dist.all_reduce(flag, dist.ReduceOp.MAX, module.process_group)
        tensors = [*module.module.parameters(), *module.module.buffers()]
        broadcast_coalesced(tensors, module.process_group, int(flag.item()))
