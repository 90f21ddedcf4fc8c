"""Run a program and profile it, without changing it.

The program runs as with 'python script.py args': input, output, exit code and Ctrl-C belong to the program. 'import
torch' means mindtorch_v2 unless you pass --no-alias or --torch. mtprof writes a recording (.mtp) and a report (.html),
and prints a summary to stderr. If the program fails, is interrupted or leaves by os._exit, mtprof writes what was
recorded until then.

Put mtprof's options before the script and the script's after it."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from .errors import CommandError
from .files import add_force, check_target, read, stem
from .output import SETTINGS, note, working

if TYPE_CHECKING:
    from ..launch.settings import Settings
    from ..recording import Recording

EXAMPLES = """
mtprof run train.py --epochs 1
mtprof run -o first.mtp --steps 5-9 train.py       record steps 5 to 9, counted from 0
mtprof run --light -m package.train --lr 0.1       only the times of ops, at the lowest cost
mtprof run --after 60 --for 10 --chrome serve.py   ten seconds, after the first minute
mtprof run --torch train.py                        profile PyTorch itself, with its own profiler
mtprof run --ranks 2 train.py                      two processes that train together; a recording of each
"""

FLAGS = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack", "modules": "with_modules",
         "flops": "with_flops"}
_SCHEDULE = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mtprof run [options] (script.py | -m module | -c code) [arguments of the program]"
    what = parser.add_argument_group("program")
    what.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as 'python -m' does")
    what.add_argument("-c", dest="code", metavar="CODE", help="run code, as 'python -c' does")
    what.add_argument("--torch", action="store_true", help="run and profile PyTorch, with its own profiler")
    what.add_argument("--no-alias", action="store_true", help="leave 'import torch' alone")
    what.add_argument("--ranks", type=_ranks, metavar="N",
                      help="start N processes, as torchrun does; -o is the folder for their recordings")
    record = parser.add_argument_group("what to record (everything by default)")
    for word in FLAGS:
        record.add_argument(f"--no-{word}", action="store_true", help=f"no {word}")
    record.add_argument("--light", action="store_true", help="none of these, at the lowest cost")
    record.add_argument("--stream", action="store_true",
                        help="write the recording while the program runs: memory stays limited, the file survives "
                             "a kill, 'mtprof top --live' shows it")
    when = parser.add_argument_group("when to record (always by default)")
    when.add_argument("--steps", type=_steps, metavar="N|A-B", help="the first N steps, or those from A to B, from 0")
    when.add_argument("--schedule", type=_schedule, metavar="wait=1,warmup=1,active=3",
                      help="steps as in torch.profiler.schedule; later cycles write numbered files")
    when.add_argument("--after", type=_seconds, metavar="SECONDS", help="start after this many seconds")
    when.add_argument("--for", dest="for_s", type=_seconds, metavar="SECONDS",
                      help="stop after recording this many seconds")
    when.add_argument("--max-events", type=_count, metavar="N",
                      help="keep at most N events and N Python calls")
    leave = parser.add_argument_group("what to write")
    leave.add_argument("-o", "--output", metavar="FILE", help="the recording (default: the program's name with .mtp)")
    leave.add_argument("--chrome", nargs="?", const="", metavar="FILE",
                       help="also a Chrome trace; --chrome=FILE names it")
    leave.add_argument("--no-report", action="store_true", help="no HTML page")
    leave.add_argument("--no-summary", action="store_true", help="no summary")
    add_force(parser)


def split(parser: argparse.ArgumentParser, given: list[str]) -> tuple[list[str], list[str]]:
    """Our arguments, which end before the script or after '-m module', and those of the program."""
    actions: dict[str, Any] = parser._option_string_actions
    at = 0
    while at < len(given):
        word = given[at]
        if word == "--":
            return given[:at], given[at + 1:]
        if not word.startswith("-") or word == "-":
            return given[:at], given[at:]
        name = word.partition("=")[0]
        if word[:2] in ("-m", "-c") and not word.startswith("--"):
            taken = 1 if len(word) > 2 else 2
            return given[: at + taken], given[at + taken:]
        action = actions.get(name)
        takes_next = action is not None and action.nargs is None and "=" not in word
        at += 2 if takes_next else 1
    return given, []


def _steps(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number of steps nor a range such as 3-5")
    first, last = (0, int(found[1]) - 1) if found[2] is None else (int(found[1]), int(found[2]))
    if last < first:
        raise argparse.ArgumentTypeError(f"'{text}' has no steps")
    return first, last


def _schedule(text: str) -> dict[str, int]:
    result: dict[str, int] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in _SCHEDULE or not value.isdigit():
            raise argparse.ArgumentTypeError(f"'{part}' is not one of {', '.join(f'{name}=N' for name in _SCHEDULE)}")
        result[key] = int(value)
    if not result.get("active"):
        raise argparse.ArgumentTypeError("it needs active=N, the steps to record")
    return {"wait": 0, "warmup": 0, **result}


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of events")
    return int(text)


def _ranks(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of processes")
    return int(text)


def run(options: argparse.Namespace) -> int:
    how, program, arguments = _program(options)
    _check_runtime(options)
    base = _base(how, program)
    if options.ranks:
        from .run_ranks import run_ranks

        return run_ranks(options, base, lambda recording: _settings(options, how, program, arguments, recording))
    if _rank() is not None:
        _be_one_of_several(options, base)
    recording = options.output or _free(base)
    _check_recording(options, recording)
    chrome = _chrome(options, recording)
    settings = _settings(options, how, program, arguments, recording)
    there = _there(settings.recording)
    if os.path.exists(recording):
        os.unlink(recording)  # --force: whatever is there after the run is from this run
    code = _wait(settings)
    outcome = _leave(options, settings, there, recording, chrome, code)
    if code < 0:
        # Whoever waits for this process sees what ended the program.
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        sys.stdout.flush()
        os.kill(os.getpid(), -code)
    return code or outcome


def _rank() -> int | None:
    """This process's rank, if a launcher started several processes."""
    from ..launch.launchers import launched_rank, launched_size

    if launched_rank() is not None:
        return launched_rank() if (launched_size() or 1) > 1 else None
    rank, size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))  # PyTorch's launcher
    return int(rank) if rank.isdecimal() and size not in ("", "1") else None


def _be_one_of_several(options: argparse.Namespace, base: str) -> None:
    """Write this rank's file to the folder of all, as `--ranks` does, and nothing that is about one rank only."""
    folder = options.output or f"{base}.ranks"
    if os.path.isfile(folder):
        raise CommandError(f"cannot write into {folder}: it is not a folder, and each rank writes a file")
    os.makedirs(folder, exist_ok=True)
    options.output = os.path.join(folder, f"rank{_rank()}.mtp")
    options.no_report = options.no_summary = True


def _check_recording(options: argparse.Namespace, recording: str) -> None:
    """Refuse names with the suffix of another format, and files that a later cycle would replace."""
    from ..launch.settings import numbered
    from .formats import FORMATS

    check_target(recording, options.force)
    for form in FORMATS.values():
        if form.name != "native" and os.path.basename(recording).endswith(form.suffixes):
            hint = "; --chrome=FILE also writes a Chrome trace" if form.name == "chrome" else \
                "; 'mtprof convert' writes other formats"
            raise CommandError(f"cannot write {recording}: a recording is an .mtp file{hint}")
    if options.schedule or options.torch:
        check_target(numbered(recording, 1), options.force)


def _chrome(options: argparse.Namespace, recording: str) -> str | None:
    """The Chrome trace to write, if the user wants one."""
    from .formats import FORMATS

    if options.chrome is None:
        return None
    path: str = options.chrome or f"{stem(recording)}.json.gz"
    if not path.endswith(FORMATS["chrome"].suffixes):
        raise CommandError(f"cannot write {path}: the name of a Chrome trace ends with .json or .json.gz")
    return check_target(path, options.force)


def _there(recording: str) -> dict[str, tuple[int, int]]:
    """Files that later cycles of earlier runs left, and what shows whether this run replaces them."""
    from ..launch.settings import numbered

    found: dict[str, tuple[int, int]] = {}
    cycle = 1
    while os.path.exists(path := numbered(recording, cycle)):
        found[path] = _identity(path)
        cycle += 1
    return found


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


def _settings(options: argparse.Namespace, how: str, program: str, arguments: list[str], recording: str) -> Settings:
    from ..launch.settings import Settings

    flags = {flag: not options.light and not getattr(options, f"no_{word}") for word, flag in FLAGS.items()}
    direct = recording if not options.torch else f"{recording}.pt.trace.json"
    return Settings(
        runtime="torch" if options.torch else "mindtorch_v2", alias=not options.torch and not options.no_alias, how=how,
        program=program, arguments=arguments, recording=os.path.abspath(direct), flags=flags,
        max_events=options.max_events, stream=options.stream,
        first_step=options.steps[0] if options.steps else None, last_step=options.steps[1] if options.steps else None,
        schedule=options.schedule, after_s=options.after, for_s=options.for_s)


def _program(options: argparse.Namespace) -> tuple[str, str, list[str]]:
    rest: list[str] = options.rest
    if options.module is not None and options.code is not None:
        raise CommandError("use either -m or -c, not both")
    if options.module is not None:
        return "module", options.module, rest
    if options.code is not None:
        return "code", options.code, rest
    if not rest:
        raise CommandError("no program: use 'mtprof run script.py', 'mtprof run -m module' or 'mtprof run -c code'")
    script = rest[0]
    try:
        os.stat(script)
    except FileNotFoundError:
        raise CommandError(f"cannot run {script}: there is no such file") from None
    except OSError as error:
        raise CommandError(f"cannot run {script}: {error.strerror}") from None
    if os.path.isfile(script) and not os.access(script, os.R_OK):
        raise CommandError(f"cannot run {script}: you may not read it")
    if os.path.isdir(script) and not os.path.exists(os.path.join(script, "__main__.py")):
        raise CommandError(f"cannot run {script}: it is a directory without a __main__.py")
    return "script", script, rest[1:]


def _check_runtime(options: argparse.Namespace) -> None:
    from importlib.util import find_spec

    if options.steps and options.schedule:
        raise CommandError("use either --steps or --schedule, not both")
    if options.torch:
        if options.stream:
            raise CommandError("--stream does not work with --torch: PyTorch writes its trace at the end")
        if find_spec("torch") is None:
            raise CommandError("--torch needs PyTorch, which is not installed here (pip install torch)")
        if options.max_events:
            raise CommandError("--max-events does not work with --torch: PyTorch's profiler has no limit (use --steps)")
    elif find_spec("mindtorch_v2") is None:
        raise CommandError("the runtime mindtorch_v2 is not installed here (pip install mindtorch-v2)")


def _base(how: str, program: str) -> str:
    if how == "code":
        return "code"
    if how == "module":
        return program.rpartition(".")[2]
    return os.path.splitext(os.path.basename(os.path.normpath(program)))[0] or "program"


def _free(base: str) -> str:
    """A free name, for later cycles too: `train.mtp`, then `train.2.mtp`."""
    from ..launch.settings import numbered

    number = 1
    while True:
        name = f"{base}.mtp" if number == 1 else f"{base}.{number}.mtp"
        if not os.path.lexists(name) and not os.path.lexists(numbered(name, 1)):
            return name
        number += 1


def _wait(settings: Settings) -> int:
    """Run the child to its end; returns its exit code, negative for a signal."""
    from .. import launch

    child_file = os.path.join(os.path.dirname(os.path.abspath(launch.__file__)), "child.py")
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # -W, -X, -O, …, as given to us
    sys.stdout.flush()
    child = subprocess.Popen([sys.executable, *flags, child_file, settings.text()], close_fds=False)

    def forward(number: int, _: FrameType | None) -> None:
        # A terminal sends Ctrl-C to all processes in the foreground, so the program gets it too.
        if number != signal.SIGINT or not _in_foreground():
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _leave(options: argparse.Namespace, settings: Settings, there: dict[str, tuple[int, int]], recording: str,
           chrome: str | None, code: int) -> int:
    """Write files and a summary after the program has ended; returns the exit code if the program itself succeeded."""
    from ..launch.settings import numbered
    left: dict[str, Any] = {"exit_code": code, "recordings": [], "chrome": None, "report": None}
    cycle = 0
    while os.path.exists(made := numbered(settings.recording, cycle)) and there.get(made) != _identity(made):
        path = numbered(recording, cycle)
        if options.torch:
            _from_torch(made, path)
        left["recordings"].append(path)
        cycle += 1
    if not cycle:
        note(f"mtprof: no recording: {_why_none(settings, code)}")
        _print_json(left)
        return 2
    found = read(left["recordings"][0])
    if chrome:
        with working("writing the Chrome trace"):
            found.export_chrome_trace(chrome)
        left["chrome"] = chrome
    left["report"] = None if options.no_report else _report(options, left["recordings"][0], found)
    _summarise(options, found, left)
    return 0


def _why_none(settings: Settings, code: int) -> str:
    if code < 0:
        advice = "" if settings.stream or settings.runtime == "torch" else "; --stream writes while it runs"
        return f"{signal.Signals(-code).name} ended the program{advice}"
    if settings.counts_steps or settings.after_s:
        return "the program ended before the steps or the time to record"
    return "the program ended without writing one"


def _from_torch(made: str, path: str) -> None:
    """Convert PyTorch's trace to a recording."""
    try:
        read(made).save(path)
    finally:
        os.unlink(made)


def _report(options: argparse.Namespace, recording: str, found: Recording) -> str | None:
    from importlib.util import find_spec

    if find_spec("mtprof.report") is None:
        return None
    from .report import write

    page = f"{stem(recording)}.html"
    if os.path.exists(page) and not options.force and options.output:
        note(f"mtprof: {page} already exists and was not changed (--force replaces it)")
        return None
    write([found], page)
    return page


def _summarise(options: argparse.Namespace, found: Recording, left: dict[str, Any]) -> None:
    from contextlib import redirect_stdout

    from ..analysis import Analysis
    from . import summary

    analysis = Analysis(found)
    if SETTINGS.json:
        _print_json({**left, "summary": summary.as_dict(analysis, 10, [])})
        return
    if not options.no_summary and not SETTINGS.quiet:
        with redirect_stdout(sys.stderr):
            print()
            summary.show(analysis, 10, [])
            print()
    note("mtprof: wrote " + ", ".join([*left["recordings"], *(left[key] for key in ("chrome", "report") if left[key])]))


def _print_json(value: dict[str, Any]) -> None:
    """Print the result as the last line of stdout, after the program's own output."""
    if SETTINGS.json:
        import orjson

        sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY, default=str) + b"\n")
        sys.stdout.buffer.flush()
