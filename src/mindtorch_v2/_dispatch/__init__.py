"""From op declarations to callables: schemas, promotion, generated functions, and the profiler's hook."""
