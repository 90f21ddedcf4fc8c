"""PEFT: adapters on a small language model, trained, merged, saved and loaded."""

from __future__ import annotations

import tempfile
from typing import Any

import peft
import torch
import transformers
from transformers import AutoModelForCausalLM

from ..harness import Figures, case, learn, summary
from ..small import GROUPED, tokens

ADAPTERS: dict[str, Any] = {
    "lora": peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.1,
                            task_type="CAUSAL_LM"),
    "dora": peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], use_dora=True, task_type="CAUSAL_LM"),
    "ia3": peft.IA3Config(target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"],
                          task_type="CAUSAL_LM"),
    "prompt": peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "prefix": peft.PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
}


def _base() -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(transformers.LlamaConfig(**GROUPED))


def _train(name: str) -> Figures:
    model = peft.get_peft_model(_base(), ADAPTERS[name])
    ids = tokens()
    return learn(model, lambda m: (lambda made: (made.logits, made.loss))(m(input_ids=ids, labels=ids)), lr=1e-2)


for _name in ADAPTERS:
    case("peft", _name, quick=_name == "lora")(lambda _name=_name: _train(_name))  # type: ignore[misc]


@case("peft", "merge_and_save")
def merge_and_save() -> Figures:
    """An adapter to a folder and back, and merged into the model."""
    model = peft.get_peft_model(_base(), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"],
                                                         init_lora_weights=False, task_type="CAUSAL_LM")).eval()
    ids = tokens()
    with torch.no_grad():
        before = model(input_ids=ids).logits
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            again = peft.PeftModel.from_pretrained(_base(), folder).eval()
        loaded = again(input_ids=ids).logits
        merged = model.merge_and_unload()(input_ids=ids).logits
    return {"output": summary(before), "loaded": summary(loaded), "merged": summary(merged)}
