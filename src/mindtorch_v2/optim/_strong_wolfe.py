"""A line search for steps that satisfy the strong Wolfe conditions, as Schmidt's minFunc does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._tensor import Tensor

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 25


class Trial(NamedTuple):
    """A step length with the loss there, its gradient, and the slope along the direction."""

    step: Any
    loss: float
    grad: Any
    slope: Any


def cubic_minimum(first: Trial, second: Trial, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two trials is least, kept between bounds (by default the trials)."""
    low, high = bounds if bounds is not None else sorted((first.step, second.step))
    left, right = (first, second) if first.step <= second.step else (second, first)
    d1 = first.slope + second.slope - 3 * (first.loss - second.loss) / (first.step - second.step)
    square = d1**2 - first.slope * second.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, Tensor) else square**0.5
    share = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    return min(max(right.step - (right.step - left.step) * share, low), high)


def strong_wolfe(evaluate: Callable[[Any], tuple[float, Any]], direction: Any, start: Trial, step: Any,
                 tolerance: float) -> tuple[Trial, int]:
    """A step along `direction` and the number of evaluations; `start` is the trial of step 0."""

    def trial(length: Any) -> Trial:
        loss, grad = evaluate(length)
        return Trial(length, loss, grad.clone(), grad.dot(direction))

    def too_high(found: Trial) -> bool:
        return bool(found.loss > start.loss + SUFFICIENT_DECREASE * found.step * start.slope)

    def flat_enough(found: Trial) -> bool:
        return bool(abs(found.slope) <= -CURVATURE * start.slope)

    largest = direction.abs().max()
    previous, now = start, trial(step)
    evaluations, rounds = 1, 0
    bracket: list[Trial] | None = None
    while rounds < MAX_TRIALS:
        if too_high(now) or (rounds > 1 and now.loss >= previous.loss):
            bracket = [previous, now]
            break
        if flat_enough(now):
            return now, evaluations
        if now.slope >= 0:
            bracket = [previous, now]
            break
        nearest = now.step + 0.01 * (now.step - previous.step)
        further = cubic_minimum(previous, now, (nearest, now.step * 10))
        previous, now = now, trial(further)
        evaluations += 1
        rounds += 1
    if bracket is None:
        bracket = [start, now]
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stuck = False
    while rounds < MAX_TRIALS:
        left, right = sorted((bracket[0].step, bracket[1].step))
        if (right - left) * largest < tolerance:
            break
        step = cubic_minimum(bracket[0], bracket[1])
        # Too near an end twice in a row: a tenth of the bracket away from that end.
        margin = 0.1 * (right - left)
        if min(right - step, step - left) < margin:
            if stuck or step >= right or step <= left:
                step = right - margin if abs(step - right) < abs(step - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = trial(step)
        evaluations += 1
        rounds += 1
        high = 1 - low
        if too_high(now) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = flat_enough(now)
        if not done and now.slope * (bracket[high].step - bracket[low].step) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
        if done:
            break
    return bracket[low], evaluations
