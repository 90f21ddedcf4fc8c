"""Fine-tune a small Hugging Face model under the profiler: `python -m mindtorch_v2 examples/demo_transformers.py`.

The model is random and the data are made here, so that nothing is downloaded. Needs the package transformers.
"""

from __future__ import annotations

import torch
from torch.profiler import profile, record_function
from transformers import BertConfig, BertForSequenceClassification


def batches(count: int, size: int = 8, length: int = 16):
    """Texts whose label is whether a certain token occurs."""
    for _ in range(count):
        tokens = torch.randint(3, 200, (size, length))
        yield tokens, (tokens == 42).any(1).long()


def main() -> None:
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        num_labels=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model.train()
    with profile(record_shapes=True, with_modules=True, with_flops=True) as prof:
        for tokens, labels in batches(6):
            with record_function("step"):
                loss = model(input_ids=tokens, labels=labels).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            prof.step()
            print(f"loss {loss.item():.4f}")
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=8))


if __name__ == "__main__":
    main()
