"""Print which rank is slow and which waits for which, from the traces of all ranks of a job.

The folder has a trace of each rank. Files are read one at a time, so that memory stays small, or by several processes,
or by the workers of a Dask cluster that see the folder under the same path. All times are converted to one clock, with
what the recordings say about their clocks, and checked against collectives."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from .errors import CommandError
from .files import add_force, check_target
from .output import SETTINGS, line, note, print_json, table, working

if TYPE_CHECKING:
    from ..ranks import Ranks

EXAMPLES = """
mtprof ranks traces/
mtprof ranks --steps traces/                       each step of each rank
mtprof ranks -o ranks.html traces/                 a report with a page of the ranks
mtprof ranks --dask tcp://host:8786 traces/        read by a Dask cluster
mtprof ranks --json traces/
"""

_MANY = 32  # with more files than this, a pool of processes is worth starting


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="a folder with a trace of each rank")
    parser.add_argument("--steps", action="store_true", help="list the steps of each rank too")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="ranks and collectives to list (default 20)")
    parser.add_argument("--run", metavar="ID", help="the run to read, if the folder has several")
    parser.add_argument("--workers", type=int, metavar="N", help="processes that read (default: one per processor if "
                                                                 f"there are more than {_MANY} files)")
    parser.add_argument("--dask", metavar="ADDRESS", help="read with the workers of this Dask scheduler")
    parser.add_argument("-o", "--output", metavar="FILE", help="also write a report: of the rank that others wait for, "
                                                              "with a page of all ranks")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    if options.output:
        check_target(options.output, options.force)
    return show(options.folder, page=options.output, steps=options.steps, most=options.rows, chosen=options.run,
                workers=options.workers, dask=options.dask)


def show(folder: str, *, page: str | None = None, tables: bool = True, steps: bool = False, most: int = 20,
         chosen: str | None = None, workers: int | None = None, dask: str | None = None) -> int:
    """Read a folder, print the results, and write the page."""
    from ..errors import BadFile
    from ..ranks import Ranks

    try:
        ranks = Ranks(folder, run=chosen, dask=dask)
        ranks._workers = workers or (os.cpu_count() or 1 if len(ranks.paths) > _MANY else 1)
        with working(f"reading {len(ranks.paths)} files"):
            problems = ranks.problems
    except FileNotFoundError:
        raise CommandError(f"cannot read {folder}: there is no such folder") from None
    except NotADirectoryError:
        raise CommandError(f"cannot read {folder}: it is a file, not a folder with a trace of each rank") from None
    except (BadFile, OSError) as error:
        raise CommandError(f"cannot read {folder}: {error}") from None
    for problem in problems:
        note(f"note: {problem}")
    if page is not None:
        _write(ranks, page)
    if SETTINGS.json:
        print_json({"ranks": ranks.by_rank().to_dict(), "steps": ranks.steps().to_dict(),
                    "waits": ranks.waits().to_dict(), "modules": ranks.modules().to_dict(),
                    "imbalance": ranks.imbalance(), "overlap": ranks.overlap(), "events": ranks.events,
                    "gain_if_slowest_were_median_us": ranks.gain_if_slowest_were_median_us(), "problems": problems,
                    "report": page})
        return 0
    if tables:
        _tables(ranks, steps, most)
    if page is not None:
        note(f"mtprof: wrote {page}")
    return 0


def _tables(ranks: Ranks, steps: bool, most: int) -> None:
    line(f"{len(ranks)} ranks, {ranks.events:,} events; compute of the busiest rank over the mean "
         f"{ranks.imbalance():.2f}, communication hidden behind compute {ranks.overlap():.0%}")
    rows = ranks.by_rank()
    table(("rank", "steps", "total ms", "compute", "input", "comm", "exposed", "waited", "others waited", "last",
           "why", "by ms", "clock ± µs"),
          [[str(row.rank), str(row.steps), *(_ms(value) for value in (
              row.duration_us, row.compute_us, row.input_us, row.communication_us, row.exposed_us, row.waited_us,
              row.waited_for_us)), str(row.last), row.why, _ms(row.why_us) if row.why else "",
            f"{row.clock_error_us:,.1f}"] for row in rows[:most]])
    waits = ranks.waits(most)
    if waits:
        line()
        table(("collective", "group", "number", "ranks", "last rank", "why", "spread ms", "waited ms", "transfer ms"),
              [[row.operation, row.group, str(row.number), str(row.ranks), str(row.last_rank), row.why,
                *(_ms(value) for value in (row.spread_us, row.waited_us, row.transfer_us))] for row in waits])
    modules = ranks.modules()
    if modules:
        line()
        table(("module", "mean ms", "slowest ms", "rank", "slowest over mean"),
              [[row.module, _ms(row.mean_us), _ms(row.slowest_us), str(row.slowest_rank), f"{row.imbalance:.2f}"]
               for row in modules[:most]])
    if steps:
        line()
        table(("rank", "step", "total ms", "compute", "input", "comm", "exposed", "overlap"),
              [[str(row.rank), str(row.step), *(_ms(value) for value in (
                  row.duration_us, row.compute_us, row.input_us, row.communication_us, row.exposed_us)),
                f"{row.overlap:.0%}"] for row in ranks.steps()])
    line()
    line(f"if the slowest rank of each step were as fast as the median: "
         f"{_ms(ranks.gain_if_slowest_were_median_us())} ms less")


def _write(ranks: Ranks, page: str) -> None:
    from ..report import write_report

    with working("writing the report"):
        write_report([ranks.recording(ranks.by_rank()[0].rank)], page, ranks=ranks)


def _ms(value_us: float) -> str:
    return f"{value_us / 1000:,.1f}"
