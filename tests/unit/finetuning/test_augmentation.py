"""Augmented and mixed images in all kinds of training: the same bits again, and labels that are shares."""

import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import autotailor
import networks
import tiny_data
from autotailor import finetuning
from autotailor.accuracy import with_labels
from autotailor.data import DataSplits
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.mixing import mixing
from autotailor.finetuning import (
    FinetuneConfig,
    FinetuneResult,
    PretrainConfig,
    ScaledConfig,
    Teacher,
    TrainingError,
)
from autotailor.finetuning.loss import make_loss
from autotailor.finetuning.polishing import PolishConfig, Round, polish
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.steps import Step
from autotailor.task import find
from training import PRETRAIN, equal, fresh, weights

ALL = AugmentationConfig("randaugment", erasing=0.5, mixup=0.4, cutmix=1.0)


def test_an_interrupted_training_ends_in_the_same_bits_with_any_number_of_workers(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    finetuned: FinetuneResult,
    tmp_path: Path,
) -> None:
    config = replace(finetune_config, augmentation=ALL, checkpoint_seconds=0.0)
    whole = finetuning.finetune(plain_net, tiny, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(plain_net, tiny_data.splits(fail_at=(1, 1)), config, tmp_path / "killed")
    resumed = finetuning.finetune(plain_net, tiny, replace(config, workers=2), tmp_path / "killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert whole.history == resumed.history
    assert not equal(weights(whole.net), weights(finetuned.net))


@pytest.mark.parametrize(
    "part", [{"policy": "trivialaugment"}, {"erasing": 1.0}, {"mixup": 0.4}, {"cutmix": 1.0}], ids=str
)
def test_each_part_changes_the_training_and_not_the_calibration(
    part: dict[str, object],
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
) -> None:
    """Without epochs, statistics and accuracies are those of a training without augmentation."""
    config = replace(finetune_config, augmentation=AugmentationConfig(**part))  # type: ignore[arg-type]
    found = {}
    for epochs in (0, 1):
        for name, each in (("plain", finetune_config), ("changed", config)):
            found[name, epochs] = finetuning.finetune(
                plain_net, tiny, replace(each, epochs=epochs), tmp_path / f"{name}{epochs}"
            )
    assert equal(weights(found["plain", 0].net), weights(found["changed", 0].net))
    assert not equal(weights(found["plain", 1].net), weights(found["changed", 1].net))


def test_pretraining_takes_the_shares_of_classes(tiny: DataSplits, tmp_path: Path) -> None:
    config = replace(PRETRAIN, augmentation=ALL)
    whole = finetuning.pretrain(fresh(), tiny, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(1, 1)), config, tmp_path / "killed")
    resumed = finetuning.pretrain(fresh(), tiny, config, tmp_path / "killed")
    assert equal(whole.state_dict, resumed.state_dict)
    assert not equal(whole.state_dict, finetuning.pretrain(fresh(), tiny, PRETRAIN, tmp_path / "plain").state_dict)


def test_a_race_of_polishing_that_was_killed_ends_in_the_same_bits(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    subnet = resnet_net.smallest()
    contest = {"budget": [subnet]}, {subnet.id: 0.0}
    config = PolishConfig(
        rounds=(Round(1, 1),), batch_size=16, checkpoint_seconds=0.0, calibration=finetune_config.calibration
    )
    found = {}
    for name, augmentation in (("plain", AugmentationConfig()), ("whole", ALL), ("killed", ALL)):
        told = replace(config, augmentation=augmentation)
        if name == "killed":
            with pytest.raises(KeyboardInterrupt):
                polish(resnet_net, resnet_net, tiny_data.splits((10_000, 1)), *contest, told, tmp_path / name)
        polished, _ = polish(resnet_net, resnet_net, tiny, *contest, told, tmp_path / name)
        own = polished["budget"].weights
        assert own is not None
        found[name] = {key: torch.from_numpy(value) for key, value in own.items()}
    assert equal(found["whole"], found["killed"])
    assert not equal(found["whole"], found["plain"])


def test_a_scaled_network_is_trained_with_the_same_images(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, tmp_path: Path
) -> None:
    teacher = Teacher.largest_of(resnet_net, torch.device("cpu"))
    config = ScaledConfig(epochs=1, batch_size=16, lrs=(1e-3,))
    plain, changed = (
        finetuning.train_scaled(fresh, teacher, tiny, replace(config, augmentation=each), tmp_path / each.policy)
        for each in (AugmentationConfig(), ALL)
    )
    assert not equal(plain.state_dict, changed.state_dict)
    assert changed.metrics["loss"] > 0


class TestSteps:
    """What steps of training are given."""

    def seen(self, data: DataSplits, config: PretrainConfig, tmp_path: Path) -> list[Step]:
        network, seen = fresh(), list[Step]()

        def step(batch: Step) -> float:
            seen.append(batch)
            network(batch.images).sum().backward()
            return 1.0

        train(
            network,
            data.train,
            config,
            step,
            tmp_path / "x",
            "",
            "x",
            mix=mixing(data, config.augmentation, config.seed),
        )
        return seen

    def test_micro_batches_are_parts_of_the_mixed_batch(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(PRETRAIN, epochs=1, augmentation=AugmentationConfig(mixup=1.0))
        whole = self.seen(tiny, config, tmp_path / "whole")
        parts = self.seen(tiny, replace(config, micro_batch=5), tmp_path / "parts")
        assert len(parts) == 4 * len(whole) > 0
        assert all(part.labels.shape == (4, tiny_data.CLASSES) for part in parts)
        for name in ("images", "labels"):
            assert torch.equal(
                torch.cat([getattr(part, name) for part in parts]), torch.cat([getattr(each, name) for each in whole])
            )

    def test_the_number_of_the_step_goes_on_over_epochs(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(PRETRAIN, epochs=2, augmentation=AugmentationConfig(mixup=1.0))
        shares = [step.labels.max() for step in self.seen(tiny, config, tmp_path)]
        assert len({float(share) for share in shares}) == len(shares) == 6


class TestUnlabelled:
    def test_the_teacher_alone_teaches_what_it_says_of_mixed_images(self, tmp_path: Path) -> None:
        """A training with labels that do not count gives the same weights."""
        net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], name="resnet", resolution=32)
        config = FinetuneConfig(epochs=1, batch_size=16, lr=1e-3, augmentation=ALL, accept_chance=True)
        config = replace(config, distillation=replace(config.distillation, weight=1.0))
        labelled = finetuning.finetune(net, tiny_data.splits(), config, tmp_path / "labelled")
        data = with_labels(replace(tiny_data.splits(), labelled=False), net)
        alone = finetuning.finetune(net, data, config, tmp_path / "alone")
        assert equal(weights(labelled.net), weights(alone.net))


class TestLossOfTheUsers:
    @pytest.fixture(autouse=True)
    def _functions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        mine = types.ModuleType("losses_of_mine")
        vars(mine).update(
            shares=lambda logits, labels, teacher, config: functional.cross_entropy(logits, labels * 1.0),
            right=lambda logits, labels, teacher, config: logits[labels == teacher.argmax(1)].sum(),
            classes=lambda logits, labels, teacher, config: logits.gather(1, labels[:, None]).mean(),
        )
        monkeypatch.setitem(sys.modules, "losses_of_mine", mine)

    def test_it_gets_the_share_of_each_class(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
    ) -> None:
        config = replace(
            finetune_config, epochs=1, loss="losses_of_mine:shares", augmentation=AugmentationConfig(mixup=1)
        )
        assert finetuning.finetune(plain_net, tiny, config, tmp_path).metrics["loss"] > 0

    @pytest.mark.parametrize("name", ["right", "classes"])
    def test_one_that_takes_numbers_of_classes_only_is_refused_before_training(
        self, name: str, refused: Callable[..., None]
    ) -> None:
        loss = f"losses_of_mine:{name}"
        make_loss(FinetuneConfig(epochs=1, loss=loss), find("classification"), 5, independent=False)
        says = r"shares of classes, float32 \[b, classes\], because augmentation"
        refused(says, loss=loss, augmentation=AugmentationConfig(cutmix=1.0))

    def test_for_pictures_without_labels_it_is_tried_with_none(self) -> None:
        with pytest.raises(TrainingError, match="all -1, because the pictures have none"):
            make_loss(
                FinetuneConfig(epochs=1, loss="losses_of_mine:classes", augmentation=ALL),
                find("classification"),
                5,
                False,
                labelled=False,
            )
