"""Classifiers for the compiler, with all at order 1 that a fresh initialisation leaves at 0 or 1."""

import importlib
import warnings
from collections.abc import Callable

import onnx
import onnx_ir as ir
import torch
from torch import nn

from autotailor.compiler.sources.export import export_module

ISSUE = (
    "timm:resnet50", "timm:mobilenetv2_100", "timm:convnext_tiny", "timm:vit_base_patch16_224",
    "timm:mobilenetv3_large_100", "timm:levit_256", "timm:efficientnet_b0", "timm:regnety_004", "timm:resnet18",
    "timm:deit_tiny_patch16_224", "timm:swin_tiny_patch4_window7_224", "timm:densenet121", "timm:repvgg_a0",
    "timm:ghostnet_100", "torchvision:googlenet", "torchvision:shufflenet_v2_x1_0", "torchvision:squeezenet1_1",
    "torchvision:vgg16_bn", "torchvision:mnasnet1_0",
)  # fmt: skip
"""The networks that the acceptance of the compiler names."""

FURTHER = (
    "torchvision:alexnet", "torchvision:vgg11", "torchvision:inception_v3", "torchvision:efficientnet_v2_s",
    "torchvision:vit_b_32", "torchvision:swin_v2_t", "torchvision:maxvit_t", "torchvision:regnet_x_400mf",
    "torchvision:mobilenet_v3_small", "torchvision:convnext_tiny", "torchvision:resnext50_32x4d",
    "torchvision:densenet121", "timm:resnetv2_50", "timm:resnext50_32x4d", "timm:wide_resnet50_2", "timm:seresnet50",
    "timm:legacy_xception", "timm:xception41", "timm:inception_v4", "timm:inception_resnet_v2", "timm:dla34",
    "timm:hrnet_w18_small", "timm:res2net50_26w_4s", "timm:resnest14d", "timm:cspresnet50", "timm:cspdarknet53",
    "timm:darknet53", "timm:ese_vovnet19b_dw", "timm:vovnet39a", "timm:dpn68", "timm:mixnet_s", "timm:tinynet_e",
    "timm:lcnet_050", "timm:mobileone_s0", "timm:mobilenetv4_conv_small", "timm:efficientnetv2_rw_s",
    "timm:tf_efficientnet_b0", "timm:tf_efficientnetv2_b0", "timm:semnasnet_100", "timm:spnasnet_100",
    "timm:fbnetc_100", "timm:hardcorenas_a", "timm:rexnet_100", "timm:selecsls42", "timm:ghostnetv2_100",
    "timm:repghostnet_050", "timm:starnet_s1", "timm:skresnet18", "timm:ecaresnet26t", "timm:gcresnext26ts",
    "timm:botnet26t_256", "timm:bat_resnext26ts", "timm:nfnet_l0", "timm:regnetx_002", "timm:hgnet_tiny",
    "timm:repvit_m0_9", "timm:fastvit_t8", "timm:mobilevit_s", "timm:mobilevitv2_050", "timm:edgenext_xx_small",
    "timm:efficientformer_l1", "timm:efficientvit_b0", "timm:efficientvit_m0", "timm:poolformer_s12",
    "timm:convformer_s18", "timm:mixer_s16_224", "timm:gmlp_s16_224", "timm:resmlp_12_224", "timm:convmixer_768_32",
    "timm:convnextv2_atto", "timm:inception_next_atto", "timm:mambaout_femto", "timm:rdnet_tiny",
    "timm:vit_tiny_patch16_224", "timm:cait_xxs24_224", "timm:beit_base_patch16_224", "timm:eva02_tiny_patch14_224",
    "timm:pit_ti_224", "timm:coat_tiny", "timm:crossvit_tiny_240", "timm:xcit_nano_12_p16_224",
    "timm:twins_svt_small", "timm:twins_pcpvt_small", "timm:pvt_v2_b0", "timm:visformer_tiny", "timm:convit_tiny",
    "timm:tnt_s_patch16_224", "timm:nest_tiny", "timm:tiny_vit_5m_224", "timm:volo_d1_224",
    "timm:focalnet_tiny_srf", "timm:davit_tiny", "timm:gcvit_xxtiny", "timm:hiera_tiny_224",
    "timm:swinv2_tiny_window8_256", "timm:maxvit_rmlp_pico_rw_256", "timm:coatnet_pico_rw_224", "timm:levit_128s",
    "timm:levit_conv_128s", "timm:nasnetalarge", "timm:pnasnet5large",
)  # fmt: skip
"""Further classifiers: the compiler must not have learnt a list by heart."""

REFUSED = {"timm:sequencer2d_s": r"neither autotailor nor onnx2torch can run LSTM"}
"""Classifiers that do not compile, with what the compiler says."""

LARGE = {"timm:gcvit_xxtiny": 0.66}
"""Where the smallest SubNet has more than half of the MACs, its share: no template knows GCViT's attention blocks."""

SMALL = {"timm:resnet18": 64, "timm:mobilenetv3_large_100": 64, "timm:regnety_002": 64}
"""Networks that are checked in every run of the tests, with the side of their images in pixels."""


def create(source: str, seed: int = 0) -> nn.Module:
    """An untrained network from ``timm:NAME``, ``torchvision:NAME`` or ``module:factory``, randomised."""
    prefix, _, name = source.partition(":")
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = _FACTORIES.get(prefix, lambda n: getattr(importlib.import_module(prefix), n)())(name)
    return randomise(network.eval())


def export(source: str, side: int | None = None) -> onnx.ModelProto:
    """``create`` as an ONNX model; ``side`` of its images in pixels."""
    network = create(source)
    return ir.to_proto(export_module(network, side or input_side(network)))


def _timm(name: str) -> nn.Module:
    import timm

    return timm.create_model(name, pretrained=False)


def _torchvision(name: str) -> nn.Module:
    import torchvision

    auxiliary = {"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **auxiliary)


_FACTORIES: dict[str, Callable[[str], nn.Module]] = {"timm": _timm, "torchvision": _torchvision}
_STATISTICS = (nn.BatchNorm1d, nn.BatchNorm2d)
_MATRICES = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
"""Modules whose outputs are seen; ``nn.MultiheadAttention`` reads its matrices by itself."""


@torch.no_grad()
def randomise(network: nn.Module) -> nn.Module:
    """Draws weights, gains, layer scales, shifts, biases, tables, tokens and statistics at order 1.

    Matrices are scaled such that what each writes varies by one from picture to picture and place to place, and
    statistics lie around what pictures give, so that logits stay finite and depend on the picture, however deep.
    """
    for name, parameter in network.named_parameters():
        last = name.rsplit(".", 1)[-1]
        is_scale = last == "weight" or any(word in last for word in ("gamma", "alpha", "scale", "gain"))
        if parameter.ndim <= 1 and is_scale:
            parameter.uniform_(0.5, 1.5)
        elif parameter.ndim <= 1:
            parameter.uniform_(-1, 1)
        else:
            parameter.normal_()
    for module in network.modules():
        if isinstance(module, nn.MultiheadAttention):
            _scale_attention(module)
    _settle(network)
    return network


def _scale_attention(module: nn.MultiheadAttention) -> None:
    """Scales the matrices of an attention that is called as one operator by their inputs, which are normalised."""
    projections = (module.in_proj_weight, module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    for weight in (*projections, module.out_proj.weight):
        if weight is not None:
            weight.mul_(weight.shape[1] ** -0.5)


def _settle(network: nn.Module) -> None:
    """One forward pass that scales matrices (as Mishkin and Matas, 2016, do) and draws statistics, layer by layer."""

    def scale(module: nn.Module, _: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
        if id(module.weight) in seen:
            return output
        seen.add(id(module.weight))
        axis = -1 if isinstance(module, nn.Linear) else 1
        signal = output.transpose(axis, -1).flatten(0, -2).var(0).mean().sqrt()
        factor = 1 / max(float(signal), 0.03 * float(output.std()), 1e-6)
        module.weight.mul_(factor)
        if module.bias is None:
            return output * factor
        bias = module.bias if axis == -1 else module.bias.reshape(-1, *[1] * (output.ndim - 2))
        return (output - bias) * factor + bias

    def draw(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        variance, mean = torch.var_mean(inputs[0], [0, *range(2, inputs[0].ndim)])
        module.running_mean.copy_(mean + variance.sqrt() * torch.empty_like(mean).uniform_(-1, 1))
        module.running_var.copy_(variance.clamp(min=0.01) * torch.empty_like(mean).uniform_(0.5, 1.5))

    seen: set[int] = set()
    hooks = [m.register_forward_hook(scale) for m in network.modules() if isinstance(m, _MATRICES)]
    hooks += [m.register_forward_pre_hook(draw) for m in network.modules() if isinstance(m, _STATISTICS)]
    side = input_side(network)
    network(torch.cat([picture(side) for _ in range(4)]))
    for hook in hooks:
        hook.remove()


def input_side(network: nn.Module) -> int:
    """Side of the images that a network was made for, in pixels."""
    config = getattr(network, "default_cfg", None) or {}
    return int((config.get("input_size") or (3, 224, 224))[-1])


def picture(side: int) -> torch.Tensor:
    """A random image ``[1, 3, side, side]`` with colours, shades and noise, so that pooling does not even it out."""
    shades = torch.nn.functional.interpolate(torch.randn(1, 3, 4, 4), size=(side, side), mode="bilinear")
    return torch.randn(1, 3, 1, 1) + shades + 0.5 * torch.randn(1, 3, side, side)
