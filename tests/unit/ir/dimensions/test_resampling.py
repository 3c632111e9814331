"""Weights that follow the image are interpolated as PyTorch interpolates."""

import torch
import torch.nn.functional as F

import autotailor
import networks


def test_position_embeddings_are_interpolated_around_the_token(transformer_net: autotailor.SuperNet) -> None:
    original = networks.make("transformer").positions.detach()
    subnet = autotailor.SubNet.from_assignment(transformer_net.space, {"resolution": 16})
    sliced = [w for w in transformer_net.slice(subnet).weights.values() if w.shape == (1, 5, 24)]
    grid = original[:, 1:].reshape(1, 4, 4, 24).permute(0, 3, 1, 2)
    expected = F.interpolate(grid, size=(2, 2), mode="bicubic", antialias=True, align_corners=False)
    expected = torch.cat([original[:, :1], expected.flatten(2).transpose(1, 2)], 1)
    assert len(sliced) == 1
    torch.testing.assert_close(torch.from_numpy(sliced[0]), expected, atol=1e-5, rtol=1e-5)
