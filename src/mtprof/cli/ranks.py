"""Print who is slow and who waits for whom, from the traces of all ranks of a job.

The folder has a trace of each rank. Files are read one at a time, so that memory stays small. Who waits is told
by the clocks of the machines: on one machine they are one clock."""

from __future__ import annotations

import argparse

from .errors import CommandError
from .output import SETTINGS, line, note, print_json, table, working

EXAMPLES = """
mtprof ranks traces/
mtprof ranks --steps traces/                       each step of each rank
mtprof ranks --json traces/
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="with a trace of each rank")
    parser.add_argument("--steps", action="store_true", help="list the steps of each rank too")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="ranks and collectives to list (default 20)")


def run(options: argparse.Namespace) -> int:
    from ..errors import BadFile
    from ..ranks import Ranks

    try:
        ranks = Ranks(options.folder)
        with working("reading"):
            rows, waits, steps = ranks.by_rank(), ranks.waits(), ranks.steps()
    except (BadFile, OSError) as error:
        raise CommandError(f"cannot read {options.folder}: {error}") from None
    for problem in ranks.problems:
        note(f"note: {problem}")
    imbalance, gain = ranks.imbalance(), ranks.gain_if_slowest_were_median_us()
    if SETTINGS.json:
        print_json({"ranks": rows.to_dict(), "steps": steps.to_dict(), "waits": waits.to_dict(),
                    "imbalance": imbalance,
                    "gain_if_slowest_were_median_us": gain, "problems": ranks.problems})
        return 0
    line(f"{len(ranks)} ranks; compute of the busiest rank over the mean: {imbalance:.2f}")
    table(("rank", "steps", "total ms", "compute", "input", "comm", "exposed", "waited", "others waited", "last",
           "why"),
          [[str(row.rank), str(row.steps), *(_ms(value) for value in (
              row.duration_us, row.compute_us, row.input_us, row.communication_us, row.exposed_us, row.waited_us,
              row.waited_for_us)), str(row.last), row.why] for row in rows[:options.rows]])
    if waits:
        line()
        table(("collective", "group", "number", "last rank", "spread ms", "waited ms"),
              [[row.operation, row.group, str(row.number), str(row.last_rank), _ms(row.spread_us), _ms(row.waited_us)]
               for row in waits[:options.rows]])
    if options.steps:
        line()
        table(("rank", "step", "total ms", "compute", "input", "comm", "exposed", "overlap"),
              [[str(row.rank), str(row.step), *(_ms(value) for value in (
                  row.duration_us, row.compute_us, row.input_us, row.communication_us, row.exposed_us)),
                f"{row.overlap:.0%}"] for row in steps])
    line()
    line(f"if the slowest rank of each step were as fast as the median: {_ms(gain)} ms less")
    return 0


def _ms(value_us: float) -> str:
    return f"{value_us / 1000:,.1f}"
