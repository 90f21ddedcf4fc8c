"""Sentence Transformers: embeddings of a small random encoder, similarity, a loss that trains it."""

from __future__ import annotations

import tempfile
from typing import Any

import sentence_transformers
import torch
import transformers
from sentence_transformers import losses, models

from ..harness import Figures, case, learn, summary
from ..small import SMALL

TEXTS = ["the cat sat on a mat", "a dog ran far", "good film", "the film and the dog"]


def _encoder(folder: str) -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({word for text in TEXTS for word in text.split()})]
    plain = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]",
                                         cls_token="[CLS]", sep_token="[SEP]").save_pretrained(folder)
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(**SMALL)).save_pretrained(folder)
    inner = models.Transformer(folder, max_seq_length=16)
    pooling = models.Pooling(32, pooling_mode="mean")
    return sentence_transformers.SentenceTransformer(modules=[inner, pooling, models.Normalize()], device="cpu")


@case("sentence_transformers", "encode", quick=True)
def encode() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        model = _encoder(folder)
        made = model.encode(TEXTS, convert_to_tensor=True, batch_size=2)
        found = sentence_transformers.util.semantic_search(made[:1], made, top_k=3)[0]
        similar = model.similarity(made, made)
    return {"embeddings": summary(made), "similar": summary(similar),
            "found": [float(hit["corpus_id"]) for hit in found], "scores": [hit["score"] for hit in found]}


@case("sentence_transformers", "loss")
def loss() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        model = _encoder(folder)
        criterion = losses.MultipleNegativesRankingLoss(model)
        features = [model.tokenize(TEXTS[:2]), model.tokenize(TEXTS[2:])]
        model.train()

        def run(_: Any) -> tuple[Any, Any]:
            value = criterion([dict(part) for part in features], None)
            return value.reshape(1), value

        return learn(model, run)
