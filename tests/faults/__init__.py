"""Faults on purpose: what must not happen, whatever a program, a file, a signal or a full disk does.

Each case runs in a process of its own, with a time limit, under the recorder in C and the one in Python. Its outcome is
what the process ended with: it held, it failed, it was killed by a signal, or it did not end.

    python -m tests.faults                 all
    python -m tests.faults -k threads -j 1 those whose name contains a word, one at a time
    python -m tests.faults --list

`registry.py` says what a case is, `cases/` has them, `run.py` starts the processes, `child.py` is what they run.
"""
