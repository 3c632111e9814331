"""The accuracy that polished SubNets had before."""

from dataclasses import replace

import numpy as np
import torch

import autotailor
import tiny_data
from autotailor.accuracy import CalibrationConfig, calibrate
from autotailor.accuracy.calibration import resolution_of
from autotailor.data import resize
from autotailor.data.splits import TensorEvaluationSet
from autotailor.finetuning.polishing import Exported
from autotailor.measurement.inheritance import inheritance

CALIBRATION = CalibrationConfig(images=48, batch_size=24)


def test_inherited_accuracy_is_that_of_the_supernets_weights(resnet_net: autotailor.SuperNet) -> None:
    """Three of four labels are what the smallest SubNet answers with the SuperNet's weights."""
    splits, small = tiny_data.splits(), resnet_net.smallest()
    images, _ = next(iter(splits.test.batches(len(splits.test))))
    statistics = calibrate(resnet_net.module().eval(), small, splits, CALIBRATION)
    with torch.no_grad():
        said = resnet_net.build(small, statistics)(resize(images, resolution_of(small))).argmax(1).numpy()
    labels = np.where(np.arange(len(said)) % 4 == 0, (said + 1) % splits.num_classes, said)
    data = replace(splits, test=TensorEvaluationSet(images, labels, splits.test.groups))
    graph = resnet_net.slice(small)
    own = graph.with_weights({name: np.zeros_like(w) for name, w in graph.weights.items() if w.ndim == 4})
    table = inheritance(resnet_net, {"plain": Exported(small), "own": Exported(small, own)}, data, CALIBRATION)
    assert table.to_dict("list") == {
        "name": ["plain", "own"],
        "weights": ["inherited", "polished"],
        "accuracy_inherited": [75.0, 75.0],
    }
