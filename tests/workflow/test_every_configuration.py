"""Every network of conf/model on every device of conf/device is planned by real Snakemake."""

import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from forked_snakemake import Snakemake
from stages import STAGES

ROOT = Path(__file__).parents[2]
MODELS, DEVICES = (
    sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml")) for group in ("model", "device")
)
EVERY = list(itertools.product(MODELS, DEVICES))
FEW = {*zip(itertools.cycle(MODELS), DEVICES), *zip(MODELS, itertools.cycle(DEVICES))}  # each at least once
RULES = set(STAGES) - {"pretrain"}  # some of conf/model bring weights of their own
ON_DEVICE = {"enumerate", "profile", "validate", "confirm"}


@pytest.fixture(scope="module")
def snakemake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snakemake]:
    """The repository, working in a directory with as many classes of pictures as ImageNet has."""
    directory = tmp_path_factory.mktemp("every")
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "JPEG")
    for part, number in itertools.product(("train", "val"), range(1000)):
        folder = directory / "data" / "imagenet" / part / f"n{number:04d}"
        folder.mkdir(parents=True)
        for name in ("a.JPEG", "b.JPEG"):
            (folder / name).write_bytes(picture.getvalue())
    with Snakemake(ROOT, tmp_path_factory.mktemp("said")) as run:
        run.always = ("--directory", str(directory))
        yield run


@pytest.mark.parametrize(
    ("model", "device"),
    [
        pytest.param(*pair, id="-".join(pair), marks=() if pair in FEW else (pytest.mark.sweep,))
        for pair in EVERY
    ],
)  # fmt: skip
def test_every_configuration_is_planned(snakemake: Snakemake, model: str, device: str) -> None:
    done = snakemake("-n", "--quiet", "rules", config=[f"model={model}", f"device={device}"])
    assert done.code == 0, done.said
    planned = {rule for rule, _ in re.findall(r"^(\w+)\s+(\d+)$", done.said, re.MULTILINE)}
    is_trained_here = "weights: pretrain" in (ROOT / "conf" / "model" / f"{model}.yaml").read_text()
    assert ("pretrain" in planned) == is_trained_here == ("moments" not in planned)
    if "cost:" in (ROOT / "conf" / "device" / f"{device}.yaml").read_text():
        assert planned >= RULES - ON_DEVICE
        assert not planned & ON_DEVICE
    else:
        assert planned >= RULES
