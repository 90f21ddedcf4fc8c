"""GPyTorch: exact and variational Gaussian processes."""

from __future__ import annotations

import math

import gpytorch
import torch

from ..harness import Figures, case, summary


class Exact(gpytorch.models.ExactGP):
    """A constant mean and a scaled radial kernel."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.Likelihood) -> None:
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@case("gpytorch", "exact", quick=True)
def exact() -> Figures:
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 40, dtype=torch.float64)
    y = torch.sin(x * 2 * math.pi) + torch.randn(40, dtype=torch.float64) * 0.1
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Exact(x, y, likelihood).double()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(torch.linspace(0, 1, 7, dtype=torch.float64)))
    return {"losses": losses, "mean": summary(predicted.mean), "variance": summary(predicted.variance)}
