"""One graph as a PyTorch module.

Operators without a rule keep their weights and run through onnx2torch (paper, section 4.1.2).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from autotailor.ir.errors import GraphError
from autotailor.ir.execution.head import Head, find_head
from autotailor.ir.execution.kernels import Kernels, find_call
from autotailor.ir.execution.modules.statistics import NORMALISATION
from autotailor.ir.execution.modules.trainable import untrainable
from autotailor.ir.execution.onnx_writer import IR_VERSION, OPSET, write_node
from autotailor.ir.execution.schedule import Schedule, overwrite
from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.pointwise.normalization import EPSILON
from autotailor.ir.operators.rule import Tensor

Outputs = Tensor | tuple[Tensor, ...]
"""What a network returns: a tensor ``[n, ...]``, or a tuple of several."""


def tensors(outputs: Outputs) -> tuple[Tensor, ...]:
    """The tensors that a network returns."""
    return outputs if isinstance(outputs, tuple) else (outputs,)


class GraphModule(nn.Module):
    """One graph as a module; input ``[n, 3, r, r]``, output ``[n, ...]``, or a tuple where the graph has several.

    Trainable weights are parameters, other weights are buffers; ``weight_names`` maps names of weights in the graph to
    names of attributes.

    Args:
        graph: to be run.
        logits: leave out the final activation, where there is one.
    """

    def __init__(self, graph: Graph, logits: bool = False) -> None:
        super().__init__()
        self.graph = graph
        self._head = find_head(graph) if logits else Head(graph.outputs)
        self.weight_names: dict[str, str] = {}
        frozen = untrainable(graph)
        for i, (name, weight) in enumerate(graph.weights.items()):
            attribute = f"w{i}_{''.join(c if c.isalnum() else '_' for c in name)}"
            self.weight_names[name] = attribute
            value = torch.from_numpy(np.array(weight))
            if name in frozen:
                self.register_buffer(attribute, value)
            else:
                self.register_parameter(attribute, nn.Parameter(value))
        self._bypassed = nn.ModuleDict()
        self._bypass_keys: dict[str, str] = {}
        for node in graph.nodes:
            if self._is_static(node):
                self._bypass_keys[node.name] = key = f"s{len(self._bypass_keys)}"
                self._bypassed[key] = bypass(graph, node)
        self._kernels = Kernels(graph)
        self.schedule = self._schedule(graph.nodes, self._head.outputs)
        self._folded: dict[str, Node] = {}
        self._absorbed = frozenset[str]()

    def fold(self, keep: Collection[str] = ()) -> None:
        """From now on, in evaluation mode, convolutions compute what the BatchNorm behind them computes.

        Outputs, and gradients of all weights, stay the same up to rounding; each map is written once less.

        Args:
            keep: tensors that are read elsewhere, and therefore stay as they are.
        """
        kept = {*keep, *self.graph.outputs, *self._head.outputs}
        for node in self.graph.nodes:
            output = node.outputs[0]
            readers = self.graph.consumers.get(output, ())
            if node.kind == "Conv" and output not in kept and [each.kind for each in readers] == [NORMALISATION]:
                self._folded[node.name] = readers[0]
        self._absorbed = frozenset(each.name for each in self._folded.values())

    def _is_static(self, node: Node) -> bool:
        return find_call(node.kind) is None

    def _schedule(self, nodes: Iterable[Node], outputs: tuple[str, ...]) -> Schedule:
        """The schedule of some of the graph's nodes; a subgraph that has a function of its own is one node."""
        nodes = tuple(node for node in nodes if node.name not in self._head.nodes)
        return Schedule.of(self.graph, self._kernels.joined(nodes, keep=outputs), outputs)

    def weight(self, name: str) -> Tensor:
        """The weight that operators compute with."""
        value: Tensor = getattr(self, self.weight_names[name])
        return value

    def train_only(self, names: Collection[str]) -> None:
        """Leaves no other weights than these, by the graph's names, to be trained."""
        for name, attribute in self.weight_names.items():
            if isinstance(weight := getattr(self, attribute), nn.Parameter):
                weight.requires_grad = name in names

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of all weights as they are now, by the graph's names."""
        return {n: getattr(self, a).detach().cpu().numpy().copy() for n, a in self.weight_names.items()}

    def forward(self, x: Tensor) -> Outputs:
        values = {self.graph.input: x}
        self.advance(values, 0, len(self.schedule.nodes))
        return self.logits(values)

    def advance(self, values: dict[str, Tensor], start: int, stop: int, hold: Collection[str] = ()) -> None:
        """Runs the nodes between two positions of the schedule.

        Args:
            values: activations by name: those that are live at ``start``, and afterwards those that are live at
                ``stop``.
            start: position of the first node.
            stop: position behind the last node.
            hold: tensors that are not dropped behind the node that reads them last.
        """
        for position, node in enumerate(self.schedule.nodes[start:stop], start):
            result = self._run(node, values)
            if len(node.outputs) == 1:
                values[node.outputs[0]] = result
            else:
                values.update(zip(node.outputs, result, strict=False))
            for name in self.schedule.last.get(position, ()):
                if name not in hold:
                    values.pop(name, None)

    def logits(self, values: Mapping[str, Tensor]) -> Outputs:
        """What ``forward`` returns, from the activations behind the last node."""
        if len(self.schedule.outputs) > 1:
            return tuple(values[name] for name in self.schedule.outputs)
        result = values[self.schedule.outputs[0]]
        return result.flatten(1) if self._head.activation else result  # logits may be maps of one pixel

    def _run(self, node: Node, values: Mapping[str, Tensor]) -> Any:
        if node.name in self._bypass_keys:
            module = self._bypassed[self._bypass_keys[node.name]]
            return module(*(values[name] for name in dict.fromkeys(self.graph.activations(node))))
        arguments = [self._argument(name, values) for name in self._read(node)]
        if not self.training and node.name in self._folded:
            arguments = self._with_batch_norm(self._folded[node.name], arguments)
        elif not self.training and node.name in self._absorbed:
            return arguments[0]
        if node.kind == NORMALISATION:
            return self.normalise(node, arguments)
        if self.training and node.name in self.schedule.overwritten:
            return overwrite(node, arguments, self.schedule.overwritten[node.name])
        call = find_call(node.kind)
        assert call is not None
        return call(node, arguments)

    def _read(self, node: Node) -> tuple[str, ...]:
        """The inputs that a node reads; an empty name is read as None."""
        return node.inputs

    def _argument(self, name: str, values: Mapping[str, Tensor]) -> Tensor | None:
        if not name:
            return None
        return self.weight(name) if name in self.weight_names else values[name]

    def _with_batch_norm(self, node: Node, arguments: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The arguments of a convolution that computes what the BatchNorm behind it does."""
        x, weight, bias = (*arguments, None)[:3]
        gain, shift, mean, variance = (self.weight(name) for name in node.inputs[1:5])
        scale = gain / (variance + node.get("epsilon", EPSILON)).sqrt()
        assert weight is not None
        offset = -mean if bias is None else bias - mean
        return [x, weight * scale.reshape(-1, *[1] * (weight.ndim - 1)), shift + offset * scale]

    def normalise(self, node: Node, arguments: list[Any]) -> Tensor:
        """BatchNorm as PyTorch does it: running averages are updated in training."""
        x, gain, shift, mean, variance = arguments
        momentum = 1.0 - node.get("momentum", 0.9)
        return nn.functional.batch_norm(
            x, mean, variance, gain, shift, self.training, momentum, node.get("epsilon", EPSILON)
        )


def bypass(graph: Graph, node: Node) -> nn.Module:
    """A module of one operator with fixed weights; the inputs of the module are the node's activations, in order.

    Raises:
        GraphError: onnx2torch has no converter for the operator.
    """
    import onnx2torch

    proto, constants = write_node(node)
    activations = list(dict.fromkeys(graph.activations(node)))
    weights = [numpy_helper.from_array(graph.weights[n], n) for n in dict.fromkeys(node.inputs) if n in graph.weights]
    model = helper.make_model(
        helper.make_graph(
            [proto],
            node.name,
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, graph.shapes[n]) for n in activations],
            [helper.make_tensor_value_info(node.outputs[0], TensorProto.FLOAT, graph.shapes[node.outputs[0]])],
            weights + constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    try:
        module: nn.Module = onnx2torch.convert(onnx.shape_inference.infer_shapes(model)).eval()
    except NotImplementedError as error:
        raise GraphError(
            f"node {node.name}: neither autotailor nor onnx2torch can run {node.kind} ({error}); "
            f"replace the operator in the model, or add a rule under autotailor/ir/operators"
        ) from error
    return module.requires_grad_(False)
