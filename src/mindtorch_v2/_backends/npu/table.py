"""The operator of each op: one line per op.

A line has the op, the new arrays for its results, and the call. Arguments of the op have their names in its signature;
results are `out` (`out`, `out1`, … if there are several). If the op takes a tensor and gets a number, the second call
is used. `op/inplace` is the op's in-place form, which has no new array.

Ops that take more than one call are functions in `composed/`. An op in neither is not on the NPU.
"""

from __future__ import annotations

Row = tuple[str, ...]

UNARY = {"abs": "Abs", "neg": "Neg", "sign": "Sign", "sgn": "Sign", "floor": "Floor", "relu": "Relu", "exp": "Exp",
         "log": "Log", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos",
         "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "silu": "Silu"}
INPLACE_UNARY = {"relu": "InplaceRelu", "sqrt": "InplaceSqrt", "exp": "InplaceExp"}
COMPARED = {"eq": "Eq", "ne": "Ne", "gt": "Gt", "ge": "Ge", "lt": "Lt", "le": "Le"}

ROWS: list[Row] = [
    *[(op, "like(self)", f"{name}(self, out)") for op, name in UNARY.items()],
    *[(f"{op}/inplace", "", f"{name}(self)") for op, name in INPLACE_UNARY.items()],
    ("logical_not", "boolean(self)", "LogicalNot(self, out)"),
    ("isfinite", "boolean(self)", "IsFinite(self, out)"),
    # -- two operands --------------------------------------------------------------------------------------------------
    *[(f"{op}.Tensor", "spread(self, other)", f"{name}(self, other, alpha, out)", f"{name}s(self, other, alpha, out)")
      for op, name in (("add", "Add"), ("sub", "Sub"))],
    *[(f"{op}.Tensor/inplace", "", f"Inplace{name}(self, other, alpha)", f"Inplace{name}s(self, other, alpha)")
      for op, name in (("add", "Add"), ("sub", "Sub"))],
    *[(f"{op}.Tensor", "spread(self, other)", f"{name}(self, other, out)", f"{name}s(self, other, out)")
      for op, name in (("mul", "Mul"), ("div", "Div"))],
    *[(f"{op}.Tensor/inplace", "", f"Inplace{name}(self, other)", f"Inplace{name}s(self, other)")
      for op, name in (("mul", "Mul"), ("div", "Div"))],
    *[(f"{op}.Tensor", "boolean(self, other)", f"{name}Tensor(self, other, out)", f"{name}Scalar(self, other, out)")
      for op, name in COMPARED.items()],
    ("pow.Tensor_Tensor", "spread(self, exponent)", "PowTensorTensor(self, exponent, out)",
     "PowTensorScalar(self, exponent, out)"),
    ("div.Scalar", "like(self)", "Divs(self, other, out)"),
    *[(op, "spread(self, other)", f"{name}(self, placed(other, self), out)")
      for op, name in (("maximum", "Maximum"), ("minimum", "Minimum"))],
    ("clamp_min.Tensor", "spread(self, min)", "Maximum(self, placed(min, self), out)"),
    ("clamp_max.Tensor", "spread(self, max)", "Minimum(self, placed(max, self), out)"),
    ("logical_and", "boolean(self, other)", "LogicalAnd(self, placed(other, self), out)"),
    ("addcmul", "spread(self, tensor1, tensor2)", "Addcmul(self, tensor1, tensor2, value, out)"),
    ("addcdiv", "spread(self, tensor1, tensor2)", "Addcdiv(self, tensor1, tensor2, value, out)"),
    ("addcmul/inplace", "", "InplaceAddcmul(self, tensor1, tensor2, value)"),
    ("addcdiv/inplace", "", "InplaceAddcdiv(self, tensor1, tensor2, value)"),
    ("lerp.Scalar", "spread(self, end)", "Lerps(self, end, weight, out)"),
    ("lerp.Scalar/inplace", "", "InplaceLerps(self, end, weight)"),
    # -- activations ---------------------------------------------------------------------------------------------------
    ("threshold", "like(self)", "Threshold(self, threshold, value, out)"),
    ("leaky_relu", "like(self)", "LeakyRelu(self, negative_slope, out)"),
    ("gelu", "like(self)", "GeluV2(self, GELU[approximate], out)"),
    ("gelu_backward", "spread(self, grad_output)", "GeluBackwardV2(grad_output, self, approximate, out)"),
    ("silu_backward", "spread(self, grad_output)", "SiluBackward(grad_output, self, out)"),
    ("sigmoid_backward", "spread(output, grad_output)", "SigmoidBackward(grad_output, output, out)"),
    ("tanh_backward", "spread(output, grad_output)", "TanhBackward(grad_output, output, out)"),
    ("threshold_backward", "spread(self, grad_output)", "ThresholdBackward(grad_output, self, threshold, out)"),
    ("_softmax", "new(self, self.shape)", "Softmax(self, one_dim(self, dim), out)"),
    ("_log_softmax", "new(self, self.shape)", "LogSoftmax(self, one_dim(self, dim), out)"),
    ("_softmax_backward_data", "new(output, output.shape)",
     "SoftmaxBackward(grad_output, output, one_dim(output, dim), out)"),
    ("_log_softmax_backward_data", "new(output, output.shape)",
     "LogSoftmaxBackward(grad_output, output, one_dim(output, dim), out)"),
    # -- reductions ----------------------------------------------------------------------------------------------------
    ("max", "new(self, ())", "Max(self, out)"),
    ("min", "new(self, ())", "Min(self, out)"),
    ("amax", "reduced(self, dim, keepdim)", "Amax(self, all_dims(self, dim), keepdim, out)"),
    ("amin", "reduced(self, dim, keepdim)", "Amin(self, all_dims(self, dim), keepdim, out)"),
    *[(f"{op}.dim", "reduced(self, dim, keepdim), reduced(self, dim, keepdim, INT64)",
       f"{name}Dim(self, one_dim(self, dim), keepdim, out, out1)") for op, name in (("max", "Max"), ("min", "Min"))],
    # -- places --------------------------------------------------------------------------------------------------------
    ("gather", "new(self, index.shape)",
     "Gather(lifted(self), one_dim(self, dim), lifted(index, self), lifted(out, self))"),
    ("scatter.src", "like(self)",
     "Scatter(lifted(self), one_dim(self, dim), lifted(index, self), lifted(src, self), 0, lifted(out))"),
    ("scatter.value", "like(self)",
     "ScatterValue(lifted(self), one_dim(self, dim), lifted(index, self), value, 0, lifted(out))"),
    ("scatter.src/inplace", "",
     "InplaceScatter(lifted(self), one_dim(self, dim), lifted(index, self), lifted(src, self), 0)"),
    ("scatter.value/inplace", "",
     "InplaceScatterValue(lifted(self), one_dim(self, dim), lifted(index, self), value, 0)"),
    ("scatter_add", "like(self)",
     "ScatterAdd(lifted(self), one_dim(self, dim), lifted(index, self), lifted(src, self), lifted(out))"),
    ("index_add", "like(self)",
     "IndexAdd(lifted(self), one_dim(self, dim), lifted(index), lifted(source), alpha, lifted(out))"),
    ("tril", "new(self, self.shape)", "Tril(self, diagonal, out)"),
    ("triu", "new(self, self.shape)", "Triu(self, diagonal, out)"),
    # -- random numbers ------------------------------------------------------------------------------------------------
    ("uniform/inplace", "", "InplaceUniform(self, low, high, *unsigned(generator))"),
    ("normal.fill/inplace", "", "InplaceNormal(self, mean, std, *draw(generator))"),
    ("bernoulli.float/inplace", "", "InplaceBernoulli(self, p, *draw(generator))"),
]

TABLE: dict[str, Row] = {row[0]: row[1:] for row in ROWS}
