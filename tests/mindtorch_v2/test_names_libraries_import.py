"""Names that libraries import from corners of PyTorch."""

import importlib
from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035 (libraries write these)

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.fx import symbolic_trace
from mindtorch_v2.nn.parallel import scatter_gather
from mindtorch_v2.utils.data._utils.collate import collate_numpy_array_fn, collate_tensor_fn, default_collate_fn_map
from mindtorch_v2.utils.data._utils.pin_memory import pin_memory


def test_classes_of_ops():
    from mindtorch_v2._ops import OpOverload, OpOverloadPacket

    assert type(torch.ops.aten.add.Tensor) is OpOverload
    assert type(torch.ops.aten.add) is OpOverloadPacket


def test_torch_has_its_own_name_inside():
    assert torch.torch is torch
    assert torch.torch.nn.Linear is torch.nn.Linear


@pytest.mark.parametrize(("value", "kind", "expected"), [
    ([1, 2], List[int], True), ([1, "a"], List[int], False), ({"a": 1}, Dict[str, int], True),  # noqa: UP006
    ({"a": "b"}, Dict[str, int], False), (None, Optional[int], True), ("a", Optional[int], False),  # noqa: UP006, UP045
    ((1, "a"), Tuple[int, str], True), ((1, 2), Tuple[int, str], False), ((1, 2), tuple[int, ...], True),  # noqa: UP006
    (1.0, Union[int, float], True), (1, int | str, True), (3, (str, int), True), ([], List[str], True),  # noqa: UP006, UP007
])
def test_jit_isinstance_looks_into_containers(value, kind, expected):
    assert torch.jit.isinstance(value, kind) is expected


def test_what_does_not_exist_says_so():
    assert not isinstance(torch.nn.Linear(1, 1), torch.ao.quantization.FakeQuantizeBase)
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        torch.ao.quantization.QConfig(activation=None, weight=None)
    with pytest.raises(NotImplementedError, match="this runtime has one device"):
        scatter_gather.scatter(torch.ones(2), [0, 1])
    with torch.cuda.device_of(torch.ones(2)):
        pass


def test_sync_batch_norm_is_pickled_by_the_name_that_pytorch_has():
    assert torch.nn.SyncBatchNorm is torch.nn.modules.batchnorm.SyncBatchNorm
    assert torch.nn.SyncBatchNorm.__module__.endswith(".nn.modules.batchnorm")


def test_functions_of_the_table_of_batches_have_names():
    assert default_collate_fn_map[torch.Tensor] is collate_tensor_fn
    made = collate_numpy_array_fn([np.zeros(2), np.ones(2)], collate_fn_map=default_collate_fn_map)
    assert made.tolist() == [[0, 0], [1, 1]]


def test_graphs_have_the_operands_of_einsum_one_by_one():
    class Product(torch.nn.Module):
        def forward(self, a, b):
            return torch.einsum("ij,jk->ik", (a, b))

    graph = symbolic_trace(Product())
    called = next(node for node in graph.graph.nodes if node.op == "call_function")
    assert len(called.args) == 3
    assert graph(torch.ones(2, 3), torch.ones(3, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_names_that_libraries_take_from_private_corners():
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch._softmax(torch.zeros(2), 0, False).tolist() == [0.5, 0.5]
    assert torch._VF.relu(torch.tensor([-1.0])).tolist() == [0.0]
    assert torch.functional.F is torch.nn.functional
    assert torch.nn.functional._Reduction.get_enum("sum") == 2
    assert torch._utils._get_device_module("npu") is torch.npu
    with pytest.raises(RuntimeError, match="corresponding module"):
        torch._utils._get_device_module("nowhere")
    x = torch.ones(4)
    assert torch._C._is_alias_of(x, x[1:])
    assert not torch._C._is_alias_of(x, x.clone())


def test_layers_that_few_programs_use_are_in_the_package_of_modules():
    assert torch.nn.modules.CrossMapLRN2d is torch.nn.CrossMapLRN2d
    assert torch.nn.modules.LazyLinear is torch.nn.LazyLinear


def test_names_of_data_and_jit_that_libraries_take():
    assert torch.utils.data.dataloader.Dataset is torch.utils.data.Dataset
    assert torch.utils.data.ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]
    with torch.jit.optimized_execution(True):
        assert importlib.import_module("mindtorch_v2.fx._compatibility").compatibility(True)(len) is len


def test_cuda_has_no_memory():
    assert torch.cuda.memory.memory_allocated() == 0
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.cuda.memory._record_memory_history()
    with pytest.raises(RuntimeError, match="does not support this device"):
        torch.cuda.streams.Stream()


def test_engines_for_quantized_tensors():
    torch.backends.quantized.engine = "none"
    with pytest.raises(RuntimeError, match="no quantized tensors"):
        torch.backends.quantized.engine = "fbgemm"


def test_modes_of_function_overrides_are_told():
    class Mode(torch.overrides.TorchFunctionMode):
        pass

    assert not torch._C._is_torch_function_mode_enabled()
    with Mode():
        assert torch._C._is_torch_function_mode_enabled()


def test_divergences_can_be_registered_for_other_kinds_of_distributions():
    class Foreign:
        pass

    torch.distributions.register_kl(torch.distributions.Normal, Foreign)(lambda p, q: 7)
    assert torch.distributions.kl_divergence(torch.distributions.Normal(0.0, 1.0), Foreign()) == 7
    with pytest.raises(TypeError, match="Distribution subclass"):
        torch.distributions.register_kl("Normal", Foreign)


def test_batches_are_pinned_inside_containers():
    class Own:
        def pin_memory(self):
            return "pinned"

    if torch.npu.is_available():
        pytest.skip("with a device, tensors are copied")
    assert pin_memory({"text": "a", "own": (Own(), 3)}) == {"text": "a", "own": ["pinned", 3]}


def test_what_torchaudio_asks_its_library():
    torch.ops.load_library("site-packages/torchaudio/lib/_torchaudio.abi3.so")
    assert torch.ops._torchaudio.cuda_version() is None
    assert torch.ops._torchaudio.is_align_available() is False
    with pytest.raises(NotImplementedError, match="torchaudio::_lfilter_core_loop"):
        torch.ops.torchaudio._lfilter_core_loop(torch.ones(2), torch.ones(2), torch.ones(2))


def test_settings_of_compilers_can_be_set():
    config = importlib.import_module("mindtorch_v2._inductor.config")
    config.coordinate_descent_tuning = True
    config.triton.unique_kernel_names = True
    assert config.triton.unique_kernel_names
    assert torch._C._jit_set_profiling_mode(True) is False
    assert torch._C._jit_set_profiling_mode(False) is True


def test_modules_whose_names_are_a_table_answer_what_is_known():
    assert importlib.import_module("mindtorch_v2._subclasses.fake_tensor").is_fake(torch.ones(1)) is False
    assert importlib.import_module("mindtorch_v2._guards").active_fake_mode() is None
    with pytest.raises(NotImplementedError, match=r"^torch\.nested\.nested_tensor: .* no nested tensors"):
        torch.nested.nested_tensor([torch.ones(1)])
    with pytest.raises(TypeError, match="t2 should be a tensor, not int"):
        torch.utils.swap_tensors(torch.ones(1), 3)
