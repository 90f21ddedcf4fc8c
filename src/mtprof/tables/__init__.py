"""Work on the columns of a trace: who encloses whom, what belongs together, many traces as one."""
