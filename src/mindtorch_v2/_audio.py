"""The ops of torchaudio's compiled library, which is linked with PyTorch's C++ side and cannot be loaded here.

`torch.ops.load_library` of that file defines it. Spectrograms, resampling and models of torchaudio are Python and run;
filters with feedback, alignment and the transducer loss are compiled, and say that they are missing.
"""

from __future__ import annotations

from functools import cache

from ._absent import refusing
from ._library.libraries import Library

_ANSWERS = {"cuda_version() -> int?": None, "is_align_available() -> bool": False}
_MISSING = (
    "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_out) -> ()",
    "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output) -> ()",
    "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, "
    "float clamp, bool fused_log_softmax) -> (Tensor, Tensor)",
    "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> "
    "(Tensor, Tensor)",
)


@cache
def define() -> tuple[Library, Library]:
    """Define the ops, once; they live as long as the returned object."""
    asked = Library("_torchaudio", "DEF")
    for schema, answer in _ANSWERS.items():
        asked.define(schema)
        asked.impl(schema.partition("(")[0], lambda answer=answer: answer, "CompositeExplicitAutograd")
    compiled = Library("torchaudio", "DEF")
    for schema in _MISSING:
        name = schema.partition("(")[0]
        compiled.define(schema)
        reason = f"torchaudio::{name} is compiled for PyTorch's C++ side, and this runtime has no kernel for it"
        compiled.impl(name, refusing(name, NotImplementedError, reason), "CPU")
    return asked, compiled
