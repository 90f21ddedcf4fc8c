"""`python -m tests.faults`: run the cases and print how they ended; the exit code is 0 if all held."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import os
import resource
import signal
import sys
import time

from .registry import load_all
from .run import Outcome, run


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Runs fault cases in child processes.")
    parser.add_argument("-k", metavar="WORD", default="", help="only cases whose name contains this")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--recorder", choices=("c", "python"), help="only this recorder")
    parser.add_argument("--quick", action="store_true", help="only what takes seconds and does not depend on chance")
    parser.add_argument("--times", action="store_true", help="say how much processor time each took")
    parser.add_argument("--list", action="store_true", help="say what there is")
    chosen = parser.parse_args()
    cases = [case for case in load_all().values() if chosen.k in case.name and (case.quick or not chosen.quick)]
    if chosen.list:
        for case in cases:
            print(f"{case.name:45} {' '.join(case.recorders):9} {(case.body.__doc__ or '').splitlines()[0]}")
        return 0
    runs = [(case, recorder) for case in cases for recorder in case.recorders
            if chosen.recorder in (None, recorder) or recorder == "any"]
    # In the background of a script SIGINT is ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The longest first, so that the last to end is a short one.
    runs.sort(key=lambda one: -one[0].seconds)
    began, outcomes = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(chosen.j) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, *one) for one in runs]):
            outcome = done.result()
            outcomes.append(outcome)
            if outcome.kind != "held":
                print(_report(outcome), flush=True)
            elif chosen.times:
                print(f"{outcome.seconds:6.1f} s {outcome.name}", flush=True)
    counts = collections.Counter(outcome.kind for outcome in outcomes)
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(outcomes)} runs of {len(cases)} cases in {time.monotonic() - began:.0f} s, "
          f"{used.ru_utime + used.ru_stime:.0f} s of processor: {told}")
    bad = sorted(outcome.name for outcome in outcomes if outcome.kind not in ("held", "skipped"))
    if bad:
        print("not held: " + " ".join(bad))
    return 1 if bad or not outcomes else 0


def _report(outcome: Outcome) -> str:
    promise = (outcome.case.body.__doc__ or "").splitlines()[0]
    last = outcome.said.splitlines()[-12:] if outcome.kind != "skipped" else [outcome.said]
    indented = "\n".join(f"    {line[:160]}" for line in last)
    return (f"{outcome.kind.upper():8} {outcome.name} after {outcome.seconds:.1f} s of processor. "
            f"The promise: {promise}\n{indented}")


if __name__ == "__main__":
    sys.exit(main())
