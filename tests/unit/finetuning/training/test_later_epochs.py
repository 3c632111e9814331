"""The epochs that polishing reads are others than those of the SuperNet's training."""

import torch

import tiny_data
from autotailor.finetuning.training.later_epochs import LaterEpochs


def test_an_epoch_may_end_before_its_time() -> None:
    stream = tiny_data.TinyStream()
    part, whole = LaterEpochs(stream, 7, 32), LaterEpochs(stream, 7)
    assert (len(part), part.num_batches(16)) == (32, 2)
    for start in (0, 1):
        batches = list(part.batches(1, 16, start))
        assert len(batches) == len(list(part.shards(1, 16, start))) == 2 - start
        assert torch.equal(batches[-1][0], list(whole.batches(1, 16))[1][0])
    assert len(LaterEpochs(stream, 7, 100)) == 48


def test_an_epoch_is_a_later_one_of_the_stream() -> None:
    stream = tiny_data.TinyStream()
    later = LaterEpochs(stream, 7)
    assert len(later) == len(stream)
    assert later.num_batches(16) == stream.num_batches(16)
    ours, theirs = list(later.batches(2, 16, start=1)), list(stream.batches(9, 16, start=1))
    assert len(ours) == len(theirs) == 2
    for (images, labels), (same_images, same_labels) in zip(ours, theirs, strict=True):
        assert torch.equal(images, same_images)
        assert torch.equal(labels, same_labels)
    assert not torch.equal(ours[0][0], next(iter(stream.batches(2, 16, start=1)))[0])
