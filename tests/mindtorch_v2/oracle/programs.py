"""Small programs that run on either module under its profiler, for comparing what the profiles show."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Program = Callable[[Any, Any], None]


def _mlp(torch: Any, optimizer: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return model, optimizer(torch, model.parameters()), torch.randn(5, 8), torch.randint(0, 4, (5,))


def mlp_sgd(torch: Any, record: Any) -> Callable[[], None]:
    model, optimizer, x, y = _mlp(torch, lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9))

    def run() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    return run


def mlp_adamw(torch: Any, record: Any) -> Callable[[], None]:
    model, optimizer, x, _ = _mlp(torch, lambda t, p: t.optim.AdamW(p, lr=0.1))

    def run() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), torch.zeros(5, 4)).backward()
            optimizer.step()

    return run


def chain(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(4, 3, requires_grad=True)

    def run() -> None:
        y = x
        for _ in range(5):
            y = (y * 2 + 1).tanh()
        y.sum().backward()

    return run


def broadcasting(torch: Any, record: Any) -> Callable[[], None]:
    x, y = torch.ones(4, 1, requires_grad=True), torch.ones(3, requires_grad=True)

    def run() -> None:
        (x * y - y / x).mean().backward()

    return run


def scopes(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(4)

    def run() -> None:
        with record("outer"):
            x + x
            with record("inner"):
                x * x
        with record("second"):
            x - x

    return run


def indexing(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()

    def run() -> None:
        (x[0] + x[1, 1:3].sum() + x[:, None, ::2].sum() + x[torch.tensor([0, 2])].sum()).sum().backward()

    return run


def views(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(2, 3, 4, requires_grad=True)

    def run() -> None:
        y = x.transpose(0, 1).reshape(6, 4).unsqueeze(0).expand(2, 6, 4).permute(2, 0, 1).flatten(1)
        y.contiguous().view(-1).sum().backward()

    return run


def losses(torch: Any, record: Any) -> Callable[[], None]:
    F = torch.nn.functional
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    target = torch.full((3, 4), 0.5)

    def run() -> None:
        (F.mse_loss(x, target) + F.l1_loss(x, target) + F.smooth_l1_loss(x, target)
         + F.binary_cross_entropy_with_logits(x, target)).backward()

    return run


def attention(torch: Any, record: Any) -> Callable[[], None]:
    q, k, v = (torch.ones(2, 5, 4, requires_grad=True) for _ in range(3))

    def run() -> None:
        scores = q @ k.transpose(1, 2) / 2.0
        mask = torch.ones(5, 5).tril() == 0
        weights = torch.softmax(scores.masked_fill(mask, float("-inf")), -1)
        (weights @ v).sum().backward()

    return run


def normalised(torch: Any, record: Any) -> Callable[[], None]:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.5))
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])

    def run() -> None:
        model(tokens).pow(2).sum().backward()

    return run


def reductions(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.linspace(0, 1, 12).reshape(3, 4).requires_grad_()

    def run() -> None:
        (x.sum(0).max() + x.mean(1).min() + x.var() + x.std(0).sum() + x.norm() + x.logsumexp(1).sum()
         + x.amax(0).sum() + x.max(1)[0].sum() + x.cumsum(0).sum() + x.prod()).backward()

    return run


def no_gradients(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(3, 3)

    def run() -> None:
        with torch.no_grad():
            y = x.clone()
            y.add_(1).mul_(2)
            y[0] = 5
            torch.cat([x, y]).sort(1)
            torch.stack([x, y]).argmax().item()
            (x > 0).any()

    return run


def double_backward(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(3, requires_grad=True)

    def run() -> None:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()

    return run


def threads(torch: Any, record: Any) -> Callable[[], None]:
    x = torch.ones(3)

    def run() -> None:
        x + x
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        x * x

    return run


def operators(torch: Any, record: Any) -> Callable[[], None]:
    x, y = torch.tensor([3, 1, 2]), torch.tensor([1, 1, 0])

    def run() -> None:
        z = (x & y) | (x ^ 1)
        z &= y
        if (z == 0).any():
            z.tolist()

    return run


def in_place_activations(torch: Any, record: Any) -> Callable[[], None]:
    F = torch.nn.functional
    x = torch.linspace(-1, 1, 12).requires_grad_()

    def run() -> None:
        F.elu(F.leaky_relu(x * 2, 0.2, inplace=True) + 1, inplace=True).sum().backward()

    return run


def smoothed_losses(torch: Any, record: Any) -> Callable[[], None]:
    F = torch.nn.functional
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    classes, shares = torch.tensor([0, 3, 1]), torch.full((3, 4), 0.25)

    def run() -> None:
        F.cross_entropy(x, classes, label_smoothing=0.1).backward()
        F.cross_entropy(x, shares, label_smoothing=0.1).backward()

    return run


def _recurrent(kind: str, batch_first: bool) -> Program:
    def program(torch: Any, record: Any) -> Callable[[], None]:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(3, 4, batch_first=batch_first, bidirectional=True)
        x = torch.randn(3, 5, 3, requires_grad=True)

        def run() -> None:
            layer(x)[0].sum().backward()

        return run

    program.__name__ = kind.lower()
    return program


def attention_layers(torch: Any, record: Any) -> Callable[[], None]:
    F = torch.nn.functional
    x = torch.linspace(-1, 1, 2 * 5 * 24).reshape(2, 5, 24).requires_grad_()

    def run() -> None:
        q, k, v = (part.view(2, 5, 2, 4).transpose(1, 2) for part in x.split(8, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y.transpose(1, 2).contiguous().view(2, 5, 8).sum().backward()

    return run


def sampling(torch: Any, record: Any) -> Callable[[], None]:
    chances = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.9, 0.0]])

    def run() -> None:
        torch.multinomial(chances, 1)

    return run


PROGRAMS: dict[str, Any] = {f.__name__: f for f in (
    mlp_sgd, mlp_adamw, chain, broadcasting, scopes, indexing, views, losses, attention, normalised, reductions,
    no_gradients, double_backward, threads, operators, in_place_activations, smoothed_losses,
    _recurrent("RNN", False), _recurrent("LSTM", True), attention_layers, sampling)}
