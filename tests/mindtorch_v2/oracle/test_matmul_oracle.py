"""Matrix products against PyTorch."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours, theirs, values

from mindtorch_v2._dispatch.namespace import aten

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "int8", "uint8"]
PRODUCTS = [
    ("mm", [(2, 3), (3, 4)]),
    ("bmm", [(2, 3, 4), (2, 4, 5)]),
    ("addmm", [(2, 4), (2, 3), (3, 4)]),
    ("baddbmm", [(2, 3, 5), (2, 3, 4), (2, 4, 5)]),
    ("addbmm", [(3, 5), (2, 3, 4), (2, 4, 5)]),
    ("mv", [(2, 3), (3,)]),
    ("addmv", [(2,), (2, 3), (3,)]),
    ("addr", [(2, 3), (2,), (3,)]),
    ("dot", [(3,), (3,)]),
    ("vdot", [(3,), (3,)]),
    ("outer", [(2,), (3,)]),
    ("ger", [(2,), (3,)]),
    ("inner", [(2, 3), (4, 3)]),
    ("kron", [(2, 3), (2,)]),
]


def functional(torch):
    """Ops that have no name in the torch namespace, on either module."""
    return aten if torch is ours else theirs.ops.aten


def given(shapes, dtype="float32"):
    return [data(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "shapes"), PRODUCTS)
def test_products(name, shapes, dtype):
    half = dtype in ("float16", "bfloat16")
    check(lambda torch, *x: getattr(torch, name)(*x), *given(shapes, dtype), second=not half,
          tolerance=0.06 if dtype == "bfloat16" else 0.01 if half else None)


@pytest.mark.parametrize(("name", "shapes"), PRODUCTS)
def test_complex(name, shapes):
    def run(torch, *x):
        leaves = [t.detach().requires_grad_() for t in x]
        made = getattr(torch, name)(*leaves)
        grads = torch.autograd.grad(made, leaves, torch.ones_like(made) * (1 - 0.5j), create_graph=True)
        again = torch.autograd.grad(sum((g * (1j - 2)).sum() for g in grads), leaves,
                                    torch.ones_like(made.sum()), allow_unused=True)
        # The product resolves PyTorch's lazy conjugates.
        return [made * 1, *(g * 1 for g in (*grads, *again) if g is not None)]

    check(run, *given(shapes, "complex64"), grad=False, nodes=False)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("name", "shapes"), PRODUCTS)
def test_integers(name, shapes, dtype):
    check(lambda torch, *x: getattr(torch, name)(*x), *given(shapes, dtype))


@pytest.mark.parametrize(("name", "shapes"), [p for p in PRODUCTS if p[0].startswith(("add", "badd"))])
@pytest.mark.parametrize(("beta", "alpha"), [(0.5, 2), (0, 1), (1, -1.5), (2, 0)])
def test_beta_and_alpha(name, shapes, beta, alpha):
    check(lambda torch, *x: getattr(torch, name)(*x, beta=beta, alpha=alpha), *given(shapes))
    check(lambda torch, x, *y: getattr(x * 1, name + "_")(*y, beta=beta, alpha=alpha), *given(shapes))


def test_beta_zero_ignores_nan():
    nan = values([[float("nan")] * 4] * 2)
    check(lambda torch, c, a, b: torch.addmm(c, a, b, beta=0), nan, data(2, 3), data(3, 4), grad=False)


@pytest.mark.parametrize("bias", [(), (4,), (1,), (2, 1), (1, 4), (2, 4)])
def test_addmm_broadcasts(bias):
    check(lambda torch, *x: torch.addmm(*x), *given([bias, (2, 3), (3, 4)]))


SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)),
          ((3, 4), (2, 4, 5)), ((3,), (2, 3, 4)), ((2, 3, 4), (2, 4, 5)), ((2, 2, 3, 4), (2, 4, 5)),
          ((1, 3, 4), (2, 4, 5)), ((3, 1, 2, 4), (2, 4, 3)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3, 0), (0, 4)),
          ((2, 0, 3), (3, 4)), ((0, 2, 3), (0, 3, 4)), ((2, 3, 4, 5), (5,))]


@pytest.mark.parametrize("shapes", SHAPES)
def test_matmul(shapes):
    nodes = shapes[0] != (1, 3, 4)  # PyTorch folds a batch of one differently
    check(lambda torch, x, y: torch.matmul(x, y), *given(shapes), nodes=nodes)
    check(lambda torch, x, y: x @ y, *given(shapes), grad=False)
    check(lambda torch, x, y: torch.matmul(x.detach(), y), *given(shapes))
    check(lambda torch, x, y: torch.matmul(x, y.detach()), *given(shapes), nodes=nodes)


def test_transposed_operands():
    check(lambda torch, x, y: x.t() @ y.t(), data(3, 2), data(4, 3))
    check(lambda torch, x, y: torch.mm(x[:, ::2], y[::2]), data(3, 4), data(4, 5))
    check(lambda torch, x, y: torch.bmm(x.transpose(1, 2), y), data(2, 4, 3), data(2, 4, 5))
    check(lambda torch, x, y: torch.bmm(x.permute(2, 1, 0), y), data(8, 9, 2), data(2, 8, 5))
    check(lambda torch, x, y: torch.bmm(x[:, ::2, ::2], y), data(2, 8, 18), data(2, 9, 5))
    check(lambda torch, x, y: torch.matmul(x.transpose(0, 1), y), data(2, 3, 4), data(4, 5))
    check(lambda torch, x, y: torch.matmul(x.transpose(0, 1), y), data(2, 3, 4), data(4, 5), grad=False)


def test_out():
    check(lambda torch, x, y: torch.mm(x, y, out=torch.empty(0)), data(2, 3), data(3, 4), grad=False)
    check(lambda torch, x, y: torch.matmul(x, y, out=torch.empty(2, 4)), data(2, 3), data(3, 4), grad=False)
    check(lambda torch, x, y: torch.bmm(x, mat2=y, out=torch.empty(2, 3, 5)), data(2, 3, 4), data(2, 4, 5), grad=False)


LINEAR = [((2, 3), (4, 3), (4,)), ((2, 5, 3), (4, 3), (4,)), ((3,), (4, 3), (4,)), ((2, 1, 2, 3), (4, 3), (4,)),
          ((0, 3), (4, 3), (4,)), ((2, 3), (4, 3)), ((2, 5, 3), (4, 3)), ((3,), (4, 3))]


@pytest.mark.parametrize("shapes", LINEAR)
def test_linear(shapes):
    check(lambda torch, *x: functional(torch).linear(*x), *given(shapes))


def test_linear_of_a_transposed_input():
    check(lambda torch, x, w, b: functional(torch).linear(x.transpose(0, 1), w, b), *given([(2, 5, 3), (4, 3), (4,)]))


def test_the_gradient_of_a_weight_is_laid_out_like_the_weight():
    weight = ours.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    for bias in (None, ours.tensor([0.0, 0.0])):
        weight.grad = None
        aten.linear(ours.tensor([[1.0, 2.0, 3.0]] * 4), weight, bias).sum().backward()
        assert weight.grad.stride() == weight.stride()
    plain = ours.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    (ours.tensor([[1.0, 2.0, 3.0]] * 4) @ plain).sum().backward()
    assert plain.grad.stride() == plain.stride()


def test_a_weight_may_change_before_backward_if_only_its_own_gradient_is_wanted():
    def run(torch, x, w):
        weight = w.detach().requires_grad_()
        made = torch.mm(x.detach(), weight.t())
        with torch.no_grad():
            weight.add_(1)
        return torch.autograd.grad(made.sum(), weight)[0]

    check(run, data(2, 3), data(4, 3), grad=False)


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,kj", [(2, 3), (4, 3)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij->i", [(2, 3)]), ("ij->", [(2, 3)]), ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
    ("ijij->ji", [(2, 3, 2, 3)]), ("i,j->ij", [(2,), (3,)]), ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,ij", [(2, 3), (2, 3)]), ("bi,bi->b", [(3, 2), (3, 2)]), ("bi,j->b", [(3, 2), (3,)]),
    ("ij,jk,kl->il", [(3, 2), (2, 4), (4, 2)]), ("ij,jk,ki->", [(3, 2), (2, 4), (4, 3)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]), ("...ij,jk->...ik", [(2, 6, 3, 4), (4, 5)]),
    ("...i,...i->...", [(2, 3), (3,)]), ("i...->...", [(2, 3, 4)]), ("...", [(2, 3)]), ("b...,b...->b...", [(2, 3),
     (2, 3)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("bn,anm,bm->ba", [(2, 5), (3, 5, 4), (2, 4)]),
    ("i j , j k -> i k", [(2, 3), (3, 4)]), ("ij,jk->ik", [(2, 1), (3, 4)]), ("aab,bc->ac", [(2, 2, 3), (3, 4)]),
    ("ba,ca", [(2, 3), (4, 3)]), ("Ab,bC", [(2, 3), (3, 2)]), (",ij->ji", [(), (2, 3)]), ("ij,jk", [(0, 3), (3, 2)]),
    ("ij,jk->ik", [(2, 0), (0, 2)]), ("ijk,ilm,njm,nlk,abc->", [(2, 3, 4), (2, 5, 3), (2, 3, 3), (2, 5, 4), (1, 2, 2)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation, shapes):
    check(lambda torch, *x: torch.einsum(equation, *x), *given(shapes, "float64"), nodes=False)


def test_einsum_forms():
    check(lambda torch, x, y: torch.einsum("ij,jk", [x, y]), data(2, 3), data(3, 2), nodes=False)
    check(lambda torch, x, y: torch.einsum(x, [0, 1], y, [1, 2], [0, 2]), data(2, 3), data(3, 2), nodes=False)
    check(lambda torch, x: torch.einsum(x, [..., 0], [0, ...]), data(2, 3), nodes=False)


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,jk->il", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (4, 4)]), ("ij", [(2, 3), (4, 4)]), ("ijk", [(2, 3)]),
    ("i1", [(2, 3)]), ("ij->iij", [(2, 3)]), ("i", [(2, 3)]), ("ii->i", [(2, 3)]), ("ij,jk,", [(2, 3), (3, 3)]),
    ("i.j", [(2, 3)]), ("......", [(2, 3)])])
def test_einsum_errors(equation, shapes):
    check_error(lambda torch, *x: torch.einsum(equation, *x), *given(shapes))


@pytest.mark.parametrize(("shapes", "dims"), [
    ([(2, 3, 4), (3, 4, 5)], 2), ([(2, 3), (3, 4)], 1), ([(2, 3), (4, 5)], 0), ([(2, 3), (2, 3)], 2),
    ([(2, 3, 4), (4, 2, 5)], ([0, 2], [1, 0])), ([(2, 3), (3, 2)], ([-1], [0])), ([(2, 1), (3, 4)], 1)])
def test_tensordot(shapes, dims):
    check(lambda torch, x, y: torch.tensordot(x, y, dims), *given(shapes, "float64"), nodes=False)


@pytest.mark.parametrize("shapes", [[(3,), (3,)], [(2, 3), (4, 3)], [(2, 3), (3,)], [(), (3,)], [(2, 2, 3), (4, 3)]])
def test_inner(shapes):
    check(lambda torch, x, y: torch.inner(x, y), *given(shapes), nodes=False)


@pytest.mark.parametrize("shapes", [[(2, 3), (4, 5)], [(2,), (3, 2)], [(), (3,)], [(2, 3, 1), (2, 2)]])
def test_kron(shapes):
    check(lambda torch, x, y: torch.kron(x, y), *given(shapes))


@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying")
def test_cross():
    check(lambda torch, x, y: torch.cross(x, y, dim=-1), data(2, 3), data(2, 3, seed=1))
    check(lambda torch, x, y: torch.cross(x, y, dim=0), data(3, 2), data(3, 1, seed=1))
    check(lambda torch, x, y: torch.cross(x, y), data(2, 3, 3), data(2, 3, 3, seed=1))
    check_error(lambda torch, x: torch.cross(x, x, dim=0), data(2, 3))
    check_error(lambda torch, x: torch.cross(x, x), data(2, 2))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_cdist(p):
    check(lambda torch, x, y: torch.cdist(x, y, p=p), *given([(4, 3), (5, 3)], "float64"), second=False)
    check(lambda torch, x, y: torch.cdist(x, y, p), *given([(2, 4, 3), (2, 5, 3)], "float64"), second=False)


def test_cdist_of_many_rows():
    check(lambda torch, x, y: torch.cdist(x, y), *given([(30, 3), (5, 3)], "float64"), nodes=False)
    check(lambda torch, x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
          *given([(30, 3), (5, 3)], "float64"), second=False)
    check_error(lambda torch, x, y: torch.cdist(x, y), data(2, 2), data(2, 3))


def test_distance_to_itself_has_no_gradient():
    check(lambda torch, x: torch.cdist(x, x.detach()), data(3, 2), second=False)


@pytest.mark.parametrize("shapes", [[(4, 3), (4, 5), (2, 3, 5), (2,)], [(4, 3), (4, 5), (2, 3, 5)],
                                    [(3,), (5,), (2, 3, 5), (2,)], [(2, 2, 3), (2, 2, 5), (2, 3, 5), (2,)]])
def test_bilinear(shapes):
    if len(shapes) == 3:
        check(lambda torch, *x: functional(torch).bilinear(*x, None), *given(shapes), nodes=False)
    else:
        check(lambda torch, *x: functional(torch).bilinear(*x), *given(shapes), nodes=False)


def test_powers_and_chains():
    for n in (1, 2, 5):
        check(lambda torch, x, n=n: torch.matrix_power(x, n), data(3, 3), nodes=False)
    check(lambda torch, x: torch.matrix_power(x, 0), data(2, 3, 3), grad=False)
    check(lambda torch, *x: functional(torch).linalg_multi_dot(list(x)), *given([(3, 2), (2, 6), (6, 2), (2, 3)]))
    check(lambda torch, *x: functional(torch).linalg_multi_dot(list(x)), *given([(2,), (2, 6), (6,)]), nodes=False)


@pytest.mark.parametrize(("name", "shapes", "dtypes"), [
    ("mm", [(2, 3), (3, 4)], ["float32", "float64"]), ("mm", [(2, 3), (3, 4)], ["float32", "int64"]),
    ("bmm", [(2, 2, 3), (2, 3, 4)], ["float32", "float64"]),
    ("addmm", [(4,), (2, 3), (3, 4)], ["float32", "float32", "float64"]),
    ("addmm", [(4,), (2, 3), (3, 4)], ["float64", "float32", "float32"]),
    ("mv", [(2, 3), (3,)], ["float32", "float64"]), ("dot", [(3,), (3,)], ["float32", "float64"]),
    ("mm", [(2, 3, 4), (3, 4)], None), ("mm", [(2, 3), (4,)], None), ("mm", [(2, 3), (4, 5)], None),
    ("bmm", [(2, 2, 3), (2, 4, 5)], None), ("bmm", [(2, 2), (3, 3, 5)], None), ("bmm", [(2, 2, 2), (3, 5)], None),
    ("matmul", [(2, 2, 3), (3, 3, 5)], None), ("matmul", [(2, 2, 3), (4, 5)], None), ("matmul", [(), (3,)], None),
    ("matmul", [(3,), (4,)], None), ("matmul", [(3,), (4, 2)], None), ("matmul", [(3, 2), (4,)], None),
    ("matmul", [(2, 3), (2, 4, 5)], None), ("mv", [(2, 3), (4,)], None), ("mv", [(2,), (4,)], None),
    ("dot", [(2,), (3,)], None), ("dot", [(2, 2), (2, 2)], None), ("outer", [(2, 2), (3,)], None),
    ("inner", [(2, 2), (3, 3)], None), ("addmm", [(5,), (2, 3), (3, 4)], None), ("addmm", [(4,), (2, 3), (5, 4)], None),
    ("baddbmm", [(4,), (2, 2, 3), (2, 5, 4)], None), ("addr", [(2, 3), (2,), (4,)], None),
    ("addmv", [(2,), (2, 3), (4,)], None), ("vdot", [(2,), (4,)], None), ("tensordot", [(2, 3), (4, 5)], None)])
def test_errors(name, shapes, dtypes):
    made = [data(*s, dtype=d) for s, d in zip(shapes, dtypes or ["float32"] * len(shapes), strict=True)]
    check_error(lambda torch, *x: getattr(torch, name)(*x), *made)


@pytest.mark.parametrize("name", ["mm", "bmm", "mv", "dot", "addmm"])
def test_booleans_are_refused(name):
    shapes = dict(PRODUCTS)[name]
    check_error(lambda torch, *x: getattr(torch, name)(*x), *given(shapes, "bool"))


def test_not_a_tensor():
    check_error(lambda torch, x: torch.mm(x, 3), data(2, 3))
    check_error(lambda torch, x: x @ 2, data(2, 3), words=False)


@pytest.mark.parametrize(("left", "right"), [
    (("int8", 2, 3), ("int8", 3, 4)), (("uint8", 3, 5), ("int8", 5, 2)), (("int8", 0, 3), ("int8", 3, 2)),
    (("int8", 2, 70_000), ("int8", 70_000, 1)), (("float32", 2, 3), ("int8", 3, 2)), (("int8", 2, 3), ("uint8", 3, 2)),
    (("int8", 2, 3), ("int8", 4, 2)), (("int8", 3), ("int8", 3, 2))], ids=str)
def test_products_of_bytes(left, right):
    def outcome(runtime):
        a, b = (runtime.full(shape, 127 if kind != "float32" else 1.0, dtype=getattr(runtime, kind))
                for kind, *shape in (left, right))
        try:
            made = runtime._int_mm(a, b)
        except RuntimeError as error:
            return str(error).split(" but got")[0].split(" dtype to be")[0]
        return str(made.dtype), made.tolist()

    assert outcome(ours) == outcome(theirs)
