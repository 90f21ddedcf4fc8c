"""Pyro: a model, a guide for it, and variational inference."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal

from ..harness import Figures, case


@case("pyro", "variational_inference", quick=True)
def variational_inference() -> Figures:
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    data = torch.randn(50) + 3

    def model(given: torch.Tensor) -> None:
        mean = pyro.sample("mean", dist.Normal(0, 10))
        scale = pyro.sample("scale", dist.HalfNormal(5.0))
        with pyro.plate("rows", len(given)):
            pyro.sample("seen", dist.Normal(mean, scale), obs=given)

    guide = AutoNormal(model)
    inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    losses = [float(inference.step(data)) for _ in range(5)]
    middle = guide.quantiles([0.5])
    return {"losses": losses, "medians": [float(middle["mean"][0]), float(middle["scale"][0])]}
