"""PyTorch Geometric: convolutions on graphs, batches, pooling, sampling of neighbours where it needs no extension."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch_geometric
from torch_geometric import nn as graph_nn
from torch_geometric.data import Batch, Data

from ..harness import Figures, case, learn, summary


def graph(seed: int = 0, nodes: int = 12, edges: int = 30) -> Data:
    generator = np.random.default_rng(seed)
    return Data(x=torch.from_numpy(generator.standard_normal((nodes, 6)).astype(np.float32)),
                edge_index=torch.from_numpy(generator.integers(0, nodes, (2, edges))),
                y=torch.from_numpy(generator.integers(0, 3, nodes)))


LAYERS: dict[str, Any] = {
    "gcn": lambda: graph_nn.GCNConv(6, 3), "sage": lambda: graph_nn.SAGEConv(6, 3),
    "gat": lambda: graph_nn.GATConv(6, 3, heads=2, concat=False),
    "gatv2": lambda: graph_nn.GATv2Conv(6, 3), "gin": lambda: graph_nn.GINConv(torch.nn.Linear(6, 3)),
    "transformer": lambda: graph_nn.TransformerConv(6, 3), "cheb": lambda: graph_nn.ChebConv(6, 3, K=2),
    "tag": lambda: graph_nn.TAGConv(6, 3), "graph": lambda: graph_nn.GraphConv(6, 3, aggr="max"),
}


def _train(name: str) -> Figures:
    torch.manual_seed(0)
    model, data = LAYERS[name](), graph()

    def run(m: Any) -> tuple[Any, Any]:
        out = m(data.x, data.edge_index)
        return out, torch.nn.functional.cross_entropy(out, data.y)

    return learn(model, run)


for _name in LAYERS:
    case("torch_geometric", _name, quick=_name == "gcn")(lambda _name=_name: _train(_name))  # type: ignore[misc]


@case("torch_geometric", "batches")
def batches() -> Figures:
    """Graphs in a loader, with pooling of each."""
    loader = torch_geometric.loader.DataLoader([graph(seed, 8 + seed) for seed in range(6)], batch_size=3)
    torch.manual_seed(0)
    layer = graph_nn.GCNConv(6, 4)
    figures = {}
    for number, batch in enumerate(loader):
        out = layer(batch.x, batch.edge_index)
        figures[f"mean{number}"] = summary(graph_nn.global_mean_pool(out, batch.batch))
        figures[f"max{number}"] = summary(graph_nn.global_max_pool(out, batch.batch))
    return figures


@case("torch_geometric", "sparse")
def sparse() -> Figures:
    """Adjacency as a sparse tensor, rows and columns compressed, in products and in a layer."""
    data = Batch.from_data_list([graph(0), graph(1)])
    size = (data.num_nodes, data.num_nodes)
    adjacency = torch_geometric.utils.to_torch_coo_tensor(data.edge_index, size=size)
    rows = torch_geometric.utils.to_torch_csr_tensor(data.edge_index, size=size)
    torch.manual_seed(0)
    layer = graph_nn.GCNConv(6, 3)
    return {"coo": summary(adjacency @ data.x), "csr": summary(rows @ data.x),
            "layer": summary(layer(data.x, adjacency.t())), "dense": summary(data.x.t() @ adjacency.to_dense())}


@case("torch_geometric", "utilities")
def utilities() -> Figures:
    data = graph()
    utils = torch_geometric.utils
    loops, _ = utils.add_self_loops(data.edge_index)
    both = utils.to_undirected(data.edge_index)
    return {"degree": utils.degree(data.edge_index[0], data.num_nodes).tolist(), "loops": [float(loops.shape[1])],
            "both": summary(both), "softmax": summary(utils.softmax(torch.arange(30.0), data.edge_index[0])),
            "scatter": summary(utils.scatter(data.x[data.edge_index[0]], data.edge_index[1], reduce="mean"))}
