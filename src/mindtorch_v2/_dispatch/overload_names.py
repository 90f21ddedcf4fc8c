"""PyTorch's names of overloads, if the op table has others.

>>> from mindtorch_v2._dispatch.registry import OPS
>>> overload_name(OPS["pow.Tensor_Scalar"]), overload_name(OPS["pow.Tensor_Scalar"], inplace=True)
('Tensor_Scalar', 'Scalar')
"""

from __future__ import annotations

from .registry import Op

_NAMES = {"normal.fill": "", **dict.fromkeys(
    ["greater", "greater_", "greater_equal", "greater_equal_", "less", "less_", "less_equal",
     "less_equal_", "multiply", "multiply_", "not_equal", "not_equal_", "subtract", "subtract_", "true_divide",
     "true_divide_"], "Tensor"), **dict.fromkeys(
    ["greater.out", "greater_equal.out", "less.out", "less_equal.out", "not_equal.out"], "Tensor_out")}
# ... and of in-place forms whose overload differs from the op's.
_INPLACE_NAMES = {"floor_divide": "Tensor", "ldexp.Tensor": "", "pow.Tensor_Scalar": "Scalar",
                  "pow.Tensor_Tensor": "Tensor"}


def overload_name(op: Op, inplace: bool = False) -> str:
    """The name of an op's overload in PyTorch, empty for the one without."""
    found = _NAMES.get(op.key, "" if op.overload == "inplace" else op.overload)
    return _INPLACE_NAMES.get(op.key, found) if inplace else found


def is_inplace_alone(op: Op) -> bool:
    """Whether a table entry exists only for an in-place form, and is not an overload of the op itself in PyTorch."""
    return op.overload.startswith("inplace") or op.key == "normal.fill"


# Functions with several signatures in PyTorch, by the numbers of arguments (7 means 7 or more) that fit none of them or
# more than one. An error about such a call names all its arguments, not one.
_SEVERAL = {
    "01567": "add sub", "0127": "addbmm addmv addr", "01267": "addcdiv addcmul addmv_", "012456": "addmm baddbmm",
    "01234567": """all any bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp clamp_
        clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ conv1d conv2d conv3d copysign ctc_loss dsplit eq
        fake_quantize_per_tensor_affine fill fill_ float_power fmod ge greater greater_equal gru gt histogramdd hsplit
        index_fill isin le lerp less less_equal linspace logspace lstm lt masked_fill moveaxis movedim nanquantile
        narrow ne not_equal pow quantile randint_like remainder result_type rnn_relu rnn_tanh rsub scatter searchsorted
        special_xlog1py special_xlogy special_zeta std std_mean tensor_split var var_mean view_copy vsplit xlogy
        xlogy_""",
    "0234567": """arange bernoulli count_nonzero cumulative_trapezoid eye gradient hamming_window kaiser_window rand
        rand_like randn randn_like randperm repeat_interleave squeeze squeeze_copy trapezoid trapz""",
    "02367": "argsort mean", "1": "atleast_1d atleast_2d atleast_3d", "023456": "bartlett_window blackman_window "
    "hann_window", "013567": "bmm div mm spmm", "0123467": "bucketize", "0123567": "divide subtract",
    "012": "embedding_bag", "0124567": """floor_divide multiply sparse_compressed_tensor sparse_csc_tensor
        sparse_csr_tensor true_divide""", "023457": "histogram", "023567": "max min nuclear_norm where",
    "0567": "median nanmedian", "0234": "normal", "0267": "prod sum", "0134567": "randint", "024567": "round",
    "034567": "round_ sparse_coo_tensor", "023467": "sort",
}
_COUNTS = {name: counts for counts, names in _SEVERAL.items() for name in names.split()}


def takes_several(name: str, count: int) -> bool:
    """Whether a call with this many arguments does not clearly fit one of the function's signatures in PyTorch."""
    return str(min(count, 7)) in _COUNTS.get(name, "")
