"""Keras with torch as its backend."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

from ..harness import Figures, case


@case("keras", "fit", quick=True)
def fit() -> Figures:
    keras.utils.set_random_seed(0)
    draws = np.random.RandomState(0)
    pictures = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
                                 keras.layers.BatchNormalization(), keras.layers.Flatten(),
                                 keras.layers.Dense(3, activation="softmax")])
    pictures.compile("adam", "sparse_categorical_crossentropy")
    seen = pictures.fit(draws.rand(32, 8, 8, 1).astype("float32"), draws.randint(0, 3, 32), epochs=3, batch_size=8,
                        verbose=0, shuffle=False)
    sequences = keras.Sequential([keras.Input((6, 4)), keras.layers.LSTM(5, return_sequences=True),
                                  keras.layers.GRU(4), keras.layers.Dense(1)])
    sequences.compile("sgd", "mse")
    read = sequences.fit(draws.rand(8, 6, 4), draws.rand(8, 1), epochs=2, verbose=0)
    return {"pictures": seen.history["loss"], "sequences": read.history["loss"]}
