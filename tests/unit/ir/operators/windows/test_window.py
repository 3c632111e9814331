"""Windows: sizes behind them against PyTorch's, and kernels that are cropped around their centre."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st

from autotailor.ir.dimensions.dimension import Constant
from autotailor.ir.errors import GraphError
from autotailor.ir.graph import Node
from autotailor.ir.operators.windows.window import WindowAttributes, pad_like, window_attributes

SMALL = st.integers(1, 3)
WINDOWS = st.builds(
    lambda kernel, stride, pad, dilation: WindowAttributes((kernel,), (stride,), (pad, pad), (dilation,)),
    st.integers(1, 7), SMALL, st.integers(0, 3), SMALL,
)  # fmt: skip


@given(WINDOWS, st.integers(1, 20))
def test_the_size_behind_a_window_is_that_of_a_convolution(window: WindowAttributes, size: int) -> None:
    assume(size + 2 * window.pads[0] >= window.span(0))
    x, kernel = torch.zeros(1, 1, size), torch.zeros(1, 1, *window.kernel)
    convolved = F.conv1d(x, kernel, None, window.strides, window.pads[:1], window.dilations)
    assert window.left([size]) == convolved.shape[2:]


@given(st.integers(1, 5), SMALL, st.integers(0, 2), st.integers(1, 20))
def test_the_size_in_ceil_mode_is_that_of_a_pooling(kernel: int, stride: int, pad: int, size: int) -> None:
    assume(2 * pad <= kernel <= size + 2 * pad)
    window = WindowAttributes((kernel,), (stride,), (pad, pad), (1,), ceil=True)
    pooled = F.max_pool1d(torch.zeros(1, 1, size), kernel, stride, pad, 1, ceil_mode=True)
    assert window.left([size]) == pooled.shape[2:]


@given(st.sampled_from([5, 7]), SMALL, st.integers(0, 2), SMALL, st.integers(20, 40))
def test_a_cropped_kernel_leaves_the_size_of_the_output(
    side: int, stride: int, more: int, dilation: int, size: int
) -> None:
    pad = dilation * (side - 3) // 2 + more
    window = WindowAttributes((side,), (stride,), (pad, pad), (dilation,))
    assert window.can_be_cropped(3)
    for kernel in range(3, side + 1, 2):
        cropped = window.cropped([kernel])
        assert cropped.kernel == (kernel,)
        assert min(cropped.pads) >= 0
        assert cropped.left([size]) == window.left([size])


@pytest.mark.parametrize(
    ("kernel", "pads", "dilations", "can"),
    [
        ((5, 5), (2, 2, 2, 2), (1, 1), True),
        ((5, 5), (1, 1, 1, 1), (1, 1), True),
        ((5, 5), (1, 1, 0, 1), (1, 1), False),
        ((5, 3), (2, 1, 2, 1), (1, 1), False),
        ((4, 4), (2, 2, 2, 2), (1, 1), False),
        ((3, 3), (1, 1, 1, 1), (1, 1), False),
        ((5, 5), (1, 1, 1, 1), (2, 2), False),
        ((5, 5), (2, 2, 2, 2), (2, 2), True),
    ],
)
def test_only_odd_squares_whose_pads_allow_it_are_cropped(
    kernel: tuple[int, ...], pads: tuple[int, ...], dilations: tuple[int, ...], can: bool
) -> None:
    assert WindowAttributes(kernel, (1, 1), pads, dilations).can_be_cropped(3) == can


def test_defaults_are_those_of_onnx_and_same_pads_are_refused() -> None:
    node = Node("pool", "MaxPool", ("x",), ("y",), (("auto_pad", "VALID"),))
    assert window_attributes(node, (3, 2)) == WindowAttributes((3, 2), (1, 1), (0, 0, 0, 0), (1, 1), ceil=False)
    with pytest.raises(GraphError, match="node pool: auto_pad=SAME_UPPER must be written as pads"):
        window_attributes(node.with_attributes(auto_pad="SAME_UPPER"), (3, 2))


def test_uneven_pads_are_applied_and_even_ones_are_left_to_the_operator() -> None:
    x = torch.arange(6.0).reshape(1, 1, 2, 3)
    even = WindowAttributes((3, 3), (1, 1), (1, 2, 1, 2), (1, 1))
    assert pad_like(x, even, 9.0) == (x, (1, 2))
    padded, left = pad_like(x, WindowAttributes((3, 3), (1, 1), (1, 0, 0, 2), (1, 1)), 9.0)
    assert left == (0, 0)
    assert padded[0, 0].tolist() == [[9, 9, 9, 9, 9], [0, 1, 2, 9, 9], [3, 4, 5, 9, 9]]


def test_a_window_that_changes_nothing_keeps_the_dimension() -> None:
    window = WindowAttributes((3,), (1,), (1, 1), (1,))
    size = Constant(8)
    assert window.slide([size]) == (size,)
