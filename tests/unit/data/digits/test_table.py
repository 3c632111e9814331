"""The table of handwritten digits is read as scikit-learn reads it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from autotailor import data
from autotailor.data.digits import table


def test_images_and_labels_are_those_of_scikit_learn() -> None:
    images, labels = table.digits()
    known = load_digits()
    assert np.array_equal(images, known.images)
    assert np.array_equal(labels, known.target)


def test_without_scikit_learn_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "find_spec", lambda name: None)
    for use in (data.fingerprint, data.load):
        with pytest.raises(data.DataError, match="pip install scikit-learn"):
            use({"name": "digits"})
