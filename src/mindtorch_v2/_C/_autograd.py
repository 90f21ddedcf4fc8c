"""`torch._C._autograd`: the profiler's functions under the names of PyTorch's C++ side."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mtprof.devices import DeviceType
from mtprof.views.event_fields import RecordScope
from mtprof.views.kineto_events import KinetoEvent as _KinetoEvent

from .._autograd.inplace import CUSTOM, INFERENCE, MANY, NO_GRAD
from .._autograd.saved_attributes import SavedTensor
from .._dispatch.state import THREAD
from .._tensor import Tensor
from ..autograd.graph import HOOKS_DISABLED, saved_tensors_hooks, saved_tensors_hooks_disabled
from ..profiler.activity import ProfilerActivity, kineto_available
from ..profiler.activity import supported_activities as _supported_activities
from ..profiler.profiler_state import RUNNING, ActiveProfilerType, ProfilerConfig
from ..profiler.record_function import _record_function_with_args_enter, _record_function_with_args_exit
from ..profiler.recorder import Recorder
from ..profiler.result import ProfilerResult as _ProfilerResult
from ..profiler.session import COMING_METADATA, UNDER_WAY
from ..profiler.session import profile as _Session

__all__ = [
    "CreationMeta",
    "DeviceType",
    "SavedTensor",
    "_KinetoEvent",
    "_ProfilerResult",
    "_add_metadata_json",
    "_disable_profiler",
    "_enable_profiler",
    "_get_creation_meta",
    "_get_sequence_nr",
    "_kineto_step",
    "_pop_saved_tensors_default_hooks",
    "_prepare_profiler",
    "_profiler_enabled",
    "_profiler_type",
    "_push_saved_tensors_default_hooks",
    "_record_function_with_args_enter",
    "_record_function_with_args_exit",
    "_saved_tensors_hooks_disable",
    "_saved_tensors_hooks_enable",
    "_saved_tensors_hooks_get_disabled_error_message",
    "_saved_tensors_hooks_is_enabled",
    "_set_creation_meta",
    "_supported_activities",
    "_toggle_collection_dynamic",
    "_top_saved_tensors_default_hooks",
    "_unsafe_set_version_counter",
    "kineto_available",
]


def _unsafe_set_version_counter(tensors: Iterable[Tensor], versions: Iterable[int]) -> None:
    """Say how often tensors were changed in place; backward believes it."""
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version counter to a negative number, got {version}")
        tensor.shared().version = version


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks on saved tensors may be used now."""
    return saved_tensors_hooks_disabled() is None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """Why they may not."""
    return saved_tensors_hooks_disabled()


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Refuse hooks on saved tensors from now on, with a message."""
    if fail_if_non_empty and THREAD.state.pack_hooks:
        raise RuntimeError(error_message)
    HOOKS_DISABLED[:] = [error_message]


def _saved_tensors_hooks_enable() -> None:
    """Allow hooks on saved tensors from now on."""
    HOOKS_DISABLED.clear()


def _push_saved_tensors_default_hooks(pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
    """Keep saved tensors by these functions until they are popped."""
    saved_tensors_hooks(pack_hook, unpack_hook).__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """The last pair of functions is in force no more."""
    THREAD.state.pack_hooks.pop()


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool = False) -> Any:
    """The pair of functions in force, or None."""
    hooks = THREAD.state.pack_hooks
    return hooks[-1] if hooks else None


class CreationMeta(enum.Enum):
    """How a view was made."""

    DEFAULT = 0
    IN_CUSTOM_FUNCTION = 1
    MULTI_OUTPUT_NODE = 2
    NO_GRAD_MODE = 3
    INFERENCE_MODE = 4


_KINDS = {0: CreationMeta.DEFAULT, CUSTOM: CreationMeta.IN_CUSTOM_FUNCTION, MANY: CreationMeta.MULTI_OUTPUT_NODE,
          NO_GRAD: CreationMeta.NO_GRAD_MODE, INFERENCE: CreationMeta.INFERENCE_MODE}


def _get_creation_meta(tensor: Tensor) -> CreationMeta:
    """How a view was made; of what is no view, nothing special."""
    return CreationMeta.DEFAULT if tensor._of is None else _KINDS[tensor._of[2]]


def _set_creation_meta(tensor: Tensor, meta: CreationMeta) -> None:
    """Say how a view was made: whether autograd may follow in-place changes of it."""
    if tensor._of is None:
        raise RuntimeError("_set_creation_meta: the tensor is no view")
    tensor._of = (*tensor._of[:2], next(kind for kind, known in _KINDS.items() if known is meta))


def _get_sequence_nr() -> int:
    """The number that the next node of this thread gets."""
    return THREAD.state.seq


# The recording that `_prepare_profiler` made, as long as there is one.
_current: list[_Session] = []


def _profiler_enabled() -> bool:
    """Whether anything records right now, on this thread or another: recordings see all threads."""
    return Recorder.running is not None


def _profiler_type() -> ActiveProfilerType:
    """Which profiler is recording."""
    if not _profiler_enabled():
        return ActiveProfilerType.NONE
    return next(reversed(RUNNING.values()), ActiveProfilerType.KINETO)


def _prepare_profiler(config: ProfilerConfig, activities: Iterable[ProfilerActivity],
                      activity_filter: Mapping[ProfilerActivity, Iterable[str]] | None = None) -> None:
    """Get a recording ready."""
    if _current:
        raise RuntimeError("Profiler is already enabled: _disable_profiler() ends the recording that is under way")
    session = _Session(
        record_shapes=config.report_input_shapes, profile_memory=config.profile_memory, with_stack=config.with_stack,
        with_flops=config.with_flops, with_modules=config.with_modules, use_kineto=True,
        use_cpu=ProfilerActivity.CPU in set(activities), experimental_config=config.experimental_config,
        custom_trace_id_callback=(lambda: config.trace_id) if config.trace_id else None,
        activity_filters={key: set(names) for key, names in (activity_filter or {}).items()})
    session._prepare_trace()
    _current.append(session)


def _enable_profiler(config: ProfilerConfig, activities: Iterable[ProfilerActivity],
                     scopes: Iterable[RecordScope] = ()) -> None:
    """Start the recording that `_prepare_profiler` got ready, or a new one."""
    if set(scopes):
        raise NotImplementedError("_enable_profiler: scopes cannot be chosen, all are recorded")
    if not _current:
        _prepare_profiler(config, activities)
    _current[0]._start_trace()


def _disable_profiler() -> _ProfilerResult:
    """End the recording and return what it holds."""
    if not _current:
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    session = _current.pop()
    session.__exit__(None, None, None)
    result = session.kineto_results
    assert result is not None
    return result


def _toggle_collection_dynamic(enable: bool, activities: Iterable[ProfilerActivity]) -> None:
    """Pause or resume the recording."""
    if _current:
        _current[0].toggle_collection_dynamic(enable, activities)


def _add_metadata_json(key: str, value: str) -> None:
    """Put a value, as JSON text, into the files of all recordings under way, or of the next one if there is none."""
    for metadata in [session.metadata for session in UNDER_WAY] or [COMING_METADATA]:
        metadata[key] = value


def _kineto_step() -> None:
    """Tell the recording that a step is over. Nobody else listens."""
    if _current:
        _current[0].step()
