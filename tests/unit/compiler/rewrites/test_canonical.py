"""One way of writing each operator: every form that ONNX allows ends in the same one, and computes the same."""

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F

from autotailor.compiler.rewrites.canonical import canonicalise, shape_of
from autotailor.ir.errors import GraphError
from onnx_text import constant, kinds, model_of, read
from reference import run, run_passed

rng = np.random.default_rng(0)
KERNEL = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
GAINS = np.array([1.0, 2.0, 3.0], np.float32)
MAP = "float[n, c, h, w] y"


def rewritten(body: str, weights: dict[str, Any] | None = None, **options: Any) -> ir.Model:
    """The canonical form of a model, which computes what the model computes."""
    options.setdefault("outputs", MAP)
    model = model_of(body, weights, **options)
    passed = read(model)
    canonicalise(passed)
    run_passed(model, passed)
    return passed


def ints(node: ir.Node, name: str) -> list[int]:
    return list(node.attributes[name].as_ints())


class TestWindows:
    """(out - 1) stride + span - in pads, of which an odd one is at the end or at the begin."""

    @pytest.mark.parametrize(
        ("attributes", "side", "pads"),
        [
            ('auto_pad = "SAME_UPPER", strides = [2, 2]', 8, [0, 0, 1, 1]),
            ('auto_pad = "SAME_LOWER", strides = [2, 2]', 8, [1, 1, 0, 0]),
            ('auto_pad = "SAME_UPPER", strides = [2, 2]', 9, [1, 1, 1, 1]),
        ],
    )
    @pytest.mark.parametrize("kind", ["Conv", "MaxPool", "AveragePool", "LpPool"])
    def test_same_padding_becomes_numbers(self, kind: str, attributes: str, side: int, pads: list[int]) -> None:
        arguments = "(x, w)" if kind == "Conv" else "(x)"
        kernel = "" if kind == "Conv" else ", kernel_shape = [3, 3]"
        body = f"y = {kind} <{attributes}{kernel}> {arguments}"
        node = rewritten(body, {"w": KERNEL}, shape=(1, 3, side, side)).graph[0]
        assert ints(node, "pads") == pads
        assert "auto_pad" not in node.attributes

    def test_a_stride_longer_than_the_kernel_needs_no_pads(self) -> None:
        node = rewritten('y = Conv <auto_pad = "SAME_UPPER", strides = [4, 4]> (x, w)', {"w": KERNEL}).graph[0]
        assert ints(node, "pads") == [0, 0, 0, 0]

    def test_same_padding_counts_dilations_as_pytorch_does(self) -> None:
        """Of which onnxruntime computes none."""
        body = 'y = Conv <auto_pad = "SAME_UPPER", dilations = [2, 2]> (x, w)'
        passed = read(model_of(body, {"w": KERNEL}, outputs=MAP))
        canonicalise(passed)
        assert ints(passed.graph[0], "pads") == [2, 2, 2, 2]
        image = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
        expected = F.conv2d(torch.from_numpy(image), torch.from_numpy(KERNEL), padding="same", dilation=2)
        np.testing.assert_allclose(run(ir.to_proto(passed), image), expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize(
        ("attributes", "pads", "padding"),
        [
            ('auto_pad = "SAME_UPPER", strides = [2, 1]', [0, 1, 1, 1], [0, 0]),
            ('auto_pad = "SAME_LOWER", strides = [2, 1]', [1, 1, 0, 1], [0, 0]),
            ('auto_pad = "SAME_UPPER", strides = [2, 2], output_shape = [13, 14]', [1, 0, 1, 1], [0, 0]),
            ('auto_pad = "SAME_LOWER", strides = [2, 2], output_shape = [13, 14]', [1, 1, 1, 0], [0, 0]),
            ("strides = [2, 2], output_shape = [14, 16]", [1, 0, 0, 0], [0, 1]),
            ("strides = [2, 2], output_shape = [14, 14], output_padding = [1, 1]", [1, 1, 1, 1], [1, 1]),
        ],
    )
    def test_the_output_of_a_transposed_convolution_becomes_numbers(
        self, attributes: str, pads: list[int], padding: list[int]
    ) -> None:
        """Pads as onnxruntime has them: other modes have an odd one at the begin, as SAME_LOWER."""
        node = rewritten(f"y = ConvTranspose <{attributes}> (x, w)", {"w": KERNEL[:3]}, shape=(1, 3, 7, 7)).graph[0]
        assert (ints(node, "pads"), ints(node, "output_padding")) == (pads, padding)
        assert not {"auto_pad", "output_shape"} & set(node.attributes)

    @pytest.mark.parametrize("mode", ["VALID", "NOTSET"])
    def test_other_modes_are_left_out(self, mode: str) -> None:
        node = rewritten(f'y = Conv <auto_pad = "{mode}"> (x, w)', {"w": KERNEL}).graph[0]
        assert not {"auto_pad", "pads"} & set(node.attributes)

    def test_the_kernel_of_a_convolution_is_written_out(self) -> None:
        assert ints(rewritten("y = Conv (x, w)", {"w": KERNEL}).graph[0], "kernel_shape") == [3, 3]

    def test_a_ceiling_that_is_not_asked_for_is_left_out(self) -> None:
        floor, ceiling = (
            rewritten(f"y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = {mode}> (x)").graph[0]
            for mode in (0, 1)
        )
        assert "ceil_mode" not in floor.attributes
        assert ceiling.attributes["ceil_mode"].as_int() == 1

    REFUSED = {
        "no stride": ("Conv <strides = [0, 1]> (x, w)", r"over a map with 2 axes cannot have strides \[0, 1\]"),
        "no dilation": ("Conv <dilations = [1, 0]> (x, w)", r"cannot have dilations \[1, 0\]"),
        "too many strides": ("Conv <strides = [1, 1, 1]> (x, w)", r"strides \[1, 1, 1\]"),
        "too few pads": ("Conv <pads = [1, 1]> (x, w)", r"pads \[1, 1\]"),
        "no group": ("Conv <group = 0> (x, w)", "cannot have group 0"),
        "no kernel": ("MaxPool <kernel_shape = [0, 3]> (x)", r"kernel_shape \[0, 3\]"),
        "kernel of other axes": ("MaxPool <kernel_shape = [3]> (x)", r"kernel_shape \[3\]"),
        "two faults": ("Conv <strides = [0, 1], group = 0> (x, w)", r"strides \[0, 1\], group 0; export it again"),
    }

    @pytest.mark.parametrize("case", REFUSED)
    def test_a_window_that_no_map_has_is_refused_with_its_fault(self, case: str) -> None:
        text, message = self.REFUSED[case]
        with pytest.raises(GraphError, match=message):
            canonicalise(ir.from_proto(model_of(f"y = {text}", {"w": KERNEL})))

    @pytest.mark.parametrize("text", ["MaxPool <kernel_shape = [1]> (x)", "Conv (x, w)"])
    def test_a_window_over_no_map_is_refused(self, text: str) -> None:
        with pytest.raises(GraphError, match="over a map with 0 axes"):
            canonicalise(ir.from_proto(model_of(f"y = {text}", {"w": KERNEL[:, :, 0, 0]}, shape=(1, 3))))


class TestSplit:
    def test_equal_parts_become_sizes(self) -> None:
        node = rewritten("left, y = Split <axis = 2, num_outputs = 2> (x)").graph[0]
        assert constant(node.inputs[1]) == [4, 4]
        assert "num_outputs" not in node.attributes

    def test_a_smaller_last_part_has_its_size(self) -> None:
        node = rewritten("a, b, y = Split <axis = -1, num_outputs = 3> (x)").graph[0]
        assert constant(node.inputs[1]) == [3, 3, 2]

    def test_sizes_that_are_said_stay(self) -> None:
        node = rewritten("left, y = Split <axis = 1> (x, sizes)", {"sizes": [1, 2]}).graph[0]
        assert node.inputs[1] is not None
        assert node.inputs[1].name == "sizes"


class TestSqueeze:
    def test_without_axes_every_axis_of_one_is_named(self) -> None:
        node = rewritten("p = GlobalAveragePool (x)  y = Squeeze (p)", outputs="float[c] y").graph[1]
        assert constant(node.inputs[1]) == [0, 2, 3]

    def test_axes_that_are_said_stay(self) -> None:
        body = "p = GlobalAveragePool (x)  y = Squeeze (p, axes)"
        assert constant(rewritten(body, {"axes": [2]}, outputs="float[n, c, h] y").graph[1].inputs[1]) == [2]


REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


class TestReductions:
    @pytest.mark.parametrize("kind", REDUCTIONS)
    @pytest.mark.parametrize("axes", ["x", "x, none"])
    def test_without_axes_all_are_named(self, kind: str, axes: str) -> None:
        body = f"p = Abs (x)  y = Reduce{kind} <noop_with_empty_axes = 0> ({axes.replace('x', 'p')})"
        node = rewritten(body, {"none": np.zeros(0, np.int64)}).graph[1]
        assert constant(node.inputs[1]) == [0, 1, 2, 3]
        assert "noop_with_empty_axes" not in node.attributes

    @pytest.mark.parametrize("kind", REDUCTIONS[2:7])
    def test_over_no_axes_it_is_the_tensor_itself(self, kind: str) -> None:
        body = f"p = Relu (x)  q = Reduce{kind} <noop_with_empty_axes = 1> (p)  y = Neg (q)"
        passed = read(model_of(body, outputs=MAP))
        canonicalise(passed)
        assert kinds(passed) == ["Relu", "Neg"]

    def test_axes_that_are_said_stay(self) -> None:
        node = rewritten("y = ReduceMean <noop_with_empty_axes = 1> (x, axes)", {"axes": [-1]}).graph[0]
        assert constant(node.inputs[1]) == [-1]
        assert "noop_with_empty_axes" not in node.attributes


class TestSums:
    def test_a_sum_of_several_is_a_chain_of_additions(self) -> None:
        passed = rewritten("a = Relu (x)  b = Neg (x)  s = Sum (x, a, b)  y = Relu (s)")
        assert kinds(passed) == ["Relu", "Neg", "Add", "Add", "Relu"]

    def test_sums_on_the_way_have_shapes_of_their_own(self) -> None:
        passed = rewritten(
            "a = ReduceMean (x, last)  b = ReduceMean (x, rows)  y = Sum (a, b, x)", {"last": [3], "rows": [2]}
        )
        assert [tuple(node.outputs[0].shape) for node in passed.graph][2:] == [(1, 3, 8, 8)] * 2  # type: ignore[arg-type]
        assert [tuple(node.outputs[0].shape) for node in passed.graph][:2] == [(1, 3, 8, 1), (1, 3, 1, 8)]  # type: ignore[arg-type]

    def test_a_sum_keeps_its_name(self) -> None:
        passed = rewritten("a = Relu (x)  s = Sum (x, a, x)  y = Relu (s)")
        assert [node.outputs[0].name for node in passed.graph] == ["a", "s/1", "s", "y"]

    @pytest.mark.parametrize("kind", ["Sum", "Max", "Min", "Mean"])
    def test_of_one_tensor_it_is_that_tensor(self, kind: str) -> None:
        assert kinds(rewritten(f"a = Relu (x)  s = {kind} (a)  y = Neg (s)")) == ["Relu", "Neg"]

    def test_of_the_image_alone_it_leaves_the_image_its_name(self) -> None:
        assert rewritten("s = Sum (x)  y = Relu (s)").graph.inputs[0].name == "x"

    @pytest.mark.parametrize("kind", ["Max", "Min", "Mean"])
    def test_of_two_tensors_it_stays(self, kind: str) -> None:
        assert kinds(rewritten(f"a = Relu (x)  y = {kind} (a, x)")) == ["Relu", kind]


class TestPad:
    def test_pads_of_some_axes_become_pads_of_all(self) -> None:
        node = rewritten("y = Pad (x, pads, , axes)", {"pads": [1, 2, 3, 4], "axes": [-1, 2]}).graph[0]
        assert constant(node.inputs[1]) == [0, 0, 2, 1, 0, 0, 4, 3]
        assert len(node.inputs) < 4

    def test_pads_of_all_axes_stay(self) -> None:
        node = rewritten("y = Pad (x, pads)", {"pads": [0, 0, 1, 2, 0, 0, 3, 4]}).graph[0]
        assert constant(node.inputs[1]) == [0, 0, 1, 2, 0, 0, 3, 4]

    def test_pads_that_the_image_says_stay(self) -> None:
        body = "s = Shape (x)  pads = Slice (s, two, four)  y = Pad (x, pads, , axes)"
        node = rewritten(body, {"two": [2], "four": [4], "axes": [3]}).graph[-1]
        assert len(node.inputs) == 4


class TestGemm:
    ROW = "f = Flatten (x)"
    WEIGHTS = {"b": [[1.0, -2.0]] * 192, "c": [3.0, 4.0]}

    def product(self, attributes: str, inputs: str = "f, b, c", **more: Any) -> ir.Node:
        body = f"{self.ROW}  y = Gemm <{attributes}> ({inputs})"
        return rewritten(body, {**self.WEIGHTS, **more}, outputs="float[n, c] y").graph[-1]

    def test_factors_are_in_the_constants(self) -> None:
        node = self.product("alpha = 2.0, beta = 0.5")
        assert not node.attributes
        assert constant(node.inputs[1])[:2] == [2.0, -4.0]
        assert constant(node.inputs[2]) == [1.5, 2.0]

    def test_factors_of_one_are_left_out(self) -> None:
        node = self.product("alpha = 1.0, beta = 1.0, transB = 0")
        assert set(node.attributes) == {"transB"}
        assert node.inputs[1] is not None
        assert node.inputs[1].name == "b"

    def test_the_factor_of_a_missing_bias_goes(self) -> None:
        assert not self.product("beta = 0.5", "f, b").attributes

    def test_the_factor_of_what_the_image_says_stays(self) -> None:
        body = f"{self.ROW}  g = Gemm (f, b)  t = Transpose <perm = [1, 0]> (g)  y = Gemm <alpha = 2.0> (g, t)"
        assert rewritten(body, self.WEIGHTS, outputs="float[n, c] y").graph[-1].attributes["alpha"].as_float() == 2


class TestResize:
    def test_a_region_counts_only_where_the_image_is_cropped_to_it(self) -> None:
        weights = {"roi": np.array([0, 0, 0.2, 0.2, 1, 1, 0.8, 0.8], np.float32), "sizes": [1, 3, 4, 4]}
        whole, cropped = (
            rewritten(
                f'y = Resize <mode = "linear", coordinate_transformation_mode = "{mode}"> (x, roi, , sizes)', weights
            )
            for mode in ("half_pixel", "tf_crop_and_resize")
        )
        assert whole.graph[0].inputs[1] is None
        assert "roi" not in whole.graph.initializers
        assert constant(cropped.graph[0].inputs[1])[2] == pytest.approx(0.2)

    def test_options_that_opset_17_lacks_go_where_they_say_nothing(self) -> None:
        said = 'antialias = 0, keep_aspect_ratio_policy = "stretch", mode = "linear"'
        node = rewritten(f"y = Resize <{said}> (x, , , sizes)", {"sizes": [1, 3, 4, 4]}).graph[0]
        assert set(node.attributes) == {"mode"}

    def test_options_that_say_something_stay(self) -> None:
        said = 'antialias = 1, axes = [2, 3], keep_aspect_ratio_policy = "not_larger", mode = "linear"'
        node = rewritten(f"y = Resize <{said}> (x, , , sizes)", {"sizes": [4, 4]}).graph[0]
        assert set(node.attributes) == {"mode", "axes", "antialias", "keep_aspect_ratio_policy"}


class TestNormalisation:
    def test_a_group_for_each_channel_is_instance_normalisation(self) -> None:
        weights = {"g": GAINS, "b": GAINS}
        node = rewritten("y = GroupNormalization <num_groups = 3, stash_type = 1> (x, g, b)", weights, opset=21).graph[
            0
        ]
        assert node.op_type == "InstanceNormalization"
        assert not {"num_groups", "stash_type"} & set(node.attributes)

    def test_gains_of_each_group_become_gains_of_each_channel(self) -> None:
        """Opset 18 has one gain for each group, opset 21 one for each channel."""
        body = "a = Conv (x, w)  y = GroupNormalization <num_groups = 2> (a, g, b)"
        weights = {"w": KERNEL, "g": [1.0, 2.0], "b": [3.0, 4.0]}
        model = model_of(body, weights, outputs=MAP)
        passed = ir.from_proto(model)
        for value, shape in ((passed.graph[0].outputs[0], (1, 4, 6, 6)), (passed.graph[1].outputs[0], (1, 4, 6, 6))):
            value.shape = ir.Shape(shape)
        canonicalise(passed)
        node = passed.graph[1]
        assert constant(node.inputs[1]) == [1, 1, 2, 2]
        assert constant(node.inputs[2]) == [3, 3, 4, 4]
        passed.graph.opset_imports[""] = 21
        run_passed(model, passed)

    def test_gains_of_each_channel_stay(self) -> None:
        body = "a = Conv (x, w)  y = GroupNormalization <num_groups = 2> (a, g, b)"
        weights = {"w": KERNEL, "g": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, 3.0, 4.0]}
        model = model_of(body, weights, opset=21, outputs=MAP)
        passed = ir.from_proto(model)
        passed.graph[0].outputs[0].shape = ir.Shape((1, 4, 6, 6))
        canonicalise(passed)
        assert passed.graph[1].inputs[1].name == "g"  # type: ignore[union-attr]

    def test_batch_normalisation_in_training_mode_is_refused(self) -> None:
        body = "y, m, v = BatchNormalization <training_mode = 1> (x, g, g, g, g)"
        with pytest.raises(GraphError, match="BatchNormalization takes mean and variance of the batch"):
            canonicalise(read(model_of(body, {"g": GAINS})))

    def test_batch_normalisation_in_eval_mode_does_not_say_so(self) -> None:
        node = rewritten("y = BatchNormalization <training_mode = 0> (x, g, g, g, g)", {"g": GAINS}).graph[0]
        assert "training_mode" not in node.attributes


class TestDropout:
    @pytest.mark.parametrize(
        ("body", "weights"),
        [
            ("y = Dropout (x, half, yes)", {"half": 0.5, "yes": np.array(True)}),
            ("m = ReduceMax <keepdims = 0> (x)  c = Cast <to = 9> (m)  y = Dropout (x, half, c)", {"half": 0.5}),
        ],
        ids=["always", "as the image says"],
    )
    def test_in_training_mode_it_is_refused(self, body: str, weights: dict[str, Any]) -> None:
        with pytest.raises(GraphError, match="Dropout sets values to zero at random"):
            canonicalise(read(model_of(body, weights)))

    @pytest.mark.parametrize("arguments", ["x", "x, half", "x, half, no"])
    def test_in_eval_mode_it_is_not(self, arguments: str) -> None:
        rewritten(f"y = Dropout ({arguments})", {"half": 0.5, "no": np.array(False)})


class TestViews:
    @pytest.mark.parametrize(
        "view",
        ["Reshape (a, same)", "Expand (a, ones)", "Tile (a, ones)", "Expand (a, same)"],
    )
    def test_a_view_into_the_same_shape_is_no_view(self, view: str) -> None:
        body = f"a = Relu (x)  v = {view}  y = Neg (v)"
        assert kinds(rewritten(body, {"same": [1, 3, 8, 8], "ones": [1, 1, 1, 1]})) == ["Relu", "Neg"]

    def test_flattening_a_matrix_is_no_view(self) -> None:
        body = "a = Flatten (x)  v = Flatten (a)  y = Neg (v)"
        assert kinds(rewritten(body, outputs="float[n, c] y")) == ["Flatten", "Neg"]

    @pytest.mark.parametrize("view", ["Reshape (x, rows)", "Flatten (x)", "Tile (x, twice)"])
    def test_a_view_into_another_shape_stays(self, view: str) -> None:
        outputs = MAP if "Tile" in view else "float[n, c] y"
        passed = rewritten(f"y = {view}", {"rows": [3, 64], "twice": [1, 2, 1, 1]}, outputs=outputs)
        assert kinds(passed) == [view.split()[0]]

    def test_a_view_that_is_the_output_stays_a_node_of_its_name(self) -> None:
        passed = rewritten("a = Relu (x)  y = Reshape (a, same)", {"same": [1, 3, 8, 8]})
        assert passed.graph.outputs[0].name == "y"


def test_operators_of_other_domains_are_left_alone() -> None:
    passed = read(model_of("y = own.Sum (x)"))
    canonicalise(passed)
    assert kinds(passed) == ["Sum"]


@pytest.mark.parametrize(("shape", "expected"), [((1, 3, 8, 8), (1, 3, 8, 8)), (("n", 3), None)])
def test_a_shape_is_static_or_refused(shape: tuple[int | str, ...], expected: tuple[int, ...] | None) -> None:
    value = read(model_of("y = Relu (x)", shape=shape)).graph.inputs[0]
    if expected is not None:
        assert shape_of(value) == expected
        return
    for unknown in (value, None):
        with pytest.raises(GraphError, match="its shape cannot be inferred"):
            shape_of(unknown)
