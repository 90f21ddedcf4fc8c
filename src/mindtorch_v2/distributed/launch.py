"""`python -m torch.distributed.launch`: the older name of `torchrun`.

It passes the local rank to the program as an argument, `--local-rank=N`, unless `--use-env` is given.
"""

from __future__ import annotations

from .run import exit_with, get_args_parser, run

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """The command."""
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true",
                        help="do not pass --local-rank; the program reads LOCAL_RANK")
    given = parser.parse_args(args)
    exit_with(run(given, tells_local_rank=not given.use_env))


if __name__ == "__main__":
    main()
