"""`torch._dynamo.config`: settings of a compiler that is not there. They can be read and set, and change nothing."""

from __future__ import annotations

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
skip_fwd_side_effects_in_bwd_under_checkpoint = False
suppress_errors = False
optimize_ddp = True
inline_inbuilt_nn_modules = True
assume_static_by_default = True
automatic_dynamic_shapes = True
compiled_autograd = False
verbose = False
disable = False
