"""Makes callables from op declarations: schemas, promotion, generated functions, and the profiler's hook."""
