"""`assert_close` and the pairs it is made of, against PyTorch: what they accept, and every text they write."""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

import mindtorch_v2  # noqa: E402
import mindtorch_v2.testing._comparison  # noqa: E402

CASES = """
ac(1,2)
ac(1,1.0)
ac(1,1.0,check_dtype=False)
ac(1.0,1.1)
ac(1.0,1.1,rtol=0,atol=0)
ac(1.0,0.0)
ac(1.0,float('nan'))
ac(float('nan'),float('nan'))
ac(float('nan'),float('nan'),equal_nan=True)
ac(float('inf'),float('inf'))
ac(float('inf'),-float('inf'))
ac(1+1j,1+2j)
ac(complex(float('nan'),1),complex(1,float('nan')),equal_nan=True)
ac(True,False)
ac(np.bool_(True),False)
ac(np.int64(1),1)
ac(np.int32(1),np.int64(1))
ac(np.float32(1),np.float64(1.5))
ac(None,None)
ac(None,1)
ac(t(1),None)
ac("a","a")
ac("a","b")
ac([1],[1,2])
ac([1],(1,))
ac([1,[2,3]],[1,[2,4]])
ac({'a':1},{'a':2})
ac({'a':1,'b':2},{'a':2,'c':1})
ac({'a':[1,2]},{'a':[1,3]})
ac({1:1},{1:2})
ac([1],{'a':1})
ac({1},{1})
ac(t(1),1)
ac(t(1),np.array(1))
ac(np.array([1]),np.array([2]))
ac(t([1,2]),[1,2])
ac(t([1.,2]),t([1.,3]))
ac(t([1,2]),t([1,3]))
ac(t([1,2]),t([0,2]))
ac(t([[1.,2],[3,4]]),t([[1.,2],[5,7]]),rtol=0,atol=0)
ac(t([[1.,2],[3,4]]),t([[1.,2],[5,7]]),rtol=0,atol=1)
ac(t([1.,2]),t([1.,3]),rtol=0)
ac(t([1.,2]),t([1.,3]),atol=0)
ac(1.,2.,atol=0)
ac(t(1.),t(2.))
ac(t(1),t(2))
ac(t(True),t(False))
ac(t([True]),t([False]))
ac(t([1.]),t([1]))
ac(t([1.]),t([1]),check_dtype=False)
ac(t([1.]),t([2],dtype=torch.float64),check_dtype=False)
ac(t([1.]),t([[1.]]))
ac(t([1.]),t([1.],device='meta'))
ac(t([1.]),t([1.],device='meta'),check_device=False)
ac(t([1.],device='meta'),t([1.],device='meta'))
ac(torch.zeros(2,2),torch.zeros(2,2).t(),check_stride=True)
ac(torch.zeros(2,3),torch.zeros(3,2).t(),check_stride=True)
ac(t([1.]),t([1.]).to_sparse())
ac(t([1.]),t([1.]).to_sparse(),check_layout=False)
ac(t([1.]),t([2.]).to_sparse(),check_layout=False)
ac(coo,coo)
ac(coo,coo2)
ac(coo,coo3)
ac(coo,coo4)
ac(csr,csr)
ac(csr,csr2)
ac(csr,csr3)
ac(csr,csr4)
ac(csc,csc)
ac(csc,csc4)
ac(csr,csc)
ac(csr,csc,check_layout=False)
ac(coo,torch.sparse_coo_tensor([[0,0,1],[0,0,1]],[.5,.5,2.]))
ac(coo.double(),coo2,check_dtype=False)
ac(t([1.]),t([2.]),msg='hello')
ac(t([1.]),t([2.]),msg=lambda m: 'H '+m)
ac([t([1.])],[t([2.])],msg=lambda m: 'H '+m)
ac(t([1.]),t([2.]),msg=3)
ac(t([float('nan')]),t([float('nan')]))
ac(t([float('nan')]),t([float('nan')]),equal_nan=True)
ac(t([float('nan'),1.]),t([1.,2.]))
ac(t([float('inf'),1.]),t([-float('inf'),1.]))
ac(t([1e4],dtype=torch.float16),t([1.01e4],dtype=torch.float16))
ac(t([1.],dtype=torch.bfloat16),t([1.5],dtype=torch.bfloat16))
ac(t([1+1j]),t([1+2j]))
ac(t([1,2],dtype=torch.uint8),t([2,1],dtype=torch.uint8))
ac(t([]),t([]))
ac(t([]),t([1.]))
ac(t([1.],requires_grad=True),t([1.]))
ac(t([1,2,3],dtype=torch.uint64),t([1,2,2**63+5],dtype=torch.uint64))
ac(t([2**62]),t([-2**62]))
ac(torch.rand(3,0),torch.rand(3,0))
ac(t([1.]).to(torch.float8_e4m3fn),t([1.]).to(torch.float8_e4m3fn))
ac(t([1.]).to(torch.float8_e4m3fn),t([2.]).to(torch.float8_e4m3fn))
ac(t(1.).to(torch.float8_e5m2),t(2.).to(torch.float8_e5m2))
ac(collections.OrderedDict(a=1),{'a':1})
ac({'a':1,2:3},{'a':1,2:4})
ac(torch.Size([1]),(1,))
ac(b'a',b'a')
ac(range(3),[0,1,2])
ac(t([1.]).untyped_storage(),t([1.]).untyped_storage())
c.default_tolerances(torch.float32,torch.float16)
c.default_tolerances(t(1.),torch.float64)
c.default_tolerances(torch.int64)
c.default_tolerances(3)
c.default_tolerances('a')
c.default_tolerances(torch.complex64, torch.float8_e4m3fn)
c.default_tolerances(torch.float32,dtype_precisions={torch.float32:(1,2)})
c.get_tolerances(torch.float32,rtol=None,atol=None)
c.get_tolerances(torch.float32,rtol=1,atol=None)
c.get_tolerances(torch.float32,rtol=1,atol=2)
c.get_tolerances(torch.float32,rtol=1,atol=None,id=(1,))
c.originate_pairs(1,'a',pair_types=[c.NumberPair])
c.originate_pairs(1,'a',pair_types=[c.ObjectPair])
c.originate_pairs([1,2.0],[1,2.0],pair_types=[c.NumberPair])
c.originate_pairs(t([1.]),t([2.]),pair_types=[c.TensorLikePair])
c.originate_pairs([None,True],[None,False],pair_types=[c.NonePair,c.BooleanPair])
c.originate_pairs([1],[1,2],pair_types=[c.ObjectPair])
c.originate_pairs({1},{1},pair_types=[c.ObjectPair],sequence_types=(set,))
c.originate_pairs({'b':{'z':1}},{'b':{'z':1}},pair_types=[c.ObjectPair])[0].id
[ (m.type,m.msg,m.id) for m in c.not_close_error_metas([1,2],[2,2])]
[ (m.type,m.msg,m.id) for m in c.not_close_error_metas([1,'a'],[2,'b'])]
[ (m.type,m.msg,m.id) for m in c.not_close_error_metas([1,1.5],[2,2.5],pair_types=(c.NumberPair,))]
[ m.to_error() for m in c.not_close_error_metas([1,1.5],[2,2.5],pair_types=(c.NumberPair,))]
c.not_close_error_metas([1],[1,2])
c.ObjectPair(1,2)
c.ObjectPair(1,2,id=(1,)).compare()
c.ObjectPair(1,2,foo=3)._unknown_parameters
c.ErrorMeta(ValueError,'m',id=(1,'a')).to_error()
c.ErrorMeta(ValueError,'m').to_error('x')
c.ErrorMeta(ValueError,'m').to_error(lambda m: m+'!')
c.ErrorMeta(ValueError,'m').msg
c.TensorLikePair(1,2)
c.TensorLikePair(t(1),np.array(1))
c.TensorLikePair(t([1.]),t([2.]))
c.TensorLikePair(t([1.]),t([2.]),rtol=1,atol=None)
c.TensorLikePair(t([1.]),t([2.]),rtol=1,atol=2).compare()
c.TensorLikePair([1.],[2.])
c.BooleanPair(1,True,id=())
c.BooleanPair(t(True),True,id=())
c.BooleanPair(True,np.bool_(False),id=())
c.NumberPair(1,'a')
c.NumberPair(1,t(1))
c.NumberPair(1,2.0)
c.NumberPair(1,2.0).compare()
c.NumberPair(1,2.0,check_dtype=True).compare()
c.NumberPair(True,2)
c.NumberPair(1,2+1j).rtol
c.NonePair(1,2)
c.NonePair(1,None).compare()
c.NonePair(None,None)
c.Pair._inputs_not_supported()
c.Pair._check_inputs_isinstance(1,2,cls=str)
c.make_scalar_mismatch_msg(1,2,rtol=0,atol=0)
c.make_scalar_mismatch_msg(1.,2.,rtol=.1,atol=0,identifier='Foo')
c.make_scalar_mismatch_msg(1.,2.,rtol=.1,atol=0,identifier=lambda d: d+' Foo')
c.make_scalar_mismatch_msg(True,False,rtol=0,atol=0)
c.make_tensor_mismatch_msg(t([1.,2]),t([1.,3]),t([True,False]),rtol=.1,atol=.2)
c.make_tensor_mismatch_msg(t([1,2]),t([1,3]),t([True,False]),rtol=0,atol=0,identifier='X')
c.make_tensor_mismatch_msg(t([[1,2]]),t([[1,0]]),t([[True,False]]),rtol=0,atol=0)
c.UnsupportedInputs.__mro__[1]
c.assert_allclose(t([1.]),t([1.]))
c.assert_allclose(t([1.]),t([2.]))
c.assert_allclose([1.],t([1.0]))
c.assert_allclose([1.],t([1.0]),rtol=1)
torch.testing.assert_allclose(1.,1.00001)
"""


def result(module, line):
    """What a line gives or raises; of an error that is not for users, what it would be for them."""
    both, other, more, moved = [[1.0, 0], [0, 2]], [[1.0, 0], [0, 3]], [[1.0, 0], [4, 2]], [[0.0, 1], [0, 2]]
    names = {"torch": module, "t": module.tensor, "ac": module.testing.assert_close, "c": module.testing._comparison,
             "np": np, "collections": collections}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, values in enumerate((both, other, more, moved), 1):
            for layout in ("coo", "csr", "csc"):
                make = module.tensor(values)
                name = layout if number == 1 else f"{layout}{number}"
                names[name] = make.to_sparse() if layout == "coo" else getattr(make, f"to_sparse_{layout}")()
        try:
            return repr(eval(line, names))
        except names["c"].ErrorMeta as meta:
            error = meta.to_error()
            return f"meta {type(error).__name__}: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("line", CASES.strip().splitlines())
def test_comparison(line):
    assert result(mindtorch_v2, line) == result(torch, line)


@pytest.mark.parametrize("values", [(True, 1), (1, True)])
def test_what_no_pair_foresaw(values):
    for module in (torch, mindtorch_v2):
        with pytest.raises(RuntimeError, match=r"Originating a NumberPair\(\) at item  with"):
            module.testing.assert_close(*values)
