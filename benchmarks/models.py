"""Small models as users train them: a GPT, a convolutional network, an LSTM and ResNet-18, with default threads.

Both sides build the same model from the same seed; their first losses are compared before anything is timed.
"""

from __future__ import annotations

from typing import Any

from .apart import best_apart, memory_apart
from .timing import Work, line

VOCABULARY = 256


def gpt(torch: Any, layers: int = 2, width: int = 128, heads: int = 4, batch: int = 8, length: int = 64) -> Work:
    """One step of a causal language model with AdamW."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            rows, steps, _ = x.shape
            q, k, v = (part.view(rows, steps, heads, width // heads).transpose(1, 2)
                       for part in self.qkv(self.norm1(x)).split(width, dim=2))
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(rows, steps, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, VOCABULARY, (batch, length))
    targets = torch.randint(0, VOCABULARY, (batch * length,))

    def step() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(tokens).view(-1, VOCABULARY), targets)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _training(torch: Any, model: Any, optimizer: Any, x: Any, y: Any) -> Work:
    """One step of a classifier."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def cnn(torch: Any, batch: int = 16, channels: int = 32) -> Work:
    """One step of a digit classifier: two convolutions with batch norm and pooling, two linear layers."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.BatchNorm2d(2 * channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * channels * 7 * 7, 4 * channels), nn.ReLU(), nn.Linear(4 * channels, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _training(torch, model, optimizer, torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,)))


def lstm(torch: Any, features: int = 64, hidden: int = 128, batch: int = 16, length: int = 32) -> Work:
    """One step of a sequence classifier with Adam."""
    nn = torch.nn
    torch.manual_seed(0)
    recurrent, head = nn.LSTM(features, hidden, batch_first=True), nn.Linear(hidden, 10)
    optimizer = torch.optim.Adam([*recurrent.parameters(), *head.parameters()], lr=1e-3)
    x, y = torch.randn(batch, length, features), torch.randint(0, 10, (batch,))
    return _training(torch, lambda x: head(recurrent(x)[0][:, -1]), optimizer, x, y)


def _resnet(torch: Any, blocks: list[Any], channels: int, batch: int, size: int) -> Work:
    """Forward and backward of a residual network for 1000 classes, in training mode."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(channels, 1000),
    )
    x, y = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))

    def step() -> Any:
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return step


def resnet18(torch: Any, batch: int = 2, size: int = 64) -> Work:
    """Forward and backward of ResNet-18 for 1000 classes, in training mode."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
            self.bn1, self.bn2, self.relu = nn.BatchNorm2d(out), nn.BatchNorm2d(out), nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or channels != out:
                self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False),
                                                nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            made = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            made += x if self.downsample is None else self.downsample(x)
            return self.relu(made)

    torch.manual_seed(0)
    stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [block for a, b, s in stages for block in (Block(a, b, s), Block(b, b, 1))]
    return _resnet(torch, blocks, 512, batch, size)


def resnet50(torch: Any, batch: int = 1, size: int = 224) -> Work:
    """Forward and backward of ResNet-50 for 1000 classes, in training mode."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels: int, inner: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
            self.conv2 = nn.Conv2d(inner, inner, 3, stride=stride, padding=1, bias=False)
            self.conv3 = nn.Conv2d(inner, 4 * inner, 1, bias=False)
            self.bn1, self.bn2, self.bn3 = nn.BatchNorm2d(inner), nn.BatchNorm2d(inner), nn.BatchNorm2d(4 * inner)
            self.relu, self.downsample = nn.ReLU(inplace=True), None
            if stride != 1 or channels != 4 * inner:
                self.downsample = nn.Sequential(nn.Conv2d(channels, 4 * inner, 1, stride=stride, bias=False),
                                                nn.BatchNorm2d(4 * inner))

        def forward(self, x: Any) -> Any:
            made = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
            made = self.bn3(self.conv3(made))
            made += x if self.downsample is None else self.downsample(x)
            return self.relu(made)

    torch.manual_seed(0)
    blocks, channels = [], 64
    for inner, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(Block(channels, inner, stride if i == 0 else 1))
            channels = 4 * inner
    return _resnet(torch, blocks, 2048, batch, size)


def bert_base(torch: Any, batch: int = 1, length: int = 128) -> Work:
    """The forward of an encoder of BERT's base size: 12 layers of 768 features and 12 heads, in evaluation mode."""
    nn = torch.nn
    torch.manual_seed(0)
    words, places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
    layers = nn.ModuleList([nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
                            for _ in range(12)]).eval()
    tokens = torch.randint(0, 30522, (batch, length))

    def step() -> Any:
        with torch.no_grad():
            x = words(tokens) + places(torch.arange(length))
            for layer in layers:
                x = layer(x)
            return x.square().mean()

    return step


def gpt_larger(torch: Any) -> Work:
    """One step of a GPT of 6 layers and 384 features, at a context of 256."""
    return gpt(torch, layers=6, width=384, heads=6, batch=4, length=256)


CASES = [
    ("GPT 2 x 128, 4 heads, batch 8x64", gpt, 1.0),
    ("CNN 1x28x28, batch 16", cnn, 1.0),
    ("LSTM 64-128, batch 16, 32 steps", lstm, 1.0),
    ("ResNet-18 64x64, batch 2, no step", resnet18, 1.1),
    ("GPT 6 x 384, 6 heads, batch 4x256", gpt_larger, 1.1),
    ("ResNet-50 224x224, batch 1, no step", resnet50, 1.1),
    ("BERT-base, forward, batch 1x128", bert_base, 1.1),
]
# How cost grows: one of a GPT's sizes at a time.
GROWTH = [("batch", {"batch": 2}), ("batch", {"batch": 8}), ("batch", {"batch": 32}), ("width", {"width": 64}),
          ("width", {"width": 256}), ("width", {"width": 512}), ("length", {"length": 32}), ("length", {"length": 128}),
          ("length", {"length": 512, "batch": 2})]


def run() -> None:
    """Print each model's cost."""
    print("\ntraining steps of models, each runtime in processes of its own: ours, PyTorch, ratio")
    for name, build, aim in CASES:
        print(line(name, *best_apart(build.__name__), aim, "ms"), flush=True)
    print("\nthe same on one thread, processor time")
    for name, build, aim in CASES:
        print(line(name, *best_apart(build.__name__, threads=1), aim, "ms"), flush=True)
    print("\nhow the step of the GPT of 2 layers grows, one thread, processor time")
    for what, sizes in GROWTH:
        shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
        print(line(f"{what}: {shown}", *best_apart("gpt", 2, 1, sizes), None, "ms"), flush=True)
    print("\nmost memory that a process of such steps has had, MB")
    for name, build, _ in CASES:
        mine, other = (memory_apart(build.__name__, which) for which in ("ours", "theirs"))
        print(f"{name:36s} {mine:8.0f}   {other:8.0f} MB  ratio {mine / other:5.2f}", flush=True)
