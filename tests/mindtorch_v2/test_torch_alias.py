"""`import torch` as this package, running programs with it, and the small modules that programs touch."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _compile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
# A stand-in for an installed PyTorch, so that these tests need no real one.
FAKE_PYTORCH = {"torch/__init__.py": "is_pytorch = True\n", "torch/nn.py": "is_pytorch = True\n"}


def run(*arguments: str, cwd, path=()) -> subprocess.CompletedProcess:
    """A Python process that sees this package, and before it the given directories."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), SOURCE])}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True,
                          timeout=60)


def program(text: str, cwd, path=()) -> str:
    """The output of a program that must succeed."""
    done = run("-c", textwrap.dedent(text), cwd=cwd, path=path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(directory, files) -> None:
    for name, text in files.items():
        place = directory / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text))


@pytest.fixture
def pytorch(tmp_path):
    place = tmp_path / "site"
    write(place, FAKE_PYTORCH)
    return place


def test_modules_are_the_same_objects(tmp_path):
    assert program("""
        import mindtorch_v2
        from mindtorch_v2 import torch_alias
        assert torch_alias.enable(force=True)
        import torch, torch.nn as nn, torch.utils.data
        from torch.nn import functional as F
        from torch.utils.data import DataLoader
        from torch.optim.lr_scheduler import StepLR
        import mindtorch_v2.nn.functional
        assert torch is mindtorch_v2 and nn is mindtorch_v2.nn and F is mindtorch_v2.nn.functional
        assert torch.utils.data.DataLoader is DataLoader
        assert nn.__name__ == "mindtorch_v2.nn" and nn.__spec__.name == "mindtorch_v2.nn"
        assert torch_alias.in_use() == "mindtorch_v2"
        print("done")
    """, tmp_path) == "done"


def test_functions_that_hide_modules_stay(tmp_path):
    assert program("""
        from mindtorch_v2 import torch_alias
        torch_alias.enable(force=True)
        import torch, torch.nn, torch.autograd.gradcheck, torch.multiprocessing.spawn
        import torch.nn.utils.weight_norm, torch.profiler.schedule
        from torch.nn.utils.spectral_norm import SpectralNorm
        from torch.autograd.gradcheck import GradcheckError
        hidden = [torch.autograd.gradcheck, torch.nn.utils.weight_norm, torch.nn.utils.spectral_norm,
                  torch.multiprocessing.spawn, torch.profiler.schedule]
        print([type(one).__name__ for one in hidden] == ["function"] * 5)
        """, tmp_path) == "True"


def test_a_missing_module_says_so(tmp_path, pytorch):
    write(pytorch, {"torch/onnx.py": "is_pytorch = True\n"})
    assert program("""
        from mindtorch_v2 import torch_alias
        torch_alias.enable(force=True)
        try:
            import torch.nothing
        except ModuleNotFoundError as error:
            assert error.name == "torch.nothing"
            print(error)
    """, tmp_path, [pytorch]) == "No module named 'torch.nothing'"


def test_an_installed_pytorch_is_not_hidden_unless_forced(tmp_path, pytorch):
    text = """
        from mindtorch_v2 import torch_alias
        print(torch_alias.enable({0}), torch_alias.in_use())
        import torch
        print(getattr(torch, "is_pytorch", False))
    """
    assert program(text.format(""), tmp_path, [pytorch]).split() == ["False", "torch", "True"]
    assert program(text.format("force=True"), tmp_path, [pytorch]).split() == ["True", "mindtorch_v2", "False"]


def test_an_imported_pytorch_is_never_replaced(tmp_path, pytorch):
    assert program("""
        import torch
        from mindtorch_v2 import torch_alias
        try:
            torch_alias.enable(force=True)
        except RuntimeError as error:
            print(error)
        assert not torch_alias.is_enabled() and torch_alias.in_use() == "torch"
    """, tmp_path, [pytorch]).startswith("PyTorch is already imported")


def test_disable_gives_the_name_back(tmp_path, pytorch):
    assert program("""
        import sys
        from mindtorch_v2 import torch_alias
        torch_alias.enable(force=True)
        import torch.nn
        ours = torch
        torch_alias.disable()
        assert not [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
        import torch.nn
        print(torch.is_pytorch, torch.nn.is_pytorch, ours.nn.Linear.__name__, torch_alias.in_use())
    """, tmp_path, [pytorch]) == "True True Linear torch"


SCRIPT = """
    import sys
    import helper
    import torch
    print(torch.ones(2).sum().item(), sys.argv, __name__, helper.value)
    if len(sys.argv) > 1:
        if sys.argv[1] == "fail":
            raise ValueError("from the script")
        sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path, pytorch):
    write(tmp_path, {"place/script.py": SCRIPT, "place/helper.py": "value = 'beside'\n"})
    return tmp_path / "place" / "script.py"


def test_run_a_script(tmp_path, pytorch, script):
    done = run("-m", "mindtorch_v2", str(script), "0", "--which", cwd=tmp_path, path=[pytorch])
    assert done.stdout == f"2.0 {[str(script), '0', '--which']} __main__ beside\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_codes_and_tracebacks(tmp_path, pytorch, script):
    assert run("-m", "mindtorch_v2", str(script), "7", cwd=tmp_path, path=[pytorch]).returncode == 7
    failed = run("-m", "mindtorch_v2", str(script), "fail", cwd=tmp_path, path=[pytorch])
    assert failed.returncode == 1
    assert failed.stderr.endswith("ValueError: from the script\n")
    assert f'File "{script}", line 8' in failed.stderr
    missing = run("-m", "mindtorch_v2", "nothing.py", cwd=tmp_path)
    assert missing.returncode == 2
    assert "can't open file" in missing.stderr
    assert run("-m", "mindtorch_v2", cwd=tmp_path).returncode == 2


def test_run_a_module(tmp_path, pytorch, script):
    done = run("-m", "mindtorch_v2", "-m", "script", "0", cwd=script.parent, path=[pytorch])
    assert done.stdout == f"2.0 {[str(script), '0']} __main__ beside\n", done.stderr
    assert run("-m", "mindtorch_v2", "-m", cwd=tmp_path).returncode == 2
    assert "No module named nothing" in run("-m", "mindtorch_v2", "-m", "nothing", cwd=tmp_path).stderr


def test_which(tmp_path, pytorch, script):
    assert run("-m", "mindtorch_v2", "--which", cwd=tmp_path, path=[pytorch]).stdout.startswith("torch: mindtorch_v2 ")
    done = run("-m", "mindtorch_v2", "--which", str(script), cwd=tmp_path, path=[pytorch])
    assert done.stderr.startswith("torch: mindtorch_v2 ")
    assert done.stdout.startswith("2.0")


ASK = """
    import importlib.metadata as metadata, importlib.util, sys
    assert importlib.util.find_spec("torch").origin.endswith(("mindtorch_v2/__init__.py", "_as_torch/torch.py"))
    assert metadata.version("torch").startswith("2.13.0+mindtorch."), metadata.version("torch")
    assert metadata.requires("torch") == ["mindtorch-v2"]
    assert [found.version for found in metadata.distributions() if found.metadata["Name"] == "torch"][0] == (
        metadata.version("torch"))
    assert "torch" in metadata.packages_distributions()["torch"]
    metadata.entry_points()
    assert "torch" not in sys.modules
    import torch
    assert torch.__package__ == "mindtorch_v2" and metadata.version("torch") == torch.__version__
    assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.nn")
    assert importlib.util.find_spec("torch.nothing") is None and importlib.util.find_spec("torch.nn.nothing") is None
    print("asked")
"""


@pytest.fixture
def described_pytorch(pytorch):
    write(pytorch, {"torch-2.99.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.99.0\n"})
    return pytorch


def test_the_package_says_that_its_name_is_torch_while_it_stands_in(tmp_path):
    assert program("""
        import mindtorch_v2
        from mindtorch_v2 import torch_alias
        torch_alias.enable(force=True)
        import torch
        import torch.nn
        during = torch.__name__, torch.nn.Linear(1, 1), torch.fft.fft, torch.nn.modules.__name__
        torch_alias.disable()
        print(during[0], during[3], mindtorch_v2.__name__, mindtorch_v2.special.erf.__name__)
    """, tmp_path) == "torch torch.nn.modules mindtorch_v2 special_erf"


def test_classes_say_where_pytorch_has_them_while_it_stands_in(tmp_path):
    """Programs tell by the module of a class whose tensor or layer they have."""
    assert program("""
        import mindtorch_v2
        from mindtorch_v2 import torch_alias
        torch_alias.enable(force=True)
        import copy, inspect, pickle
        import torch
        kinds = [torch.Tensor, torch.Size, torch.dtype, torch.nn.Parameter, torch.nn.Linear,
                 torch.nn.MultiheadAttention, torch.nn.LazyLinear, torch.optim.AdamW]
        print(*[f"{kind.__module__}.{kind.__qualname__}" for kind in kinds])
        print(all(pickle.loads(pickle.dumps(kind)) is kind for kind in kinds))
        layer = copy.deepcopy(pickle.loads(pickle.dumps(torch.nn.Linear(1, 1))))
        print(type(layer) is torch.nn.Linear, "def forward" in inspect.getsource(torch.nn.Linear))
        torch_alias.disable()
        print(torch.Tensor.__module__, torch.nn.Linear.__module__, torch.nn.Parameter.__module__)
    """, tmp_path).splitlines() == [
        "torch.Tensor torch.Size torch.dtype torch.nn.parameter.Parameter torch.nn.modules.linear.Linear "
        "torch.nn.modules.activation.MultiheadAttention torch.nn.modules.linear.LazyLinear "
        "torch.optim.adamw.AdamW",
        "True", "True True",
        "mindtorch_v2._tensor mindtorch_v2.nn.modules.linear mindtorch_v2.nn.parameter"]


def test_modes_are_given_functions_that_ran_before(tmp_path):
    assert program("""
        from mindtorch_v2 import torch_alias
        torch_alias.enable(force=True)
        import torch
        from torch.overrides import TorchFunctionMode

        class Log(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                names.append(func.__name__)
                return func(*args, **(kwargs or {}))

        names = []
        torch.ones(1), torch.tensor(1.0), torch.arange(3)
        with Log():
            torch.ones(1), torch.tensor(1.0), torch.arange(3), torch.zeros(1)
        print(*names)
    """, tmp_path) == "ones tensor arange zeros"


def test_metadata_and_specs_are_ours(tmp_path, described_pytorch):
    write(tmp_path, {"ask.py": ASK})
    done = run("-m", "mindtorch_v2", "ask.py", cwd=tmp_path, path=[described_pytorch])
    assert done.stdout == "asked\n", done.stderr
    assert program("""
        from mindtorch_v2 import torch_alias
        import importlib.metadata, os
        before = os.environ.get("PYTHONPATH")
        torch_alias.enable(force=True)
        ours = importlib.metadata.version("torch")
        torch_alias.disable()
        assert os.environ.get("PYTHONPATH") == before
        print(ours != "2.99.0", importlib.metadata.version("torch"))
    """, tmp_path, [described_pytorch]) == "True 2.99.0"


def test_children_of_every_kind_have_the_alias(tmp_path, described_pytorch):
    write(tmp_path, {"ask.py": ASK, "start.py": """
        import multiprocessing, os, runpy, subprocess, sys

        def work(queue):
            import torch
            queue.put(torch.__package__)

        if __name__ == "__main__":
            subprocess.run([sys.executable, "ask.py"], check=True)
            os.system(f"{sys.executable} ask.py")
            for method in ("spawn", "forkserver", "fork"):
                context = multiprocessing.get_context(method)
                queue = context.Queue()
                process = context.Process(target=work, args=(queue,))
                process.start()
                print(queue.get(), flush=True)
                process.join()
    """})
    done = run("-m", "mindtorch_v2", "start.py", cwd=tmp_path, path=[described_pytorch])
    assert done.stdout.split() == ["asked"] * 2 + ["mindtorch_v2"] * 3, done.stderr


# -- small modules ---------------------------------------------------------------------------------------------------


def test_cuda_is_absent_as_in_a_build_without_it():
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    for name in ("synchronize", "current_device", "init", "get_device_name", "current_stream"):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            getattr(torch.cuda, name)()
    with pytest.raises(RuntimeError, match="Tried to instantiate dummy base class Event"):
        torch.cuda.Event()
    with pytest.raises(AttributeError):
        _ = torch.cuda.no_such_name


def test_npu_is_absent():
    assert not torch.npu.is_available()
    assert torch.npu.device_count() == 0
    torch.npu.manual_seed_all(1)
    assert torch.npu.unavailable_reason()
    assert torch.npu.memory_allocated() == 0
    for name in ("synchronize", "current_device", "Stream", "get_device_name"):
        with pytest.raises(RuntimeError, match="No NPU is available: "):
            getattr(torch.npu, name)()


def test_backends_answer_and_keep_flags():
    for name in ("cudnn", "mps", "mkl", "mkldnn", "openmp"):
        assert getattr(torch.backends, name).is_available() is False
    with torch.backends.cudnn.flags(enabled=False, benchmark=True):
        assert (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark) == (False, True)
    assert (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark) == (True, False)


def test_amp_switched_off_passes_through():
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    before = layer.weight.detach().clone()
    with torch.autocast("cpu", enabled=False):
        loss = layer(torch.ones(1, 2)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, layer.weight)
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    with pytest.warns(UserWarning, match="Disabling autocast"), torch.autocast("cuda"):
        assert not torch.is_autocast_enabled("cuda")


def test_compile_warns_once_and_returns_what_it_got():
    def double(x):
        return 2 * x

    _compile._Told.already = False
    with pytest.warns(UserWarning, match="no compiler"):
        assert torch.compile(double) is double
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.compile(mode="max-autotune", fullgraph=True)(double) is double


def test_jit_passes_functions_and_modules_through():
    def function():
        return 1

    for mark in (torch.jit.unused, torch.jit.export, torch.jit.ignore, torch.jit.ignore(drop=True)):
        assert mark(function) is function
    assert not torch.jit.is_scripting()
    assert not torch.jit.is_tracing()
    torch.jit._Told.already = False
    with pytest.warns(UserWarning, match="TorchScript does not exist"):
        assert torch.jit.script(function) is function
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = torch.nn.Linear(2, 2)
        assert torch.jit.trace(model, torch.ones(1, 2)) is model
    assert not isinstance(model, torch.jit.ScriptModule)

    class Scripted(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return x + 1

    assert Scripted()(torch.ones(1)).tolist() == [2.0]
    with pytest.raises(TypeError, match="expected a function"):
        torch.jit.script(3)
    with pytest.raises(NotImplementedError, match="TorchScript does not exist"):
        torch.jit.save(model, "model.pt")


def test_distributed_hub_and_multiprocessing():
    assert not torch.distributed.is_initialized()
    with pytest.raises(RuntimeError, match="NCCL moves data between CUDA devices"):
        torch.distributed.init_process_group("nccl")
    with pytest.raises(RuntimeError, match=r"fully_shard: this part of torch\.distributed is not in this runtime"):
        torch.distributed.fsdp.fully_shard(torch.nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match="does not download"):
        torch.hub.load("a/b", "c")
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    assert torch.multiprocessing.get_sharing_strategy() == "file_system"
    torch.multiprocessing.set_sharing_strategy(before)
    with pytest.raises(AssertionError):
        torch.multiprocessing.set_sharing_strategy("pigeons")
    assert torch.multiprocessing.Process is not None


def test_old_tensor_classes():
    assert torch.FloatTensor([1, 2]).dtype is torch.float32
    assert torch.LongTensor([1.5]).tolist() == [1]
    assert tuple(torch.HalfTensor(2, 3).shape) == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.DoubleTensor)
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor"
    assert torch.typename(3) == "int"
    assert torch.numel(torch.ones(2, 3)) == 6
    assert torch.is_storage(torch.ones(1).untyped_storage())
    with pytest.raises(TypeError):
        torch.FloatTensor(torch.ones(2, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_settings_are_remembered():
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(threads)
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_deterministic_debug_mode() == 1
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == torch.device("meta")
        assert torch.ones(2).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")


def test_tensorboard_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("mindtorch_v2.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboard"):
        importlib.import_module("mindtorch_v2.utils.tensorboard")


@pytest.mark.parametrize(("actual", "expected", "words"), [
    (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), "Mismatched elements: 1 / 2 (50.0%)"),
    (torch.tensor([1]), torch.tensor([2]), "Tensor-likes are not equal!"),
    (1.0, 1.1, "Scalars are not close!"),
    ({"a": [1.0]}, {"a": [2.0]}, "The failure occurred for item ['a'][0]"),
    (torch.ones(1), torch.ones(2), "attribute 'shape' do not match"),
    (torch.ones(1), torch.ones(1, dtype=torch.float64), "attribute 'dtype' do not match"),
])
def test_assert_close_refuses(actual, expected, words):
    with pytest.raises(AssertionError) as error:
        torch.testing.assert_close(actual, expected)
    assert words in str(error.value)


def test_assert_close_accepts_what_is_close():
    torch.testing.assert_close(torch.tensor([1.0, float("inf")]), torch.tensor([1.0 + 1e-7, float("inf")]))
    torch.testing.assert_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    torch.testing.assert_close([1, (torch.ones(2), None)], [1, (torch.ones(2), None)])
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol'"):
        torch.testing.assert_close(1.0, 1.0, rtol=0.1)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_worker_processes_of_a_program_have_the_alias(tmp_path, method):
    """They import the program again, and its `import torch` must mean the same there."""
    write(tmp_path, {"program.py": f"""
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return torch.tensor([index]), torch.__version__

        if __name__ == "__main__":
            for batch, versions in DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context={method!r}):
                print("mindtorch" in torch.__file__, versions[0] == torch.__version__)
    """})
    done = run("-m", "mindtorch_v2", "program.py", cwd=tmp_path)
    assert done.stdout.splitlines() == ["True True"] * 2, done.stderr
