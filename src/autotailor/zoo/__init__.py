"""Networks of this package: three small ones for the default data, and three of the paper.

They are plain ``nn.Module`` classes that know nothing of the compiler, like a user's own network.
"""

from autotailor.zoo.elasticvit import ElasticViT, elasticvit
from autotailor.zoo.mobilenet_digits import MobileNetDigits, mobilenet_digits
from autotailor.zoo.once_for_all import MobileNetV3OFA, ProxylessNASOFA, mobilenetv3_ofa, proxylessnas
from autotailor.zoo.resnet_digits import ResNetDigits, resnet_digits, trained_resnet_digits
from autotailor.zoo.vit_digits import vit_digits

__all__ = [
    "ElasticViT",
    "MobileNetDigits",
    "MobileNetV3OFA",
    "ProxylessNASOFA",
    "ResNetDigits",
    "elasticvit",
    "mobilenet_digits",
    "mobilenetv3_ofa",
    "proxylessnas",
    "resnet_digits",
    "trained_resnet_digits",
    "vit_digits",
]
