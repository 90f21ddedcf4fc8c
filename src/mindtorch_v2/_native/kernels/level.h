/* All kernels for one level of instructions: LANES numbers in a vector, TALL rows of a product in registers. */
#include "kernels.h"

#include "vector.h"

#include "gemm.h"
#include "rows.h"
#include "gamma.h"
#include "pointwise.h"
#include "optimizers.h"
#include "attention.h"
#include "recurrent.h"
#include "convolution.h"
#include "convolution_back.h"
#include "channels.h"
#include "formulas.h"
#include "reduce.h"
#include "convert.h"
#include "distance.h"
#include "fourier.h"
#include "maxima.h"
#include "exchange.h"
#include "reflections.h"

const Kernels LEVEL = {
    .name = LEVEL_NAME,
    .multiply = multiply,
    .multiply_batch = multiply_batch,
    .softmax = softmax,
    .softmax_back = softmax_back,
    .layer_norm = layer_norm,
    .layer_norm_back = layer_norm_back,
    .unary = unary,
    .slope = slope,
    .binary = binary,
    .update = update,
    .formula = formula,
    .gated = gated,
    .modulo = modulo,
    .reduce = reduce,
    .sum_integers = sum_integers,
    .extreme = extreme,
    .convert = convert,
    .distances = distances,
    .attention = attention,
    .attention_back = attention_back,
    .recurrent = recurrent,
    .batch_norm = batch_norm,
    .batch_norm_back = batch_norm_back,
    .group_norm = group_norm,
    .group_norm_back = group_norm_back,
    .convolve = convolve_any,
    .convolve_back = convolve_back_any,
    .convolve_input = convolve_input_any,
    .adam = adam,
    .adagrad = adagrad,
    .descend = descend,
    .fourier = fourier,
    .maxima = maxima,
    .exchange = exchange,
    .backwards = backwards,
    .repeat = repeat,
    .orthogonal_triangular = orthogonal_triangular,
    .binary_halves = binary_halves,
};
