"""Wrong arguments are refused before anything is queued, with the CPU's texts; right ones are not."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import mindtorch_v2 as torch

F = torch.nn.functional
WRONG = {
    "bools have no negative": lambda x: -(x > 0),
    "bools have no median": lambda x: (x > 0).median(),
    "softmax of integers": lambda x: x.long().softmax(0),
    "sums of bools": lambda x: x.cumsum(0, dtype=torch.bool),
    "matrix and vector of two types": lambda x: x.mv(x[0].double()),
    "weights of another type": lambda x: F.layer_norm(x, x.shape[1:], x[0].double()),
    "negative beta": lambda x: F.smooth_l1_loss(x, x, beta=-1),
    "alpha of zero": lambda x: F.celu(x, alpha=0),
    "dimensions that differ": lambda x: torch.linalg.cross(x[0, :3], x[:, :3]),
    "limits below zero": lambda x: F.hardtanh(x.to(torch.uint8)),
    "a mask of numbers": lambda x: x.clone().masked_fill_(x, 1),
    "several values for a mask": lambda x: x.clone().masked_fill_(x > 0, x[0]),
    "an index of floats": lambda x: x.index_put((x[0, :1],), x[0, 0]),
    "values of another type": lambda x: x.index_put((x[0, :1].long(),), x[0, 0].long()),
    "fewer values than places": lambda x: x.clone().put_(torch.arange(3, device=x.device), x[0, :2]),
    "padding beyond the half": lambda x: F.max_pool2d(x[None], 2, padding=2),
    "no samples": lambda x: torch.multinomial(x, 0),
    "targets of 32 bits": lambda x: F.nll_loss(x, torch.zeros(len(x), dtype=torch.int32, device=x.device)),
    "a sorter of another shape": lambda x: torch.searchsorted(x[0], x[0], sorter=x[0, :2].long()),
    "maps of another number of images": lambda x: F.affine_grid(x[:1, :6].view(1, 2, 3), (2, 1, 2, 2),
                                                                align_corners=True),
    "offsets of floats": lambda x: F.embedding_bag(x[0].long(), x, x[0, :1]),
    "slices that are too short": lambda x: x.index_reduce(0, x[0, :1].long(), x[:1, :2], "prod"),
    "an expanded result": lambda x: torch.exp(x, out=torch.zeros(1, 6, device=x.device).expand(2, 6)),
    "an expanded result of slices": lambda x: torch.index_select(x, 1, x[0, :2].long(), out=torch.zeros(
        1, 6, device=x.device).expand(2, 6)),
    "an index in the memory it writes to": lambda x: (lambda i: i.index_add_(0, i, i.clone()))(x[0].long()),
}


@pytest.mark.parametrize("size", [8, 90], ids=["small", "large"])  # of large ones, parts are asked about
@pytest.mark.parametrize("name", WRONG)
def test_refused_as_on_the_cpu(name, size):
    found = []
    for device in ("cpu", "npu"):
        with pytest.raises(Exception) as error:  # noqa: PT011
            WRONG[name](torch.ones(size, size, device=device))
        found.append((error.type, str(error.value)))
    assert found[0] == found[1]
    torch.npu.synchronize()


def numbers(count, *shape):
    return torch.arange(count, device="npu").view(*shape) if shape else torch.arange(count, device="npu")


@pytest.mark.parametrize("run", [
    lambda: F.max_pool2d(numbers(10_000, 1, 1, 100, 100), 5),
    lambda: F.pad(numbers(9000, 1, 90, 100), (5, 5), mode="reflect"),
    lambda: numbers(9000).repeat_interleave(torch.full((9000,), 2, device="npu"), output_size=18_000),
    lambda: numbers(9000, 9, 1000).index_select(1, torch.tensor([999], device="npu")),
    lambda: numbers(9000).kthvalue(5000).values,
    lambda: F.fold(numbers(256, 1, 4, 64).float(), (16, 16), 2, stride=2),
    lambda: F.pixel_shuffle(numbers(14_400, 1, 9, 40, 40), 3),
    lambda: numbers(100) // 7,
    lambda: F.batch_norm(torch.ones(4, 3, 40, 40, device="npu").half(), *(torch.ones(3, device="npu") for _ in "abcd")),
])
def test_what_is_right_is_not_refused(run):
    run()
    torch.npu.synchronize()


def test_a_kind_of_arguments_is_asked_about_once(monkeypatch):
    from mindtorch_v2._backends.npu import kernels

    asked = []
    own = kernels.ask
    monkeypatch.setattr(kernels, "ask", lambda op, *rest: (asked.append(op.key), own(op, *rest)))
    for size in (3, 5, 7):
        torch.zeros(size, 2, dtype=torch.int16, device="npu").sign()
    assert asked.count("sign") <= 1


def test_tensors_in_one_memory_are_saved_and_pickled_so():
    whole = torch.arange(10.0, device="npu")
    file = io.BytesIO()
    torch.save({"whole": whole, "part": whole[2:5]}, file)
    file.seek(0)
    for loaded in (torch.load(file), pickle.loads(pickle.dumps({"whole": whole, "part": whole[2:5]}))):
        assert loaded["whole"].device.type == "npu"
        loaded["part"][0] = 99
        assert loaded["whole"].tolist()[:4] == [0, 1, 99, 3]
    file.seek(0)
    assert torch.load(file, map_location="cpu")["part"].tolist() == [2, 3, 4]
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([whole, whole.view(torch.int32)], io.BytesIO())


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages_can_be_written():
    x = torch.zeros(4, device="npu")
    storage = x.storage()
    storage[-1] = 5
    storage[0:2] = 7
    assert x.tolist() == [7, 7, 0, 5]
    assert copy.deepcopy(storage).tolist() == [7, 7, 0, 5]


def test_new_memory_is_filled_if_results_must_not_depend_on_it():
    torch.use_deterministic_algorithms(True)
    try:
        made = [torch.empty(3, device="npu"), torch.empty_like(torch.ones(3, device="npu")),
                torch.ones(1, device="npu").resize_(4)[1:]]
        counts = torch.empty(3, dtype=torch.int32, device="npu")
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(one.isnan().all().item() for one in made)
    assert counts.tolist() == [2**31 - 1] * 3


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_erfc_is_right_where_it_is_small(kind):
    x = torch.linspace(-6, 9, 200, dtype=kind)
    found, expected = torch.special.erfc(x.to("npu")).cpu(), torch.special.erfc(x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5 if kind is torch.float32 else 1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias(mode):
    x = torch.rand(2, 3, 17, 12)
    made = []
    for device in ("cpu", "npu"):
        given = x.clone().to(device).requires_grad_()
        small = F.interpolate(given, size=(5, 7), mode=mode, antialias=True)
        (small * small).sum().backward()
        made.append([small.detach().cpu(), given.grad.cpu()])
    torch.testing.assert_close(made[1], made[0], rtol=1e-4, atol=1e-5)


def test_rrelu_in_place_keeps_its_slopes():
    x = torch.randn(40, device="npu", requires_grad=True)
    made = F.rrelu(x * 1.0, 0.1, 0.4, training=True, inplace=True)
    made.sum().backward()
    slopes = (made.detach() / x.detach()).cpu()
    torch.testing.assert_close(x.grad.cpu(), slopes)
    assert ((slopes == 1) | ((slopes > 0.09) & (slopes < 0.41))).all()


def test_of_several_nans_the_last_is_the_largest():
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 1, :3] = float("nan")
    places = [F.adaptive_max_pool2d(x.to(device), (2, 2), return_indices=True)[1].cpu() for device in ("cpu", "npu")]
    assert places[1].tolist() == places[0].tolist()


def test_means_of_integers_in_a_volume():
    x = torch.arange(64).view(1, 1, 4, 4, 4)
    assert F.avg_pool3d(x.to("npu"), 2).cpu().tolist() == F.avg_pool3d(x, 2).tolist()


@pytest.mark.parametrize("run", [
    lambda: torch.nn.Embedding(4, 2, sparse=True).npu()(numbers(3)).sum().backward(),
    lambda: torch.nn.EmbeddingBag(4, 2, sparse=True).npu()(numbers(4, 2, 2)).sum().backward(),
    lambda: torch.eye(2, device="npu").to_sparse(), lambda: torch.eye(2).to_sparse().to("npu"),
    lambda: torch.sparse_coo_tensor(numbers(2, 1, 2), torch.ones(2, device="npu"), (3,))])
def test_sparse_tensors_are_refused_by_name(run):
    with pytest.raises(NotImplementedError, match="no sparse tensors"):
        run()
