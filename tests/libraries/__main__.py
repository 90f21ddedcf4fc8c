"""Run the cases of one library and write their figures: `python -m libraries transformers --out file.json`."""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
import traceback
import warnings

from . import harness, oracle


def main() -> int:
    """Run what the command line names; a case that raises has its error for figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="a module of libraries.cases")
    parser.add_argument("--out", help="where the figures go, as JSON")
    parser.add_argument("--quick", action="store_true", help="the subset for continuous integration")
    parser.add_argument("--only", help="cases whose name has this in it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    oracle.prepare()
    importlib.import_module(f"{__package__}.cases.{arguments.library}")
    results = {}
    for one in harness.CASES:
        if (arguments.quick and not one.quick) or (arguments.only and arguments.only not in one.name):
            continue
        start = time.perf_counter()
        try:
            results[one.name] = {"figures": one.run()}
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            results[one.name] = {"error": f"{type(error).__name__}: {error}",
                                 "at": f"{last.filename.rpartition('site-packages/')[2]}:{last.lineno}"}
            if arguments.only:
                traceback.print_exc()
        spent = time.perf_counter() - start
        print(f"{one.library} {one.name}: {spent:.1f} s {results[one.name].get('error', '')[:300]} "
              f"{results[one.name].get('at', '')}", file=sys.stderr, flush=True)
    if arguments.out:
        results["_process"] = {"seconds": time.perf_counter() - began,
                               "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
        with open(arguments.out, "w") as file:
            json.dump(results, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
