"""Networks small enough to be trained from scratch on the embedded default data.

They are plain ``nn.Module`` classes: nothing in them knows of autotailor, as a user's own network would not.
"""

from autotailor.zoo.mobilenet_digits import MobileNetDigits, mobilenet_digits
from autotailor.zoo.resnet_digits import ResNetDigits, resnet_digits

__all__ = ["MobileNetDigits", "ResNetDigits", "mobilenet_digits", "resnet_digits"]
