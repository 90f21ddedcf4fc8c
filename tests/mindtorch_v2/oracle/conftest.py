"""Runs the oracle's tests on another device of this runtime, if `MINDTORCH_TEST_DEVICE` names one.

`MINDTORCH_TEST_DEVICE=null` makes new tensors on a device whose memory the host cannot see (`null_device.py`), `npu` on
an NPU, which with `MINDTORCH_NPU=sim` is the simulator; an op that the NPU does not have skips its test there, and what
is wrong with values may be told by the device (`harness.told_by_device`). What is about the CPU alone, or about what
only one device has, is in `ELSEWHERE` with the reason.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as ours

# Reading a hundred files to skip each of them takes seconds. Without PyTorch, one test stands for all.
if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = [path.name for path in Path(__file__).parent.glob("test_*.py")
                           if path.name != "test_pytorch_is_here.py"]

DEVICE = os.environ.get("MINDTORCH_TEST_DEVICE", "cpu")
if DEVICE == "null":
    import null_device  # noqa: F401
if DEVICE == "npu":
    from npu_in_tests import draw_on_host, note_missing

    draw_on_host()
    MISSED = note_missing()

# Parts of test names, and why they say nothing about another device.
ELSEWHERE = {
    r"profiler|execution_trace|event_tree|memory_timeline|pattern_matcher|recording|rows_oracle|memory_profiler|"
    r"copied_only_for": "profiles show what the CPU does",
    r"public_face|module_names|coverage": "names have no device",
    r"autocast|amp_oracle": "autocast for the CPU does not touch tensors elsewhere",
    r"test_random_oracle|test_rng_oracle|test_samplers|test_loader|generator|streams_in_workers|drawn_between|"
    r"dropout_draws|test_corner.{0,2}torch.(rand_like|randn..5,5.,out=)|a_pipe_goes_on_where":
        "another device has streams of its own",
    r"dispatch_classes_oracle.py::test_rows|test_ops_of_a_step|test_layout_and_ops|test_profile|test_deepcopy|rows_of_converting|test_to_forms|"
    r"reads_its_number_without_asking|what_pytorch_has": "which ops run inside is the device's affair",
    r"python_conversions|operators_with_what_is_no_tensor|functions_of_numpy|dlpack|grid_of_all_pixels|"
    r"test_segments_with_ties|averaging_a_model|python_functions_on_elements|memory_mapped|old_constructors|"
    r"test_bessel|test_airy|modes_see_every|test_opcheck|gamma_stream|"
    r"an_array_of_the_same_memory|shared_map_writes|autograd_programs.*test_program.513-|test_corner.*(bytearray|UntypedStorage)|"
    r"arrays_of_tensors_that_require|tf_sub|test_corner.*numpy\(|test_corner.*__array__|test_corner.*apply_|"
    r"semantics_programs.*test_program.(32|244)-": "the test looks into the host's memory",
    r"test_repr|test_description|test_pytree_oracle.py::test_containers|named_results|plain_subclass|a_subclass_is_asked|new_parameters_on_a_device|"
    r"tensor_str|dispatch_classes_oracle.py::test_text|given_ops_on_its_instances.40|reg_param_err|assign_param|"
    r"ac\(t\(\[[12]\.\]\),t|TensorLikePair|test_corner..(isinstance|repr|.str)\(|test_error_texts.<lambda>0|test_corner.f'|test_corner.*(type|get_device)\(\)|"
    r"semantics_programs.*test_program.(44|78|242|328|377)-|autograd_programs.*test_program.(343|857)-|"
    r"test_program.*(type.y..__name__, y.layout|C = torch.utils.data.default_collate)": "the text names the device",
    r"capturable_is_refused|test_sparse|shared_memory|test_storage|untyped_storage|test_geometry|kernel_of_an_aten_op|"
    r"test_names_of_dtypes|skip_init|test_examples|libraries_define_and_implement|test_qualified_names|"
    r"a_kernel_without_autograd_warns|an_autograd_kernel_of_its_own|"
    r"test_corner.*(map_|ParameterList|share_memory|:.2f|uint8\)\.view|-2, -2)|packed_sequence_object|"
    r"tests_are_not_vacuous|semantics_programs.*test_program.(200|299|300|326)-|test_corner.*Linear.2,3..to.3.|"
    r"is_in_pytorch.padded|test_corner.*(pin_memory|to\('meta'\)\[x > 0|lambda m(:|, b:) .?m\[|"
    r"lambda t, d: .d._is_view)|negative_view|masked_tensor_without_room|test_behaviour.mapped_|new_memory_says_where|"
    r"objects_of_torch_ops_are_offered|test_behaviour.(convolution_kernels|sparse_embedding)|"
    r"namespaces_of_ops_come_and_go": "it is about the CPU",
    r"semantics_programs.*test_program.(159|160|208|261|262|325|412|423|424|430|434|445|446)-|"
    r"autograd_programs.*test_program.49[3456]-|"
    r"test_corner.*(spdiags|to_sparse.. @)|masked_tensors.*to_sparse|"
    r"test_program.*(x.grad=torch.ones.3,dtype|gradcheck.lambda (x, y: torch.mm.x,y|i,v: torch.sparse_coo))":
        "sparse tensors are the CPU's",
    r"expand-masked_fill_|semantics_programs.*test_program.(237|333|356)-|autograd_programs.*test_program.712-|test_corner.*expand.4..index_put_":
        "it does not write to elements that share memory as the CPU does",
    r"a_patch_stays_and_is_called.3[12]|semantics_programs.*test_program.20[45]-|"
    r"test_order_groups_and_shares.*(load.*(W|Table).*shuffle\(\)(?!.*generator)|RandomSampler|apply_random_seed)":
        "samplers draw from the CPU's generator, and PyTorch refuses that too with another default device",
    r"test_(without_sums|alignment).torch-mind": "PyTorch cannot read tensors of a device that it does not know",
    r"autograd_programs.*test_program.(845|875|876)-": "wrappers and tangents that share memory have the host's",
    r"autograd_programs.*test_program.88[1-8]-": "vmap watches the host's arrays",
    r"numbers_beside_16_bit_floats": "numbers beside 16-bit floats are rounded to them first",
    r"parts_of_images_keep|test_strides_oracle|test_linalg_layout|layout_of_results_of_a|lie_in_memory_as|"
    r"test_order_of_adaptive_maxima|memory_formats_of_results|test_corner.*(.stride\(|torch.channels_last|log10.*stride)|"
    r"test_corner..torch.(cat..torch.ones.1,2,3,4|nonzero)|test_corner.torch.eq.*permute":
        "results lie row after row",
}
# On the NPU besides. Random numbers are drawn on the host, so that they are the CPU's (`npu_in_tests.py`).
if DEVICE == "npu":
    ELSEWHERE |= {
        r"fused_form|test_masks.*True": "attention is made of other ops",
        r"test_nesting|layers_of_a_profile|flops_of_a_layer|_ops_of_a_step|flop_counter|sdpa_kernel_chooses|test_rows_of|einsum_multiplies|"
        r"items_are_taken_after|that_ask_for_nothing|_one_op_at_inference|the_one_op_can_be|"
        r"no_grad_of_a_dropout|a_hook_keeps_the_layer_in_its_parts": "other ops run inside",
        r"test_program.*for one in torch.native_batc":
            "statistics of 16-bit floats are float32, as on other accelerators",
        r"softmax_of_many_rows": "the simulator rounds once where the CPU rounds twice",
        r"remainders_of_many|test_corner.*(remainder.*signbit|2.0, -0.0, 3.0\], dtype=torch.bfloat16)":
            "remainders are made of quotients",
        r"sums_of_16_bit_floats": "numbers beside 16-bit floats are rounded to them first",
        r"test_corner.*alpha=True|test_corner.*(isin.*True|index_reduce.0, torch.tensor..3)|"
        r"semantics_programs.*test_program.(348|407|410)-|"
        r"test_corner.torch.(pow.*16|logsumexp.*None|unique.*dim=0)":
            "what only the CPU's kernels refuse is accepted there",
        r"adaptive_pooling_of_too_many|pooling_gradients_of_other_shapes|bag_mistakes":
            "what only the CPU's kernels refuse is refused otherwise there, or accepted",
        r"complex|fw_cplx": "there are no complex numbers",
        r"test_corner.*(//|%|fmod|remainder).*0|test_corner.*div.*roundin|"
        r"test_corner.*embedding_bag.*torc1|test_program.*view\(3, 2\); none = |"
        r"test_corner.*EmbeddingBag.*0,5|semantics_programs.*test_program.308-|BCELoss.*\[2\.\]|entropy\(torch.tensor\(\[2|"
        r"probabilities_above_one|embedding_bag_errors.<lambda>10": "it does not look at values",
        r"antialias_of_bytes|test_refused.interpolate_bicubic-torch.uint8": "it resizes bytes only to the nearest or "
        "bilinearly, as other accelerators do",
        r"semantics_programs.*test_program.245-|__setitem__.*\[5\]": "what is wrong with values is told later",
        r"refused_allocations": "a device that has no memory left says so by a class of its own",
    }
# How the NPU says that it does not have a type for an op.
LACKING = re.compile(r"the NPU has (it for|no tensors of)|there are no sparse tensors on|"
                     r"(on|of) the NPU|; FLOAT, FLOAT16 or BF16 is needed|"
                     r"must be of floating types")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    if DEVICE == "cpu":
        return
    for item in items:
        for pattern, reason in ELSEWHERE.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"on {DEVICE}: {reason}"))
                break


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """An op that the NPU does not have, or not for a type, skips the test with what the NPU says."""
    if DEVICE == "npu":
        MISSED.clear()
    outcome: Any = yield
    if DEVICE != "npu" or outcome.excinfo is None:
        return
    said = str(outcome.excinfo[1])
    reason = MISSED[0] if MISSED else said if LACKING.search(said) else None
    if reason is not None:
        outcome.force_exception(pytest.skip.Exception(reason.splitlines()[0][:200]))


@pytest.fixture(autouse=DEVICE != "cpu")
def on_device() -> Iterator[None]:
    """New tensors of this runtime are on the device."""
    ours.set_default_device(DEVICE)
    yield
    ours.set_default_device("cpu")
    if DEVICE == "npu":
        with contextlib.suppress(ours.AcceleratorError):  # of this test; the next one would be told
            ours.npu.synchronize()
