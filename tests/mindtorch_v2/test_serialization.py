"""torch.save and torch.load, copy and pickle, on tensors, modules and optimizers."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32,
          torch.int64, torch.uint8, torch.bool, torch.complex64, torch.complex128]


def again(obj, **options):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    x = torch.tensor([[0, 1], [2, 3]]).to(dtype)
    y = again(x)
    assert y.dtype is dtype
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize("zipped", [True, False])
def test_what_an_open_file_holds_can_be_read_by_its_name(tmp_path, zipped):
    with open(tmp_path / "x.pt", "wb") as file:
        torch.save(torch.arange(3), file, _use_new_zipfile_serialization=zipped)
        assert torch.load(tmp_path / "x.pt").tolist() == [0, 1, 2]


def test_views_stay_views():
    base = torch.arange(6.0)
    saved = again({"base": base, "view": base[2:4], "turned": base.view(2, 3).t()})
    assert saved["turned"].stride() == (1, 3)
    saved["base"].add_(1)
    assert saved["view"].tolist() == [3.0, 4.0]


def test_parameters_requires_grad_and_plain_objects():
    loaded = again({"p": nn.Parameter(torch.ones(2)), "x": torch.ones(1, requires_grad=True), "list": [1, "a", None],
                    "size": torch.Size([2, 3]), "dtype": torch.float64, "device": torch.device("cpu")})
    assert isinstance(loaded["p"], nn.Parameter)
    assert loaded["p"].requires_grad
    assert loaded["x"].requires_grad
    assert loaded["list"] == [1, "a", None]
    assert loaded["size"] == (2, 3)
    assert loaded["dtype"] is torch.float64
    assert loaded["device"] == torch.device("cpu")


def test_training_goes_on_after_loading(tmp_path):
    def make():
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        return model, optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).pow(2).sum().backward()
        optimizer.step()

    first = make()
    step(*first)
    torch.save({"model": first[0].state_dict(), "optimizer": first[1].state_dict()}, tmp_path / "c.pt")
    second = make()
    state = torch.load(tmp_path / "c.pt")
    second[0].load_state_dict(state["model"])
    second[1].load_state_dict(state["optimizer"])
    step(*first)
    step(*second)
    assert first[0].weight.tolist() == second[0].weight.tolist()


def test_code_in_a_file_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("ran",))

    torch.save({"x": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(pickle.UnpicklingError, match="print"):
        torch.load(tmp_path / "evil.pt")


def test_bad_files_name_themselves(tmp_path):
    (tmp_path / "no.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "no.pt")
    with pytest.raises(FileNotFoundError, match="absent"):
        torch.load(tmp_path / "absent.pt")
    torch.save(torch.ones(100), tmp_path / "cut.pt")
    whole = (tmp_path / "cut.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RuntimeError, match="cut"):
        torch.load(tmp_path / "cut.pt")


def test_a_failing_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "c.pt"
    torch.save(torch.ones(2), path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="pickle"):
        torch.save({"x": torch.ones(3), "f": lambda: None}, path)
    assert path.read_bytes() == before


def test_map_location():
    assert again(torch.ones(2), map_location="meta").is_meta
    assert again(torch.ones(2), map_location=lambda storage, where: storage).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="map_location"):
        again(torch.ones(2), map_location=3)


def test_copy_and_pickle():
    x = torch.arange(4.0).view(2, 2).t().requires_grad_()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.tolist() == x.tolist()
        assert y.requires_grad
        assert y.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(x * 2)
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    twin = copy.deepcopy(model)
    assert twin[0].weight.tolist() == model[0].weight.tolist()
    assert twin[0].weight is not model[0].weight
