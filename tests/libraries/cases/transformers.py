"""Hugging Face transformers: small random models of many families, generation, the Trainer, a pipeline."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)

from ..harness import Figures, case, learn, summary
from ..small import GROUPED, SMALL, tokens


def _language_model(kind: Any, config: Any) -> Figures:
    torch.manual_seed(0)
    model = kind.from_config(config)
    model.train()
    ids = tokens()

    def run(model: Any) -> tuple[Any, Any]:
        made = model(input_ids=ids, labels=ids)
        return made.logits, made.loss

    return learn(model, run)


CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", GROUPED),
    "mistral": ("MistralConfig", {**GROUPED, "sliding_window": 6}),
    "qwen2": ("Qwen2Config", GROUPED),
    "qwen3": ("Qwen3Config", {**GROUPED, "head_dim": 8}),
    "gemma2": ("Gemma2Config", {**GROUPED, "head_dim": 8}),
    "phi3": ("Phi3Config", GROUPED),
    "mixtral": ("MixtralConfig", {**GROUPED, "num_local_experts": 4, "intermediate_size": 40}),
    "gpt_neox": ("GPTNeoXConfig", SMALL),
    "falcon": ("FalconConfig", SMALL),
    "opt": ("OPTConfig", {**SMALL, "ffn_dim": 37, "word_embed_proj_dim": 32}),
    "mamba": ("MambaConfig", {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4,
                              "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}),
    "gpt2": ("GPT2Config", {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
                            "bos_token_id": 1, "eos_token_id": 2}),
    "bloom": ("BloomConfig", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 1,
                              "eos_token_id": 2, "pad_token_id": 0}),
}
MASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertConfig", SMALL),
    "roberta": ("RobertaConfig", SMALL),
    "distilbert": ("DistilBertConfig", {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37,
                                        "max_position_embeddings": 64}),
    "albert": ("AlbertConfig", {**SMALL, "embedding_size": 16}),
    "electra": ("ElectraConfig", {**SMALL, "embedding_size": 16}),
    "deberta_v2": ("DebertaV2Config", {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "modernbert": ("ModernBertConfig", {**SMALL, "cls_token_id": 1, "sep_token_id": 2}),
}
SEQUENCE: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5Config", {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4,
                        "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2}),
    "bart": ("BartConfig", {"vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
                            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 37,
                            "decoder_ffn_dim": 37, "max_position_embeddings": 64, "pad_token_id": 0,
                            "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}),
}
QUICK = ("llama", "bert", "t5")


def _register(kind: Any, families: dict[str, tuple[str, dict[str, Any]]]) -> None:
    for name, (config, options) in families.items():
        case("transformers", name, quick=name in QUICK)(
            lambda config=config, options=options: _language_model(kind, getattr(transformers, config)(**options)))


_register(AutoModelForCausalLM, CAUSAL)
_register(AutoModelForMaskedLM, MASKED)
_register(AutoModelForSeq2SeqLM, SEQUENCE)


def images() -> torch.Tensor:
    """Two small pictures, the same every time."""
    return torch.from_numpy(np.random.default_rng(1).standard_normal((2, 3, 32, 32)).astype(np.float32))


@case("transformers", "vit")
def vit() -> Figures:
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, image_size=32, patch_size=8,
        num_labels=3))
    labels = torch.tensor([0, 2])
    return learn(model, lambda m: (lambda made: (made.logits, made.loss))(m(pixel_values=images(), labels=labels)))


@case("transformers", "clip")
def clip() -> Figures:
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
    model = transformers.CLIPModel(transformers.CLIPConfig(
        text_config={**shape, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 1},
        vision_config={**shape, "image_size": 32, "patch_size": 8}, projection_dim=16))
    return learn(model, lambda m: (lambda made: (made.logits_per_image, made.loss))(
        m(input_ids=tokens(), pixel_values=images(), return_loss=True)))


@case("transformers", "whisper")
def whisper() -> Figures:
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, num_mel_bins=8, max_source_positions=20,
        max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
        suppress_tokens=None, begin_suppress_tokens=None))
    sound = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 8, 40)).astype(np.float32))
    return learn(model, lambda m: (lambda made: (made.logits, made.loss))(m(input_features=sound, labels=tokens())))


@case("transformers", "wav2vec2")
def wav2vec2() -> Figures:
    torch.manual_seed(0)
    model = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(
        vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
        conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2, mask_time_prob=0.0, layerdrop=0.0, num_feat_extract_layers=2))
    sound = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 400)).astype(np.float32))
    labels = torch.tensor([[3, 4, 5], [6, 7, 8]])
    return learn(model, lambda m: (lambda made: (made.logits, made.loss))(m(input_values=sound, labels=labels)))


def _small_llama() -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(transformers.LlamaConfig(**GROUPED)).eval()


@case("transformers", "generate", quick=True)
def generate() -> Figures:
    """Greedy, sampled, by beams; with and without a cache; with a static cache."""
    model = _small_llama()
    ids = tokens(2, 5)
    figures = {}
    ways: dict[str, dict[str, Any]] = {
        "greedy": {"do_sample": False}, "no_cache": {"do_sample": False, "use_cache": False},
        "sampled": {"do_sample": True, "temperature": 0.8, "top_k": 20, "top_p": 0.9},
        "beams": {"num_beams": 3, "do_sample": False}, "static": {"do_sample": False, "cache_implementation": "static"},
        "penalties": {"do_sample": False, "repetition_penalty": 1.2, "no_repeat_ngram_size": 2, "min_new_tokens": 4},
    }
    for name, options in ways.items():
        torch.manual_seed(3)
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, pad_token_id=0, **options)
        figures[name] = [float(n) for n in made.reshape(-1)]
    return figures


@case("transformers", "save_pretrained", quick=True)
def save_pretrained() -> Figures:
    """A model to safetensors and back, in bfloat16 too."""
    model = _small_llama()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = AutoModelForCausalLM.from_pretrained(folder)
        half = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    with torch.no_grad():
        ids = tokens()
        return {"same": [float((model(ids).logits - again(ids).logits).abs().max())],
                "output": summary(again(ids).logits), "bfloat16": [float(half.dtype is torch.bfloat16)],
                "half": [round(float(half(ids).logits.float().abs().mean()), 2)]}


@case("transformers", "attention")
def attention() -> Figures:
    """The same model with each implementation of attention, with padding."""
    figures = {}
    ids = tokens()
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    for name in ("eager", "sdpa", "flex_attention"):
        torch.manual_seed(0)
        config = transformers.LlamaConfig(**{**GROUPED, "hidden_size": 64})
        model = AutoModelForCausalLM.from_config(config, attn_implementation=name).eval()
        with torch.no_grad():
            figures[name] = summary(model(ids, attention_mask=mask).logits[mask.bool()])
    return figures


class _Rows(torch.utils.data.Dataset):
    def __init__(self, count: int) -> None:
        generator = np.random.default_rng(5)
        self.ids = generator.integers(3, 99, (count, 8))
        self.labels = generator.integers(0, 2, count)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": torch.from_numpy(self.ids[index]), "labels": int(self.labels[index])}


def _classifier() -> Any:
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_config(transformers.BertConfig(**SMALL, num_labels=2))


def _arguments(folder: str, **options: Any) -> Any:
    return transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=4, learning_rate=1e-3, logging_steps=1, save_steps=2,
        report_to=[], seed=11, use_cpu=True, disable_tqdm=True, dataloader_num_workers=0, **options)


@case("transformers", "trainer", quick=True)
def trainer() -> Figures:
    """Training, stopped after a checkpoint and taken up again: the same losses as without a stop."""
    rows = _Rows(24)
    with tempfile.TemporaryDirectory() as folder:
        whole = transformers.Trainer(model=_classifier(), args=_arguments(folder, max_steps=6), train_dataset=rows,
                                     eval_dataset=rows)
        whole.train()
        losses = [entry["loss"] for entry in whole.state.log_history if "loss" in entry]
        evaluated = whole.evaluate()["eval_loss"]
        resumed = transformers.Trainer(model=_classifier(), args=_arguments(folder, max_steps=6), train_dataset=rows)
        resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-4")
        again = [entry["loss"] for entry in resumed.state.log_history if "loss" in entry]
        predictions = whole.predict(rows).predictions
    return {"losses": losses, "evaluated": [evaluated], "resumed": again,
            "predictions": [float(np.abs(predictions).sum()), float(predictions[0, 0])]}


@case("transformers", "gradient_checkpointing")
def gradient_checkpointing() -> Figures:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(transformers.LlamaConfig(**GROUPED))
    model.gradient_checkpointing_enable()
    model.train()
    ids = tokens()
    return learn(model, lambda m: (lambda made: (made.logits, made.loss))(m(input_ids=ids, labels=ids)))


@case("transformers", "pipeline")
def pipeline() -> Figures:
    """A pipeline with a tokenizer that is made here."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "a", "mat", "and", "dog",
             "ran", "far", "good", "bad", "film"]
    plain = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]",
                                                     cls_token="[CLS]", sep_token="[SEP]")
    classify = transformers.pipeline("text-classification", model=_classifier().eval(), tokenizer=tokenizer,
                                     device="cpu")
    made = classify(["the cat sat on a mat", "good film and bad dog"])
    return {"scores": [one["score"] for one in made], "labels": [float(one["label"][-1]) for one in made]}
