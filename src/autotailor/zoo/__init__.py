"""Networks of our own: two small enough to be trained on the embedded default data, three of the paper's.

They are plain ``nn.Module`` classes: nothing in them knows of autotailor, as a user's own network would not.
"""

from autotailor.zoo.elasticvit import ElasticViT, elasticvit
from autotailor.zoo.mobilenet_digits import MobileNetDigits, mobilenet_digits
from autotailor.zoo.once_for_all import MobileNetV3OFA, ProxylessNASOFA, mobilenetv3_ofa, proxylessnas
from autotailor.zoo.resnet_digits import ResNetDigits, resnet_digits

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
]
