"""Repositories on this machine, dictionaries of weak keys, flags of attention: beside PyTorch's."""

from __future__ import annotations

import copy
import gc
import importlib
from pathlib import Path
from typing import Any

import pytest
from harness import ours, theirs

BOTH = pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])


def of(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


@BOTH
def test_entry_points_of_a_directory(torch: Any, tmp_path: Path) -> None:
    hub = of(torch, "hub")
    (tmp_path / "beside.py").write_text("three = 3\n")
    (tmp_path / "hubconf.py").write_text("dependencies = ['json']\nfrom beside import three\n"
                                         "def made(x=1, **more):\n    return x + three\n")
    assert hub.load(str(tmp_path), "made", source="local") == 4
    assert hub.load(str(tmp_path), "made", 5, source="local", more=1) == 8
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match='Unknown source: "elsewhere"'):
        hub.load(str(tmp_path), "made", source="elsewhere")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_module']\ndef made(): pass\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_module"):
        hub.load(str(tmp_path), "made", source="local")
    assert hub._parse_repo_info("owner/name:branch") == ("owner", "name", "branch")


@BOTH
def test_weak_keys(torch: Any) -> None:
    kind = of(torch, "utils.weak").WeakIdKeyDictionary
    first, second = torch.ones(2), torch.ones(2)
    entries = kind({first: [1], second: [2]})
    deep, flat = copy.deepcopy(entries), copy.copy(entries)
    assert deep[first] == [1]
    assert deep[first] is not entries[first]
    assert flat[first] is entries[first]
    assert entries == flat == deep
    assert (entries | {first: 5})[first] == 5
    assert ({first: 5} | entries)[first] == [1]
    entries |= {first: 7}
    assert entries[first] == 7
    del second
    gc.collect()
    assert [len(one) for one in (entries, deep, flat)] == [1, 1, 1]
    assert entries.popitem() == (first, 7)


@BOTH
def test_what_attention_could_use_can_be_asked(torch: Any) -> None:
    cuda, x = torch.backends.cuda, torch.ones(1, 1, 2, 2)
    params = cuda.SDPAParams(x, x, x, None, 0.5, True, False)
    assert (params.query is x, params.attn_mask, params.dropout, params.is_causal) == (True, None, 0.5, True)
    assert not cuda.can_use_flash_attention(params, False)
    assert not cuda.can_use_efficient_attention(params)
    with pytest.raises(TypeError):
        cuda.SDPAParams(x, x, x, None, 0.5, True)


@BOTH
def test_flags_of_attention(torch: Any) -> None:
    flags, attention = torch.backends.cuda, torch.nn.attention

    def seen() -> list[bool]:
        return [flags.flash_sdp_enabled(), flags.mem_efficient_sdp_enabled(), flags.math_sdp_enabled(),
                flags.cudnn_sdp_enabled()]

    assert seen() == [True] * 4
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.CUDNN_ATTENTION]):
        assert seen() == [False, False, True, True]
    try:
        flags.enable_flash_sdp(False)
        flags.enable_math_sdp(False)
        flags.enable_math_sdp(True)
        assert seen() == [False, True, True, True]
    finally:
        flags.enable_flash_sdp(True)
    assert seen() == [True] * 4


@BOTH
def test_a_block_of_a_device_that_is_none(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="device type at start of device string: nowhere"):
        torch.random.fork_rng(device_type="nowhere").__enter__()
