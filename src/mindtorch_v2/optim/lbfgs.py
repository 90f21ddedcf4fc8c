"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.grad_mode import enable_grad, no_grad
from .._dispatch.namespace import aten
from .._memory_format import contiguous_format
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import number
from ._strong_wolfe import Trial, strong_wolfe
from .optimizer import Optimizer

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Quasi-Newton steps from a history of gradients; `step` needs a closure and calls it several times.

    There is one parameter group, and its state is kept with the first parameter.
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        })
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> Any:
        """All gradients in one row, as real numbers."""
        pieces = []
        for parameter in self._params:
            if parameter.grad is None:
                piece = aten.zeros(parameter.numel(), dtype=parameter.dtype, device=parameter.device)
            else:
                piece = parameter.grad.reshape(-1)
            pieces.append(aten.view_as_real(piece).view(-1) if piece.dtype.is_complex else piece)
        return aten.cat(pieces, 0)

    def _move(self, step: Any, direction: Any) -> None:
        """Add a multiple of a row to the parameters."""
        offset = 0
        length = step.item() if isinstance(step, Tensor) else step
        for parameter in self._params:
            target = aten.view_as_real(parameter) if parameter.dtype.is_complex else parameter
            count = target.numel()
            aten.add_(target, direction[offset:offset + count].view_as(target), alpha=length)
            offset += count

    def _evaluate(self, closure: Callable[[], Any], start: list[Any], step: Any, direction: Any) -> tuple[float, Any]:
        """Loss and gradient at a step from `start`, to which the parameters return afterwards."""
        self._move(step, direction)
        loss = number(closure())
        grad = self._flat_grad()
        for parameter, value in zip(self._params, start, strict=True):
            parameter.copy_(value)
        return loss, grad

    @staticmethod
    def _direction(grad: Any, state: dict[str, Any], history_size: int) -> Any:
        """Minus the gradient times the estimated inverse Hessian, by the two-loop recursion."""
        differences, steps, weights = state["old_dirs"], state["old_stps"], state["ro"]
        count = len(differences)
        shares: list[Any] = [None] * count
        q = grad.neg()
        for i in range(count - 1, -1, -1):
            shares[i] = steps[i].dot(q) * weights[i]
            q.add_(differences[i], alpha=-shares[i].item())
        result = aten.mul(q, state["H_diag"])
        for i in range(count):
            back = differences[i].dot(result) * weights[i]
            result.add_(steps[i], alpha=(shares[i] - back).item())
        # Kept as PyTorch keeps it, so that state dicts have the same entries.
        table = state.setdefault("al", [None] * history_size)
        table[:count] = shares
        return result

    @staticmethod
    def _remember(grad: Any, state: dict[str, Any], history_size: int) -> None:
        """Add the last step and what it did to the gradient to the history, if the curvature is positive."""
        difference = grad.sub(state["prev_flat_grad"])
        step = state["d"].mul(state["t"])
        curvature = difference.dot(step)
        if not curvature > 1e-10:  # nor what is no number
            return
        if len(state["old_dirs"]) == history_size:
            for table in ("old_dirs", "old_stps", "ro"):
                state[table].pop(0)
        state["old_dirs"].append(difference)
        state["old_stps"].append(step)
        state["ro"].append(1.0 / curvature)
        state["H_diag"] = curvature / difference.dot(difference)

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to `max_iter` iterations; returns the loss before them."""
        compute = enable_grad()(closure)
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = compute()
        loss = number(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                self._remember(grad, state, group["history_size"])
                state["d"] = self._direction(grad, state, group["history_size"])
            if state.get("prev_flat_grad") is None:
                state["prev_flat_grad"] = grad.clone(memory_format=contiguous_format)
            else:
                state["prev_flat_grad"].copy_(grad)
            state["prev_loss"] = loss
            direction = state["d"]
            length = min(1.0, 1.0 / grad.abs().sum()) * group["lr"] if state["n_iter"] == 1 else group["lr"]
            state["t"] = length
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            loss, grad, used, flat = self._advance(compute, group, state, Trial(0, loss, grad, slope), iteration)
            evaluations += used
            state["func_evals"] += used
            if (iteration == group["max_iter"] or evaluations >= group["max_eval"] or flat
                    or direction.mul(state["t"]).abs().max() <= group["tolerance_change"]
                    or abs(loss - state["prev_loss"]) < group["tolerance_change"]):
                break
        return first_loss

    def _advance(self, compute: Callable[[], Any], group: dict[str, Any], state: dict[str, Any], start: Trial,
                 iteration: int) -> tuple[float, Any, int, bool]:
        """Move the parameters; returns loss and gradient there, evaluations used, and whether the gradient is 0."""
        direction = state["d"]
        if group["line_search_fn"] is None:
            self._move(state["t"], direction)
            if iteration == group["max_iter"]:
                return start.loss, start.grad, 0, False  # nobody will look at the new loss
            loss = number(compute())
            grad = self._flat_grad()
            return loss, grad, 1, bool(grad.abs().max() <= group["tolerance_grad"])
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        before = [p.clone(memory_format=contiguous_format) for p in self._params]
        found, used = strong_wolfe(lambda step: self._evaluate(compute, before, step, direction), direction,
                                   start._replace(grad=start.grad.clone()), state["t"], group["tolerance_change"])
        self._move(found.step, direction)
        state["t"] = found.step
        return found.loss, found.grad, used, bool(found.grad.abs().max() <= group["tolerance_grad"])
