"""BatchNorm with the statistics of a batch that several processes share.

With m_i and v_i the mean and variance of the part that process i of k has, all parts equally large, the statistics of
the whole batch are

    m = mean of m_i        v = mean of v_i + mean of (m_i - m)^2,

and the gradient for an input x, with d the gradient for the output, g the gain and y = (x - m) / sqrt(v + epsilon), is

    g / sqrt(v + epsilon) * (d - mean(d) - y mean(d y)),

whose means are over the whole batch, too. ``torch.nn.SyncBatchNorm`` computes the same on GPUs alone.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from autotailor.finetuning.training.processes.group import Messages
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.modules.statistics import NORMALISATION

Found = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
_PARAMETERS = inspect.signature(functional.batch_norm)


def widest(module: nn.Module) -> int:
    """Channels of the widest BatchNorm of a network; 0 where the network has none."""
    widths = [0]
    for part in module.modules():
        if isinstance(part, _BatchNorm):
            widths.append(part.num_features)
        if isinstance(part, GraphModule):
            nodes = [node for node in part.graph.nodes if node.kind == NORMALISATION]
            widths += [part.graph.weights[node.inputs[1]].size for node in nodes]
    return max(widths)


class Synchronised(TorchFunctionMode):
    """Within this context ``functional.batch_norm`` in training uses the statistics of all processes.

    The context holds for the thread that enters it.
    """

    def __init__(self, messages: Messages) -> None:
        super().__init__()
        self._messages = messages

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replaces the one function, and calls all others."""
        if func is functional.batch_norm:
            given = _PARAMETERS.bind(*args, **(kwargs or {}))
            given.apply_defaults()
            if given.arguments["training"]:
                return self._normalise(**given.arguments)
        return func(*args, **(kwargs or {}))

    def _normalise(
        self,
        input: torch.Tensor,  # noqa: A002 - the name in PyTorch
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
    ) -> torch.Tensor:
        result, mean, variance = _Normalise.apply(input, weight, bias, eps, self._messages)  # type: ignore[no-untyped-call]
        if running_mean is not None and running_var is not None:
            images = self._messages.size * input.numel() // input.shape[1]
            running_mean.lerp_(mean.to(running_mean), momentum)
            running_var.lerp_(variance.to(running_var) * (images / max(1, images - 1)), momentum)
        return result  # type: ignore[no-any-return]


class _Normalise(torch.autograd.Function):
    """Normalises ``[n, c, ...]``; gives the result, and means and variances ``[c]`` (float64) of the whole batch."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        gain: torch.Tensor | None,
        shift: torch.Tensor | None,
        epsilon: float,
        messages: Messages,
    ) -> Found:
        axes, channels = [0, *range(2, x.ndim)], x.shape[1]
        own = torch.var_mean(x.float(), axes, unbiased=False)
        statistics = messages.send(torch.cat([own[1], own[0]]).double())
        means, variances = statistics[:, :channels], statistics[:, channels:]
        mean = means.mean(0)
        variance = variances.mean(0) + (means - mean).square().mean(0)
        ctx.save_for_backward(x, gain, mean.float(), (variance + epsilon).rsqrt().float())
        ctx.messages, ctx.axes = messages, axes
        ctx.mark_non_differentiable(mean, variance)
        result = functional.batch_norm(x, mean.float(), variance.float(), gain, shift, False, 0.0, epsilon)
        return result, mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, gain, mean, scale = ctx.saved_tensors
        shape = [1, -1, *[1] * (x.ndim - 2)]
        gradient = gradients[0].float()
        normal = (x.float() - mean.view(shape)) * scale.view(shape)
        for_shift, for_gain = gradient.sum(ctx.axes), (gradient * normal).sum(ctx.axes)
        channels, count = x.shape[1], x.numel() // x.shape[1]
        means = ctx.messages.send(torch.cat([for_shift, for_gain]).double()).mean(0).float() / count
        factor = scale if gain is None else scale * gain.float()
        inner = gradient - means[:channels].view(shape) - normal * means[channels:].view(shape)
        for_x = (inner * factor.view(shape)).to(x.dtype)
        trained = (ctx.needs_input_grad[1], ctx.needs_input_grad[2])
        return for_x, for_gain if trained[0] else None, for_shift if trained[1] else None, None, None
