"""Images of a data set as pictures of a report."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from autotailor.data.files.shown import as_pictures, in_base64
from tiny_data import splits


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_have_the_pixels_before_normalisation(channels: int) -> None:
    pixels = torch.randint(0, 256, (2, channels, 5, 4), generator=torch.Generator().manual_seed(0))
    data = replace(splits(), mean=(0.25,) * channels, std=(0.5,) * channels)
    pictures = as_pictures((pixels / 255 - 0.25) / 0.5, data)
    wanted = pixels.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()
    for picture, each in zip(pictures, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(picture), each)
        read = Image.open(io.BytesIO(base64.b64decode(in_base64(picture, "PNG"))))
        np.testing.assert_array_equal(np.asarray(read), each)
