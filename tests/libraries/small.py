"""Settings of small language models, and their input."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

SMALL: dict[str, Any] = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                         "intermediate_size": 37, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2,
                         "pad_token_id": 0}
GROUPED = {**SMALL, "num_key_value_heads": 2}


def tokens(batch: int = 2, length: int = 10) -> torch.Tensor:
    """Token numbers, the same every time."""
    return torch.from_numpy(np.random.default_rng(0).integers(3, 99, (batch, length)))
