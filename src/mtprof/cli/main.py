"""Parse the command line, run a command, report errors in one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .commands import COMMANDS, load_command
from .errors import BAD_INPUT, INTERNAL, CommandError, one_line, os_error_text

EPILOG = """examples:
  mtprof run train.py --epochs 1       profile a script; write train.mtp and train.html, print a summary
  mtprof report trace.json.gz          write trace.html, a page that needs no network
  mtprof diff before.mtp after.mtp     say whether it got slower, beyond noise

'mtprof COMMAND --help' explains a command. Every command that reads a trace also reads PyTorch's (.json, .json.gz).
"""


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, with the command to type next."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise the error."""
        raise CommandError(f"{message} (see '{self.prog} --help')")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help that is wide enough for a sentence beside an option."""

    def __init__(self, prog: str) -> None:
        try:
            width = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):
            width = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else 100
        super().__init__(prog, max_help_position=32, width=max(40, min(width, 120) - 2))


def version() -> str:
    """The version of the installed package, or that of the source tree."""
    from importlib import metadata

    try:
        return metadata.version("mindtorch-v2")
    except metadata.PackageNotFoundError:
        return "0.1.0 (not installed)"


class _Version(argparse.Action):
    """`--version`, which looks up the version only when it is used."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        print(f"mtprof {version()}")
        parser.exit()


def top_parser() -> Parser:
    """The parser of `mtprof` itself: it knows the names of the commands, not their options."""
    parser = Parser(prog="mtprof", formatter_class=Formatter, epilog=EPILOG, add_help=True, usage="mtprof COMMAND ...",
                    description="Profile PyTorch programs without changing them, and see what to change.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    parser.description = f"{parser.description}\n\ncommands:\n{commands}"
    return parser


def command_parser(name: str) -> Parser:
    """The parser of one command."""
    module = load_command(name)
    about = (module.__doc__ or "").strip()
    parser = Parser(prog=f"mtprof {name}", description=about, formatter_class=Formatter, allow_abbrev=False,
                    epilog="examples:\n" + "\n".join(f"  {line}" for line in module.EXAMPLES.strip().splitlines()))
    module.prepare(parser)
    add_common(parser)
    parser.set_defaults(command=name, act=module.run)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options that every command has."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    group.add_argument("--color", choices=("auto", "always", "never"), default="auto", metavar="WHEN",
                       help="auto (default), always or never; NO_COLOR is respected")
    group.add_argument("--quiet", "-q", action="store_true", help="no progress and no notes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except CommandError as error:
        return _fail(str(error), error.code)
    except BrokenPipeError:
        # The reader of our output has closed it. Nothing more can be written, not even by Python at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        return _fail(os_error_text(error), BAD_INPUT)
    except (ValueError, AttributeError) as error:
        if type(error).__module__ == "mtprof.errors":  # a file that is not a trace, a table that was not recorded
            return _fail(str(error), BAD_INPUT)
        return _internal(error)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except MemoryError:
        return _fail("not enough memory for this trace; 'mtprof trim' makes a smaller one", BAD_INPUT)
    except Exception as error:
        return _internal(error)


def _run(given: list[str]) -> int:
    if not given:
        top_parser().print_help()
        return BAD_INPUT
    name = given[0]
    if name.startswith("-"):
        top_parser().parse_args(given)
        raise CommandError(f"the command comes first, and {name} is not a command (see 'mtprof --help')")
    if name not in COMMANDS:
        import difflib

        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else " (see 'mtprof --help')"
        raise CommandError(f"there is no command '{name}'{hint}")
    parser = command_parser(name)
    split = getattr(load_command(name), "split", None)  # 'run' leaves the program's arguments alone
    own, rest = split(parser, given[1:]) if split else (given[1:], [])
    options = parser.parse_intermixed_args(own)  # files and options in any order
    options.rest = rest
    from . import output

    output.set_up(options)
    return int(options.act(options))


def _fail(text: str, code: int) -> int:
    print(f"mtprof: {one_line(text)}", file=sys.stderr)
    return code


def _internal(error: BaseException) -> int:
    if os.environ.get("MTPROF_DEBUG"):
        raise error
    return _fail(f"internal error, {type(error).__name__}: {error}. This is a bug in mtprof; MTPROF_DEBUG=1 shows "
                 "where", INTERNAL)
