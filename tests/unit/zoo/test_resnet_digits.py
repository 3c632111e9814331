"""The weights of the package belong to the network that ``make run`` tailors, and are those of a trained one."""

from pathlib import Path

from autotailor import config, data
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.zoo import trained_resnet_digits

CONF = Path(__file__).parents[3] / "conf"


def test_the_weights_of_the_package_read_the_default_digits() -> None:
    section = config.compose(CONF, "trained_digits", "macs", ["data.evaluation_images=1000"])["data"]
    assert percent(correctness(trained_resnet_digits().eval(), data.load(section).test)) > 93
