"""A graph convolution network that learns the communities of a random graph from a few labelled nodes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import profile

NODES, FEATURES, COMMUNITIES = 120, 16, 4


class GraphConvolution(nn.Module):
    """Every node becomes the normalised sum of its neighbours, after a linear map."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_in, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = torch.mm(x, self.weight).index_select(0, source) * norm.unsqueeze(1)
        gathered = torch.zeros(x.size(0), self.weight.size(1)).index_add(0, target, messages)
        return gathered + self.bias


class GCN(nn.Module):
    def __init__(self, hidden: int = 16, dropout: float = 0.5) -> None:
        super().__init__()
        self.conv1 = GraphConvolution(FEATURES, hidden)
        self.conv2 = GraphConvolution(hidden, COMMUNITIES)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, edges: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv1(x, edges, norm))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.conv2(x, edges, norm), dim=1)


def make_graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features, edges (two rows: from, to; both directions) and communities; friends are mostly of one community."""
    labels = torch.arange(NODES) % COMMUNITIES
    probability = torch.where(labels[:, None] == labels, 0.2, 0.01)
    linked = (torch.rand(NODES, NODES) < probability).triu(1)
    linked = linked | linked.t() | torch.eye(NODES, dtype=torch.bool)
    features = torch.randn(NODES, FEATURES)
    features[torch.arange(NODES), labels] += 1.0
    return features, linked.nonzero().t().contiguous(), labels


def normalisation(edges: torch.Tensor) -> torch.Tensor:
    """One weight per edge: the inverse root of the degrees at both ends."""
    source, target = edges
    degree = torch.zeros(NODES).scatter_add_(0, target, torch.ones(target.size(0)))
    inverse_root = degree.pow(-0.5)
    return inverse_root[source] * inverse_root[target]


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    features, edges, labels = make_graph()
    norm = normalisation(edges)
    known = torch.zeros(NODES, dtype=torch.bool)
    known[torch.randperm(NODES)[:40]] = True
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses, accuracy = [], 0.0
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        output = model(features, edges, norm)
        loss = F.nll_loss(output[known], labels[known])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            guess = model(features, edges, norm).argmax(dim=1)
            accuracy = (guess[~known] == labels[~known]).float().mean().item()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
    if on_step:
        print(f"accuracy on the unlabelled nodes {accuracy:.2f}")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", metavar="PATH", help="write a chrome trace there and print a table")
    args = parser.parse_args()
    with profile(record_shapes=True) if args.profile else nullcontext() as prof:
        train(args.steps, args.seed, on_step=lambda step, loss: print(f"step {step:3d}  loss {loss:.4f}"))
    if prof is not None:
        prof.export_chrome_trace(args.profile)
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))


if __name__ == "__main__":
    main()
