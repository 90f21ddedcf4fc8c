"""Spectral normalisation by a hook: a weight is divided by its largest singular value, found by power iteration."""

from __future__ import annotations

from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ...nn.modules.module import Module
from .. import functional as F
from ..parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with one dimension first and all others as one."""
    if dim != 0:
        weight = aten.permute(weight, (dim, *(d for d in range(weight.ndim) if d != dim)))
    return aten.reshape(weight, (weight.shape[0], -1))


class SpectralNorm:
    """The hook: keeps approximate singular vectors `name_u` and `name_v` and computes the weight from `name_orig`."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalised weight; while training the singular vectors get better by some iterations."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = F.normalize(aten.mv(aten.t(matrix), u), dim=0, eps=self.eps, out=v)
                    u = F.normalize(aten.mv(matrix, v), dim=0, eps=self.eps, out=u)
                # The next call changes the buffers in place, which a backward after it must not notice.
                u, v = aten.clone(u), aten.clone(v)
        return aten.div(weight, aten.dot(u, aten.mv(matrix, v)))

    def remove(self, module: Module) -> None:
        """One parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for ending in ("_u", "_v", "_orig"):
            delattr(module, self.name + ending)
        module.register_parameter(self.name, Parameter(aten.detach(weight)))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Take a parameter's place and register the hooks."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to "
                             "run the dummy forward before applying spectral normalization")
        with no_grad():
            rows, columns = made.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(aten.normal_(weight.new_empty(size), 0, 1), dim=0, eps=eps)
                    for size in (rows, columns))
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        # Something has to be there under the name until the first forward, but it must not be a parameter.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(made.note_version)
        module._register_load_state_dict_pre_hook(made.read_old)
        return made

    def note_version(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        """PyTorch tells old and new checkpoints apart by this."""
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = 1


    def read_old(self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
                 missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        """A checkpoint from before `name_v` was kept has the normalised weight instead: the vector follows from it."""
        version = local_metadata.get("spectral_norm", {}).get(self.name + ".version")
        key = prefix + self.name
        parts = (key + "_orig", key, key + "_u")
        if version is not None and version >= 1:
            return
        if version is None and key not in state_dict and all(key + end in state_dict for end in ("_orig", "_u", "_v")):
            return  # of this version, and only what says so was lost
        missing = [one for one in parts if one not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, weight, u = state_dict[key + "_orig"], state_dict.pop(key), state_dict[key + "_u"]
            sigma = aten.mean(aten.div(original, weight))
            matrix = self.reshape_weight_to_matrix(original)
            v = aten.mv(aten.linalg_pinv(aten.mm(aten.t(matrix), matrix)), aten.mv(aten.t(matrix), u))
            state_dict[key + "_v"] = aten.mul(v, aten.div(sigma, aten.dot(u, aten.mv(matrix, v))))


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Any:
    """Divide a parameter by its largest singular value before every forward."""
    if dim is None:
        # Transposed convolutions have their outputs in the second dimension.
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Undo `spectral_norm`."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, hook in table.items():
            owner = getattr(getattr(hook, "hook", hook), "__self__", None)
            if isinstance(owner, SpectralNorm) and owner.name == name:
                del table[key]
                break
    return module
