"""Names that libraries import from corners of PyTorch."""

from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035 (libraries write these)

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.fx import symbolic_trace
from mindtorch_v2.nn.parallel import scatter_gather
from mindtorch_v2.utils.data._utils.collate import collate_numpy_array_fn, collate_tensor_fn, default_collate_fn_map


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
