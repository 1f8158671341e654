"""ONNX's own tests of ops: values by the interpreter, a sample of them by compiled C; gradients and optimizers of
ai.onnx.preview.training."""

import fnmatch

import numpy as np
import onnx
import pytest
from onnx_nodes import cases, network_of, op_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.errors import AutodiffError
from autodiff_gen.frontends.imported.network import network
from autodiff_gen.frontends.onnx.contrib_ops import OPTIMIZED
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.frontends.onnx.elementwise import ELEMENTWISE
from autodiff_gen.frontends.onnx.estimators import ESTIMATORS
from autodiff_gen.frontends.onnx.indexing import INDEXING
from autodiff_gen.frontends.onnx.normalization import NORMALIZATION
from autodiff_gen.frontends.onnx.random import RANDOM
from autodiff_gen.frontends.onnx.recurrent import RECURRENT
from autodiff_gen.frontends.onnx.reductions import REDUCTIONS
from autodiff_gen.frontends.onnx.resampling import RESAMPLING
from autodiff_gen.frontends.onnx.shapes import SHAPES
from autodiff_gen.frontends.onnx.table import TABLE
from autodiff_gen.frontends.onnx.windows import WINDOWS
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, topological

FAMILIES = {
    "elementwise": ELEMENTWISE,
    "normalization": NORMALIZATION,
    "recurrent": RECURRENT,
    "reductions": REDUCTIONS,
    "shapes": {**SHAPES, **INDEXING, **RESAMPLING},
    "windows": WINDOWS,
}
LEAST = 0.95  # of all cases, and of those that are not the definition of an op by others

# Cases that are not imported, or that differ: the reason, and their names.
EXCEPTIONS = {
    "keys and values of earlier calls, or of a length that is data: a trainer sees whole sequences": (
        "attention_4d_diff_heads_mask4d_padded_kv attention_4d_gqa_causal_nonpad_decode "
        "attention_4d_causal_nonpad_continued_prefill attention_4d_causal_with_past_and_present "
        "attention_4d_causal_nonpad_negative_offset_structural_empty attention_4d_causal_nonpad_attn_mask_composition "
        "attention_4d_causal_nonpad_batch_prefill attention_local_window_with_past "
        "attention_local_window_ext_cache_rank3_head_mask attention_local_window_ext_cache_rank4_batch_mask "
        "attention_local_window_ext_cache_rank2_mask"
    ),
    "softmax in float64": (
        "attention_local_window_gqa_rank4_mask attention_local_window_gqa_rank4_mask_expanded"
    ),
    "three spatial axes": (
        "gridsample_volumetric_nearest_align_corners_0 "
        "gridsample_volumetric_nearest_align_corners_1 gridsample_volumetric_bilinear_align_corners_0 "
        "gridsample_volumetric_bilinear_align_corners_1 averagepool_3d_default averagepool_3d_dilations_small "
        "averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_True "
        "averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_False "
        "averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True "
        "averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_False convtranspose_3d maxpool_3d_default "
        "maxpool_3d_dilations maxpool_3d_dilations_use_ref_impl maxpool_3d_dilations_use_ref_impl_large"
    ),
    "other random numbers": (
        "training_dropout_default training_dropout_default_mask training_dropout training_dropout_mask"
    ),
    "peepholes, which PyTorch's layer does not have": "lstm_with_peepholes",
    "the result is a constant": "eyelike_populate_off_main_diagonal",
    "returns indices": "maxpool_with_argmax_2d_precomputed_pads maxpool_with_argmax_2d_precomputed_strides",
    "the rest of a division by 0 or infinity": "mod_float_edge_cases_fmod_0_float32",
}
LEFT_OUT = {name for names in EXCEPTIONS.values() for name in names.split()}


def family(name):
    """The family of a case's op; cases of several ops are in the family of their definition."""
    base = name.partition("_expanded")[0]
    op = op_of(name) or op_of(base)
    return next((f for f, table in FAMILIES.items() if op in table), "elementwise")


def feeds_of(inputs, outputs, arrays):
    feeds = dict(zip(inputs, arrays, strict=True))
    for node in topological(outputs):
        if node.op is STATE:
            state = node.attrs["state"]
            feeds[node.results[0]] = state.stored(state.init.array()).astype(node.results[0].dtype.numpy)
    return feeds


def differs(name):
    """The fault of a case, or None."""
    case = cases()[name]
    try:
        inputs, outputs, arrays, wanted = network_of(name)
        found = evaluate(outputs, feeds_of(inputs, outputs, arrays))
        assert all(f.dtype.kind == w.dtype.kind for f, w in zip(found, wanted, strict=True))
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(f, w, rtol=case.rtol, atol=max(case.atol, 1e-6), err_msg=name)
    except (AutodiffError, AssertionError) as error:
        return f"{name}: {error}"
    return None


@pytest.mark.parametrize("wanted", FAMILIES)
def test_values(wanted):
    chosen = [name for name in cases() if family(name) == wanted]
    assert chosen
    wrong = [w for name in chosen if name not in LEFT_OUT and (w := differs(name)) is not None]
    assert not wrong, "\n".join(wrong)
    agree = [name for name in chosen if name in LEFT_OUT and differs(name) is None]
    assert not agree, f"no exceptions any more: {agree}"


def test_the_cases_are_most_of_all_and_of_every_op():
    assert cases().keys() >= LEFT_OUT
    for chosen in ([*cases()], [name for name in cases() if "_expanded" not in name]):
        assert len(LEFT_OUT.intersection(chosen)) / len(chosen) <= 1 - LEAST
    assert {op_of(name) for name in cases()} >= TABLE.keys() - ESTIMATORS.keys() - OPTIMIZED.keys() - {
        "Cast",
        "CastLike",
        "ConstantOfShape",
        "Erfc",
        "Expm1",
        "SequenceAt",
        "SplitToSequence",
        *RANDOM,
    }  # in networks
    assert len(cases()) > 900


# One case of each kind of rule, in one program.
COMPILED = (
    "clip_example prelu_broadcast gelu_tanh_1 hardsigmoid_example thresholdedrelu pow_bcast_array where_example "
    "shrink_soft selu gemm_all_attributes matmul_3d einsum_batch_matmul reduce_l2_keep_dims_random "
    "reduce_log_sum_exp_* argmax_negative_axis_keepdims_random cumsum_2d_axis_1 top_k sce_mean_weight nllloss_NCd1 "
    "l2normalization_axis_1 basic_conv_with_padding conv_with_autopad_same conv_with_strides_and_asymmetric_padding "
    "convtranspose_pads maxpool_2d_same_upper averagepool_2d_pads_count_include_pad averagepool_2d_ceil "
    "globalaveragepool lrn batchnorm_epsilon instancenorm_epsilon layer_normalization_3d_axis1_epsilon "
    "group_normalization_example rms_normalization_2d_axis1 attention_4d_causal attention_3d_gqa lstm_bidirectional "
    "lstm_with_initial_bias simple_rnn_reverse gather_2d_indices slice_neg_steps edge_pad onehot_with_axis "
    "depthtospace_example spacetodepth resize_upsample_scales_linear resize_downsample_scales_cubic "
    "scatter_elements_with_axis tril split_variable_parts_2d_opset18"
)


def sample():
    for pattern in COMPILED.split():
        names = [n for n in fnmatch.filter(cases(), pattern) if n not in LEFT_OUT]
        yield from names[:1]


@pytest.mark.cc
def test_a_sample_in_c():
    names = list(sample())
    assert len(names) > 40, names
    inputs, outputs, arrays, wanted = [], [], [], []
    for k, name in enumerate(names):
        given, found, own, results = network_of(name, k)
        feeds = feeds_of(given, found, own)
        inputs += feeds
        outputs += found
        arrays += feeds.values()
        wanted += [(name, r) for r in results]
    f = ag.function(inputs, outputs, name="sample")
    results = f.on_host(kernels="ref")(*arrays)
    for (name, w), found in zip(wanted, results, strict=True):
        np.testing.assert_allclose(found, w, rtol=1e-3, atol=1e-5, err_msg=name)


def case_of(name):
    """The model of a case, and its arrays by name."""
    from onnx.backend.test.case.model import collect_testcases as of_models
    from onnx.backend.test.case.node import collect_testcases as of_nodes

    found = of_models() if name.startswith("gradient") else of_nodes(None)
    case = next(c for c in found if c.name == f"test_{name}")
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    names = [v.name for v in (*graph.input, *graph.output)]
    return case.model, dict(zip(names, [*inputs, *outputs], strict=True))


@pytest.mark.parametrize("name", ("gradient_of_add", "gradient_of_add_and_mul"))
def test_gradients(name):
    given, arrays = case_of(name)
    model = onnx.ModelProto()
    model.CopyFrom(given)
    node = model.graph.node[-1]
    xs, y = (next(a for a in node.attribute if a.name == k) for k in ("xs", "y"))
    model.graph.node.remove(node)
    del model.graph.output[1:]
    assert model.graph.output[0].name == y.s.decode()
    program = convert(model, name)
    inputs = {n: ag.Input(n, arrays[n].shape) for n in program.inputs}
    result = network(program, name)(*inputs.values())
    gradients = ag.grad(result, [inputs[x.decode()] for x in xs.strings])
    found = evaluate([result, *gradients], {v: arrays[n] for n, v in inputs.items()})
    for array, n in zip(found, (y.s.decode(), *node.output), strict=True):
        np.testing.assert_allclose(array, arrays[n], rtol=1e-6, err_msg=n)


def settings(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


# Case -> our optimizer of the attributes. Adam is left out: its cases are of step 0, without the correction of the bias
# that ours has from its first step on.
UPDATES = {
    "adagrad": lambda a: optim.Adagrad(
        lr=0.1, lr_decay=a["decay_factor"], weight_decay=a["norm_coefficient"], eps=a["epsilon"]
    ),
    "momentum": lambda a: optim.SGD(lr=0.1, momentum=a["alpha"], weight_decay=a["norm_coefficient"]),
    "nesterov_momentum": lambda a: optim.SGD(
        lr=0.1, momentum=a["alpha"], weight_decay=a["norm_coefficient"], nesterov=True
    ),
}


@pytest.mark.parametrize("name", (*UPDATES, "adagrad_multiple", "momentum_multiple"))
def test_optimizers(name):
    """One step from the state of the case; the loss is the product with its gradients."""
    model, arrays = case_of(name)
    (node,) = model.graph.node
    count = (len(node.input) - 2) // 3
    x, g, state = (node.input[2 + k * count : 2 + (k + 1) * count] for k in range(3))
    assert arrays["T"] == 0 and arrays["R"] == np.float32(0.1)
    weights = {n: ag.Param(f"w{k}", arrays[n]) for k, n in enumerate(x)}
    inputs = [ag.Input(f"g{k}", arrays[n].shape) for k, n in enumerate(g)]
    loss = sum(F.sum(w * i) for w, i in zip(weights.values(), inputs, strict=True))
    made = ag.Model(
        inputs,
        [],
        {"loss_of": loss},
        loss,
        UPDATES[name.removesuffix("_multiple")](settings(node)),
        guard=None,
    )
    step = made.entries()[0]
    feeds = feeds_of(inputs, [*step.outputs.values(), *step.updates.values()], [arrays[n] for n in g])
    if made.lr is not None:
        feeds[made.lr] = made.default_lr
    kept = {v.node.attrs["state"]: v for v in feeds if v.node.op is STATE}
    for own, value in kept.items():
        for k, n in enumerate(state):
            if own.name.startswith(f"w{k}.") or own.name.endswith(f".w{k}"):
                feeds[value] = arrays[n]
    after = dict(zip(step.updates, evaluate(list(step.updates.values()), feeds), strict=True))
    for k, n in enumerate(node.output):
        part, place = divmod(k, count)
        chosen = [
            a for s, a in after.items() if (s.name == f"w{place}") == (part == 0) and f"w{place}" in s.name
        ]
        assert len(chosen) == 1
        np.testing.assert_allclose(chosen[0], arrays[n], rtol=1e-5, err_msg=n)


# Ops without a rule that ONNX defines by others.
DEFINED = "causal_conv_with_state_basic rotary_embedding rotary_embedding_with_rotary_dim swiglu_alpha"


@pytest.mark.parametrize("name", DEFINED.split())
def test_ops_that_are_defined_by_others(name):
    model, arrays = case_of(name)
    program = convert(model, name)
    inputs = [ag.Input(n, arrays[n].shape, dtype) for n, dtype in program.inputs.items()]
    found = network(program, name)(*inputs)
    outputs = list(found) if isinstance(found, tuple) else [found]
    results = evaluate(outputs, {v: arrays[v.name] for v in inputs})
    for output, array in zip(model.graph.output, results, strict=True):
        np.testing.assert_allclose(array, arrays[output.name], rtol=1e-4, atol=1e-6, err_msg=name)
