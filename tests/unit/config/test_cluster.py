"""What the jobs of each rule ask of a cluster."""

from pathlib import Path
from typing import Any

import pytest

from autotailor import config, stages
from autotailor.compute.launch import Processes
from autotailor.config import Cluster, ConfigError, Job
from stages import STAGES

ROOT = Path(__file__).parents[3]
CONF = ROOT / "conf"
SLURM = Cluster("mine", licences=True, exclusive=True)


def cluster(**section: Any) -> Cluster:
    return Cluster.from_section({"name": "mine", **section})


@pytest.mark.parametrize("name", config.options(CONF, "cluster"))
def test_every_file_of_the_group_is_read_and_of_the_schema(name: str) -> None:
    composed = config.compose(CONF, "resnet_digits", "host", cluster=name)
    config.validate(composed)
    assert Cluster.from_section(composed["cluster"]).name == name


def test_the_file_of_slurm_names_every_rule_and_the_schema_names_no_other() -> None:
    named = config.compose(CONF, "resnet_digits", "host", cluster="slurm")["cluster"]["rules"]
    assert set(named) == set(stages.STAGES)


def test_a_file_of_the_group_is_chosen_by_config_and_not_by_an_override() -> None:
    assert config.compose(CONF, "resnet_digits", "host")["cluster"]["name"] == "local"
    with pytest.raises(ConfigError, match="choose it with --config cluster="):
        config.compose(CONF, "resnet_digits", "host", ["cluster=slurm"])
    with pytest.raises(ConfigError, match=r"unknown cluster 'slrum'. Did you mean 'slurm'"):
        config.compose(CONF, "resnet_digits", "host", cluster="slrum")


def test_on_this_machine_a_job_asks_for_nothing() -> None:
    composed = config.compose(CONF, "resnet_digits", "host")
    local = Cluster.from_section(composed["cluster"])
    jobs = [Job.of(rule, composed, "device_host") for rule in STAGES]
    assert [job.rule for job in jobs if local.resources(job, "host")] == []


def test_a_rule_takes_what_it_does_not_name_from_every_job() -> None:
    found = cluster(
        each={"mem_mb": 4000, "minutes": 60, "resources": {"slurm_partition": "all", "qos": "long"}},
        rules={"finetune": {"mem_mb": 16000, "resources": {"slurm_partition": "gpu"}}},
    )
    assert found.resources(Job("finetune")) == {
        "mem_mb": 16000,
        "runtime": 60,
        "slurm_partition": "gpu",
        "qos": "long",
    }
    assert found.resources(Job("compile"))["mem_mb"] == 4000


def test_each_attempt_gets_more_up_to_a_limit() -> None:
    found = cluster(growth=1.5, limit={"mem_mb": 3000}, each={"mem_mb": 2000, "minutes": 10, "cpus": 4})
    asked = [found.resources(Job("finetune"), attempt=attempt) for attempt in (1, 2, 3)]
    assert [job["mem_mb"] for job in asked] == [2000, 3000, 3000]
    assert [job["runtime"] for job in asked] == [10, 15, 22]
    above = cluster(limit={"mem_mb": 1000}, each={"mem_mb": 2000})
    assert above.resources(Job("finetune"), attempt=2)["mem_mb"] == 2000


def test_a_job_that_measures_holds_the_licence_of_its_device_and_one_on_its_own_node_shares_the_node_with_none() -> (
    None
):
    composed = {device: config.compose(CONF, "resnet_digits", device) for device in ("host", "android")}
    here = Job.of("profile", composed["host"], "device_host")
    away = Job.of("profile", composed["android"], "device_android")
    assert SLURM.resources(here, "host") == {"slurm_extra": "--licenses=device_host:1 --exclusive"}
    assert SLURM.resources(away, "android") == {"slurm_extra": "--licenses=device_android:1"}
    assert SLURM.resources(Job.of("finetune", composed["host"]), "host") == {}


def test_the_jobs_of_a_device_get_further_resources_beside_those_of_their_rule() -> None:
    found = cluster(
        licences=True,
        each={"resources": {"slurm_extra": "--mail-type=FAIL"}},
        devices={"orin": {"slurm_extra": "--nodelist=lab1", "slurm_partition": "boards"}},
    )
    assert found.resources(Job("profile", licence="device_orin"), "orin") == {
        "slurm_partition": "boards",
        "slurm_extra": "--mail-type=FAIL --nodelist=lab1 --licenses=device_orin:1",
    }
    assert found.resources(Job("compile"), "orin") == {"slurm_extra": "--mail-type=FAIL"}


@pytest.mark.parametrize(
    ("processes", "gpus", "asked"),
    [
        (Processes(4, 1, "cuda"), None, {"nodes": 1, "gpu": 4}),
        (Processes(4, 2, "cuda"), None, {"nodes": 2, "gres": "gpu:4"}),
        (Processes(2, 2, "auto"), 2, {"nodes": 2, "gres": "gpu:2"}),
        (Processes(2, 2, "cpu"), None, {"nodes": 2, "tasks": 2}),
        (Processes(1, 1, "cuda:1"), 2, {"nodes": 1, "gpu": 2}),
        (Processes(1, 1, "auto"), None, {}),
        (Processes(1, 1, "cuda"), None, {"nodes": 1, "gpu": 1}),
    ],
)
def test_gpus_and_nodes_follow_the_processes_that_train_together(
    processes: Processes, gpus: int | None, asked: dict[str, Any]
) -> None:
    assert cluster(rules={"finetune": {"gpus": gpus}}).resources(Job("finetune", processes)) == asked


def test_the_model_of_a_gpu_is_asked_for_where_a_gpu_is() -> None:
    found = cluster(each={"resources": {"gpu_model": "a100"}})
    assert found.resources(Job("finetune", Processes(2, 1, "cuda"))) == {"nodes": 1, "gpu": 2, "gpu_model": "a100"}
    assert found.resources(Job("finetune", Processes(2, 2, "cuda"))) == {"nodes": 2, "gres": "gpu:a100:2"}
    assert found.resources(Job("compile")) == {}


def test_the_accelerator_of_a_rule_is_that_of_its_section() -> None:
    composed = config.compose(CONF, "resnet_digits", "host", ["sensitivity.accelerator=cuda", "finetune.nodes=2"])
    rules = {rule: Job.of(rule, composed).processes for rule in (*STAGES, "polish")}
    assert [rule for rule, asked in rules.items() if asked.accelerator == "cuda"] == [
        "sensitivity",
        "validate_accuracy",
        "search",
        "confirm",
    ]
    assert [rule for rule, asked in rules.items() if asked.nodes == 2] == ["finetune"]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"each": {"memory": 3}}, r"cluster.each: unknown keys \['memory'\]"),
        ({"rules": {"finetune": {"minutes": 0}}}, "cluster.rules.finetune.minutes: expected an integer >= 1, not 0"),
        ({"limit": {"mem_mb": "much"}}, "cluster.limit.mem_mb: expected an integer"),
        ({"growth": 0.5}, "cluster.growth: expected a number >= 1, not"),
        ({"licences": "yes"}, "cluster.licences: expected true or false, not 'yes'"),
        ({"each": {"resources": {"mem_mb": 3}}}, "cluster.each.resources.mem_mb: mem_mb says it; leave it out"),
        ({"devices": {"orin": {"qos": [1]}}}, r"cluster.devices.orin.qos: expected an integer or a text, not \[1\]"),
        ({"devices": {"orin": "lab1"}}, "cluster.devices.orin: expected a mapping"),
        ({"rules": ["finetune"]}, "cluster.rules: expected a mapping"),
        ({"rules": {"polsh": {}}}, "cluster.rules: unknown key 'polsh'; known are pretrain, .*mean 'polish'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_by_name(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster(**section)


def test_fewer_gpus_than_processes_on_cuda_are_refused() -> None:
    found = cluster(rules={"finetune": {"gpus": 1}})
    with pytest.raises(ConfigError, match=r"2 processes with accelerator cuda, and gets 1 GPUs .*gpus to 2"):
        found.resources(Job("finetune", Processes(2, 1, "cuda")))
