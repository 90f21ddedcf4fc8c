"""Fuzzing what reads files: checkpoints, Chrome traces, trace files, and the tables of a trace.

    python -m tests.fuzz                         each target for a minute
    python -m tests.fuzz --seconds 7200 -t checkpoint
    python -m tests.fuzz --quick                 the same inputs each time, as many as take about 20 seconds a target
    python -m tests.fuzz --replay FILE -t kineto

Inputs are changed at random, by bytes and by what they mean (operations of a pickle, records of an archive, values of
JSON), and those that reach new lines of the code are kept to be changed further. Each target runs in a process of its
own with limits of time and memory. What is found is written to `tests/fuzz/findings/`; once mended, it moves to
`corpus/`, which is run first each time.
"""
