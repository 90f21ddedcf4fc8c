"""REINFORCE with a learned baseline: a policy balances a pole on a cart, one episode per step."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical
from torch.profiler import profile


class CartPole:
    """A pole hinged on a cart that is pushed left (0) or right (1); it ends when the pole falls or the cart leaves."""

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def reset(self) -> torch.Tensor:
        self.state = (0.1 * torch.rand(4) - 0.05).tolist()
        return torch.tensor(self.state)

    def step(self, action: int) -> tuple[torch.Tensor, float, bool]:
        """The next state, the reward and whether the episode is over."""
        x, speed, angle, spin = self.state
        force = self.FORCE if action == 1 else -self.FORCE
        total = self.CART + self.POLE
        push = (force + self.POLE * self.HALF_LENGTH * spin ** 2 * math.sin(angle)) / total
        inertia = self.HALF_LENGTH * (4 / 3 - self.POLE * math.cos(angle) ** 2 / total)
        turn = (self.GRAVITY * math.sin(angle) - math.cos(angle) * push) / inertia
        pull = push - self.POLE * self.HALF_LENGTH * turn * math.cos(angle) / total
        self.state = [x + self.SECONDS * speed, speed + self.SECONDS * pull,
                      angle + self.SECONDS * spin, spin + self.SECONDS * turn]
        over = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * math.pi / 180
        return torch.tensor(self.state), 1.0, over


class Policy(nn.Module):
    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.shared = nn.Linear(4, hidden)
        self.action_head = nn.Linear(hidden, 2)
        self.value_head = nn.Linear(hidden, 1)

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = F.relu(self.shared(state))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def play(policy: Policy, environment: CartPole, limit: int = 40) -> tuple[list[torch.Tensor], list[torch.Tensor],
                                                                          list[torch.Tensor], list[float]]:
    """One episode: log-probabilities of the actions taken, values, entropies and rewards."""
    log_probabilities, values, entropies, rewards = [], [], [], []
    state = environment.reset()
    for _ in range(limit):
        probabilities, value = policy(state)
        choice = Categorical(probabilities)
        action = choice.sample()
        state, reward, over = environment.step(int(action.item()))
        log_probabilities.append(choice.log_prob(action))
        values.append(value)
        entropies.append(choice.entropy())
        rewards.append(reward)
        if over:
            break
    return log_probabilities, values, entropies, rewards


def discounted(rewards: list[float], gamma: float = 0.99) -> torch.Tensor:
    """What is still to come at each moment, brought to mean 0 and deviation 1."""
    returns: list[float] = []
    for reward in reversed(rewards):
        returns.insert(0, reward + (gamma * returns[0] if returns else 0.0))
    values = torch.tensor(returns)
    return (values - values.mean()) / (values.std() + 1e-6)


def train(steps: int, seed: int = 0, on_step: Callable[[int, float], None] | None = None) -> list[float]:
    torch.manual_seed(seed)
    environment, policy = CartPole(), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        log_probabilities, values, entropies, rewards = play(policy, environment)
        returns = discounted(rewards)
        baseline = torch.cat(values)
        advantage = returns - baseline.detach()
        policy_loss = -(torch.stack(log_probabilities) * advantage).sum()
        value_loss = F.smooth_l1_loss(baseline, returns, reduction="sum")
        loss = policy_loss + value_loss - 0.01 * torch.stack(entropies).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if on_step:
            on_step(step, losses[-1])
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
