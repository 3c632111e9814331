from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotailor
import networks
from autotailor.exits.answers import ExitError
from autotailor.exits.chain import Chain
from autotailor.exits.files import check_splits, run_chain, segment_files, write_description, write_files
from autotailor.ir.supernet import SuperNet
from autotailor.profiling import exporting_runtime

LOGITS = {"confidence": "probability", "probabilities": False, "classes": list("abcde"), "guaranteed": None}


def pictures(network: Any, count: int = 4) -> Any:
    shape = network.graph.shapes[network.graph.input]
    return np.random.default_rng(1).normal(size=(count, *shape[1:])).astype(np.float32)


@pytest.fixture(scope="module")
def folder(net: SuperNet, headed: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The files of a network with two exits, and the network."""
    network = next(found for seed in range(9) if len((found := headed(net, "full", seed)).places) == 2)
    path = tmp_path_factory.mktemp("exits")
    write_files(network, ("image", "logits"), path, pictures(network), exporting_runtime(), 1e-4)
    exits = {place.after: {} for place in network.places}
    write_description(path, {**LOGITS, "exits": exits, "budgets": {"60 %": {"thresholds": dict.fromkeys(exits, 0.0)}}})
    return path, network


@pytest.mark.parametrize(("name", "kind"), [("resnet", "probe"), ("mobilenet", "full")])
def test_onnx_the_chain_and_ncnn_answer_as_pytorch(name: str, kind: str, headed: Any, tmp_path: Path) -> None:
    net = autotailor.compile(networks.make(name), resolution=32)
    network = headed(net, kind, 1)
    errors = write_files(network, net.names, tmp_path, pictures(network), exporting_runtime(), 1e-4)
    assert set(errors) == {"model.onnx", "segments", "ncnn"}
    assert len(segment_files(tmp_path)) == len(network.places) + 1


def test_a_file_that_answers_otherwise_is_refused(net: SuperNet, headed: Any, tmp_path: Path) -> None:
    with pytest.raises(ExitError, match=r"model.onnx \(.*differ from those in PyTorch"):
        write_files(headed(net, "probe", 0), net.names, tmp_path, pictures(headed(net, "probe", 0)), None, 1e-12)


def test_a_blob_that_several_layers_read_needs_a_split(folder: tuple[Path, Any]) -> None:
    param = (folder[0] / "model.ncnn.param").read_text()
    check_splits(param)
    assert "Split" in param
    with pytest.raises(ExitError, match="read in0 without a Split"):
        check_splits("7767517\n3 3\nInput in0 0 1 in0\nReLU a 1 1 in0 a\nReLU b 1 1 in0 b\n")


@pytest.mark.parametrize("runtime", ["onnxruntime", "ncnn"])
def test_a_picture_leaves_at_the_first_exit_that_is_sure(folder: tuple[Path, Any], runtime: str) -> None:
    path, network = folder
    images = pictures(network)
    answers = run_chain(path, images)
    first, second = (place.after for place in network.places)
    for thresholds, number in (({first: 0.0}, 0), ({first: None, second: 0.0}, 1), ({first: 1.1, second: None}, 2)):
        chain = Chain(path, runtime, thresholds)
        for row, image in enumerate(images):
            found = chain(image)
            assert found.exit == [first, second, "last"][number]
            np.testing.assert_allclose(found.outputs, answers[number][row], rtol=1e-3, atol=1e-4)
            shares = np.exp(found.outputs - found.outputs.max())
            assert found.confidence == pytest.approx(float(shares.max() / shares.sum()))
            assert (found.label, found.name) == (answers[number][row].argmax(), "abcde"[found.label])


def test_at_the_deadline_the_last_exit_that_is_done_answers(folder: tuple[Path, Any]) -> None:
    path, network = folder
    chain = Chain(path, thresholds={})
    image = pictures(network)[0]
    hurried, patient = chain(image, deadline=0.0), chain(image, deadline=60.0)
    assert (hurried.exit, hurried.in_time) == (network.places[0].after, False)
    assert (patient.exit, patient.in_time) == ("last", True)


def test_thresholds_of_a_budget_are_found_by_its_name(folder: tuple[Path, Any]) -> None:
    path, network = folder
    for name in ("60 %", "60%"):
        assert Chain(path, thresholds=name)(pictures(network)[0]).exit == network.places[0].after
    with pytest.raises(ExitError, match=r"there is no exit 'stage22'; there are block1"):
        Chain(path, thresholds={"stage22": 0.1})
    with pytest.raises(ExitError, match=r"no thresholds for 'guaranteed', but for 60 %"):
        Chain(path)
    with pytest.raises(ExitError, match=r"no exits.json; name a folder"):
        Chain(path / "elsewhere")
