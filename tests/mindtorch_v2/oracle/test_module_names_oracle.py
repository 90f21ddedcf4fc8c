"""Modules and names that are not of the documented interface, but that programs import, beside PyTorch's."""

from __future__ import annotations

import importlib

import pytest
from harness import assert_same

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, of its compiler
BOTH = (ours, torch)
NAMES = {
    "__config__": "show parallel_info",
    "__future__": "get_overwrite_module_params_on_conversion set_overwrite_module_params_on_conversion "
                  "get_swap_module_params_on_conversion set_swap_module_params_on_conversion",
    "_jit_internal": "BroadcastingList2 Final List boolean_dispatch",
    "_utils": "_flatten_dense_tensors _get_device_index _reorder_tensors_as _take_tensors _unflatten_dense_tensors",
    "ao.nn.quantized": "FloatFunctional",
    "ao.quantization": "DeQuantStub QuantStub QuantWrapper convert prepare quantize_dynamic",
    "autograd.function": "Function FunctionCtx InplaceFunction once_differentiable",
    "compiler": "allow_in_graph compile disable is_compiling is_dynamo_compiling reset set_stance",
    "cuda.amp.autocast_mode": "autocast custom_bwd custom_fwd",
    "cuda.amp.common": "amp_definitely_not_available",
    "cuda.amp.grad_scaler": "GradScaler",
    "cuda.nvtx": "mark range_pop range_push",
    "distributed": "ProcessGroup ReduceOp all_reduce group init_process_group is_available",
    "distributed.elastic.multiprocessing.errors": "record",
    "distributed.fsdp": "FullyShardedDataParallel fully_shard",
    "distributed.optim": "ZeroRedundancyOptimizer",
    "fx": "Graph GraphModule Node Proxy Tracer symbolic_trace wrap",
    "jit": "Final export ignore is_scripting script trace unused",
    "mps": "device_count empty_cache is_available manual_seed synchronize",
    "nn.init": "_no_grad_normal_ _no_grad_trunc_normal_ _no_grad_uniform_",
    "nn.modules.activation": "MultiheadAttention ReLU",
    "nn.modules.batchnorm": "_BatchNorm _NormBase",
    "nn.modules.module": "Module _addindent",
    "nn.modules.pooling": "_AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _AvgPoolNd _LPPoolNd _MaxPoolNd",
    "nn.modules.transformer": "_get_clones",
    "nn.modules.utils": "_list_with_default _ntuple _pair _quadruple _reverse_repeat_tuple _single _triple "
                        "consume_prefix_in_state_dict_if_present",
    "nn.quantized": "FloatFunctional",
    "onnx": "export is_in_onnx_export",
    "overrides": "handle_torch_function has_torch_function is_tensor_like wrap_torch_function",
    "quantization": "DeQuantStub QuantStub",
    "serialization": "add_safe_globals safe_globals",
    "sparse": "addmm mm sum",
}


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in NAMES.items() for n in names.split()])
def test_names_exist(module, name):
    for package in BOTH:
        assert hasattr(importlib.import_module(f"{package.__name__}.{module}"), name), package.__name__


def part(package, name):
    return importlib.import_module(f"{package.__name__}.{name}")


SAME = {
    "pair": lambda t: [part(t, "nn.modules.utils")._pair(3), part(t, "nn.modules.utils")._pair([1, 2]),
                       part(t, "nn.modules.utils")._ntuple(4)(x for x in "ab")],
    "reversed": lambda t: part(t, "nn.modules.utils")._reverse_repeat_tuple((1, 2, 3), 2),
    "default sizes": lambda t: part(t, "nn.modules.utils")._list_with_default([None, 5], [2, 3, 4]),
    "indent": lambda t: part(t, "nn.modules.module")._addindent("a\nb\nc", 3),
    "compiling": lambda t: [part(t, "compiler").is_compiling(), part(t, "onnx").is_in_onnx_export()],
    "accelerator": lambda t: [part(t, "mps").is_available(), part(t, "mps").device_count()],
    "dispatch": lambda t: part(t, "_jit_internal").boolean_dispatch(
        "flag", 1, False, lambda x, flag=False: "yes", lambda x, flag=False: "no", "m", "f")(1, flag=True),
    "tensor like": lambda t: [part(t, "overrides").is_tensor_like(t.ones(1)), part(t, "overrides").is_tensor_like(1)],
    "norms": lambda t: [isinstance(layer, kind) for layer in (t.nn.InstanceNorm2d(2), t.nn.BatchNorm2d(2))
                        for kind in (part(t, "nn.modules.batchnorm")._BatchNorm,
                                     part(t, "nn.modules.batchnorm")._NormBase)],
    "pools": lambda t: [isinstance(layer, part(t, "nn.modules.pooling")._AvgPoolNd)
                        for layer in (t.nn.AvgPool1d(2), t.nn.AvgPool2d(2), t.nn.MaxPool2d(2))],
    "marks": lambda t: part(t, "compiler").disable(len)([1, 2]),
    "assertion": lambda t: t._assert(True, "fine"),
    "type": lambda t: t.ones(2, dtype=t.float64).type(t.FloatTensor).type(),
}


@pytest.mark.parametrize("name", SAME)
def test_same_answer(name):
    assert SAME[name](ours) == SAME[name](torch)


def test_prefix_of_a_state():
    for package in BOTH:
        state = package.nn.Sequential(package.nn.Linear(1, 1)).state_dict(prefix="module.")
        part(package, "nn.modules.utils").consume_prefix_in_state_dict_if_present(state, "module.")
        assert list(state) == ["0.weight", "0.bias"]
        assert set(state._metadata) == {"", "0"}


def test_flattened_tensors():
    for package in BOTH:
        utils = part(package, "_utils")
        tensors = [package.ones(2, 3), package.zeros(4)]
        flat = utils._flatten_dense_tensors(tensors)
        assert flat.tolist() == [1.0] * 6 + [0.0] * 4
        assert [tuple(one.shape) for one in utils._unflatten_dense_tensors(flat, tensors)] == [(2, 3), (4,)]
        groups = list(utils._take_tensors([*tensors, package.ones(3, dtype=package.int64)], 24))
        assert [[tuple(one.shape) for one in group] for group in groups] == [[(2, 3)], [(4,)], [(3,)]]


def test_functions_that_classes_take_over():
    for package in BOTH:
        overrides = part(package, "overrides")

        class Number:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__, [one.__name__ for one in types], len(args)

        def twice(x, overrides=overrides):
            if overrides.has_torch_function((x,)):
                return overrides.handle_torch_function(twice, (x,), x)
            return x * 2

        assert twice(3) == 6
        assert twice(Number()) == ("twice", ["Number"], 1)


def test_quantization_stubs_do_nothing():
    for package in BOTH:
        quantization = part(package, "ao.quantization")
        wrapped = quantization.QuantWrapper(package.nn.Identity())
        assert wrapped(package.ones(2)).tolist() == [1.0, 1.0]
        functional = part(package, "ao.nn.quantized").FloatFunctional()
        assert functional.add_relu(package.ones(1), package.tensor([-3.0])).tolist() == [0.0]
        assert functional.cat([package.ones(1), package.zeros(1)]).tolist() == [1.0, 0.0]
        with pytest.raises(RuntimeError, match="not intended to use"):
            functional(package.ones(1))


def test_conversion_may_replace_parameters():
    for package in BOTH:
        future = part(package, "__future__")
        kept, replaced = package.nn.Linear(2, 2), package.nn.Linear(2, 2)
        before = kept.weight, replaced.weight
        kept.double()
        future.set_overwrite_module_params_on_conversion(True)
        try:
            replaced.double()
        finally:
            future.set_overwrite_module_params_on_conversion(False)
        assert kept.weight is before[0]
        assert replaced.weight is not before[1]
        assert replaced.weight.dtype is package.float64
        assert replaced.weight.requires_grad


def test_module_in_a_memory_format():
    strides = []
    for package in BOTH:
        model = package.nn.Sequential(package.nn.Conv2d(3, 4, 3), package.nn.Linear(2, 2))
        model.to(memory_format=package.channels_last)
        strides.append([p.stride() for p in model.parameters()])
    assert strides[0] == strides[1]


def test_safe_globals_end_with_the_context():
    for package in BOTH:
        serialization = part(package, "serialization")
        before = len(serialization.get_safe_globals())
        with serialization.safe_globals([Marker]):
            assert Marker in serialization.get_safe_globals()
        assert len(serialization.get_safe_globals()) == before


class Marker:
    """A class for a file."""


def test_map_location_function(tmp_path):
    for package in BOTH:
        file = tmp_path / package.__name__
        package.save({"x": package.ones(3)}, file)
        seen = []
        found = package.load(file, map_location=lambda storage, place, seen=seen: seen.append(place) or storage)
        assert found["x"].tolist() == [1.0] * 3
        assert seen == ["cpu"]
        assert package.load(file, map_location=lambda storage, place: None)["x"].tolist() == [1.0] * 3


def test_spectral_norm_ops():
    names = []
    for package in BOTH:
        package.manual_seed(0)
        old = package.nn.utils.spectral_norm(package.nn.Conv2d(2, 3, 3))
        new = package.nn.utils.parametrizations.spectral_norm(package.nn.Conv2d(2, 3, 3))
        x = package.ones(1, 2, 4, 4)
        with package.profiler.profile() as recorded:
            results = old(x), new(x)
        names.append([e.name for e in recorded.events() if e.cpu_parent is None])
        names.append(results)
    assert names[0] == names[2]
    for got, want in zip(names[1], names[3]):
        assert_same(got, want, "result", 1e-5)
