"""Forms whose top-level rows differ from PyTorch's, with the reason."""

from __future__ import annotations

REASONS = {
    "answer": "a question about dtypes is answered without an op",
    "array": "the memory is handed to NumPy as it is; PyTorch detaches and moves it first",
    "copy": "a tensor is copied without making an empty storage first",
    "formula": "the distribution's formula is written in other ops",
    "functional": "derivatives are taken with other seeds than PyTorch's",
    "factors": "the gradient of a factorisation goes through other ops",
    "foreach": "the gradients of a foreach op are those of its single ops",
    "index": "True as an index needs no mask in memory",
    "loop": "all elements are set at once instead of one by one",
    "out": "a tensor given as out= to a factory is not among the recorded inputs",
    "text": "numbers are formatted by NumPy, without ops",
}

_FORMS = {
    "answer": """
torch.result_type(x, 1)
torch.can_cast(torch.int32, torch.float32)
torch.promote_types(torch.int32, torch.float32)
""",
    "array": """
x.numpy()
x.__array__()
np.asarray(x)
torch.asarray(n34)
gx | f.detach().numpy()
""",
    "copy": """
copy.copy(x)
""",
    "formula": """
VonMises(x, p): d.sample()
ContinuousBernoulli(u): d.sample()
GeneralizedPareto(x, p, u): d.sample()
LKJCholesky(3): d.sample()
VonMises(x, p): d.log_prob(value)
ContinuousBernoulli(u): d.log_prob(value)
LowRankMultivariateNormal(v4, m[:, :2], v4.abs()): d.log_prob(value)
LKJCholesky(3): d.log_prob(value)
GeneralizedPareto(x, p, u): d.log_prob(value)
ContinuousBernoulli(u): d.entropy()
""",
    "functional": """
x | torch.autograd.functional.jacobian(lambda t: t * 2, f)
v4 | torch.autograd.functional.hessian(lambda t: (t ** 2).sum(), f)
x | torch.func.grad(lambda t: (t ** 2).sum())(f)
""",
    "factors": """
torch.linalg.tensorsolve(ts, v4)
""",
    "foreach": """
torch._foreach_add([x, y], 1.0)
torch._foreach_norm([x, y])
""",
    "index": """
x[True]
""",
    "loop": """
torch.empty(4, 4, 3) | nn.init.dirac_(f)
torch.empty(4, 4) | nn.init.sparse_(f, 0.5)
""",
    "out": """
torch.zeros(2, out=o1)
torch.empty(4, 4) | nn.init.eye_(f)
""",
    "text": """
repr(x) and None
str(s) and None
format(s, '.2f') and None
""",
}
KNOWN = {form: reason for reason, forms in _FORMS.items() for form in forms.strip().split("\n")}
