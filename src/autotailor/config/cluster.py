"""What the jobs of a run get where they are computed: the section ``cluster`` of the configuration.

A rule of Snakemake asks for resources by name, and each executor translates the names: ``mem_mb``, ``runtime`` in
minutes, ``gpu``, ``nodes``, and for Slurm ``gres``, ``tasks`` and ``slurm_extra``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from autotailor.compute.launch import Processes
from autotailor.config.names import ConfigError
from autotailor.sections import Section
from autotailor.stages import STAGES
from autotailor.values import Bound, Flag, Natural, OneOf, Positive, UnfitError

Resources = dict[str, int | str]
OWN_NAMES = {"mem_mb": "mem_mb", "runtime": "minutes", "gpu": "gpus", "threads": "cpus", "nodes": "the key nodes"}
"""Resources of Snakemake that have a key of their own, and that key."""

ALONE = Processes()


class Need(Section, of="cluster.each", error=ConfigError):
    """What a job gets; None leaves the choice to the rule, or to the cluster.

    Attributes:
        cpus: cores on each node. Null takes as many as the rule computes with.
        mem_mb: memory on each node in MB. Null asks for none.
        minutes: minutes until the cluster ends the job. Null asks for none.
        gpus: GPUs on each node. Null takes one for each process whose ``accelerator`` is ``cuda``, else none.
        resources: further resources of Snakemake by name, for Slurm such as ``slurm_partition``, ``slurm_account``,
            ``qos``, ``constraint``, ``gpu_model`` and ``slurm_extra`` (options of sbatch).
    """

    cpus: Positive | None = None
    mem_mb: Positive | None = None
    minutes: Positive | None = None
    gpus: Natural | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_resources(self.resources, "resources")

    def over(self, other: Need) -> Need:
        """This need, with what it leaves open taken from another one."""
        mine = {key: getattr(self, key) for key in ("cpus", "mem_mb", "minutes", "gpus")}
        chosen = {key: getattr(other, key) if value is None else value for key, value in mine.items()}
        return Need(**chosen, resources={**other.resources, **self.resources})


def check_resources(resources: Mapping[str, Any], where: str) -> None:
    """Raises UnfitError unless each is a number or a text, and none has a key of its own."""
    for name, value in resources.items():
        if name in OWN_NAMES:
            raise UnfitError(f"{where}.{name}", f"{OWN_NAMES[name]} says it; leave it out here")
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise UnfitError(f"{where}.{name}", f"expected an integer or a text, not {value!r}")


class Limit(Section, of="cluster.limit", error=ConfigError):
    """The most that an attempt of a job asks for; None: no limit.

    Attributes:
        mem_mb: memory on each node in MB.
        minutes: time in minutes.
    """

    mem_mb: Positive | None = None
    minutes: Positive | None = None


@dataclass(frozen=True)
class Job:
    """What a cluster has to know of one job of a rule.

    Attributes:
        rule: its name.
        processes: that train together; one for other rules, with the accelerator that they compute on.
        licence: name of the licence of the device that the job measures on; None where it measures on none.
        fills_node: whether the job measures on the node that runs it.
    """

    rule: str
    processes: Processes = ALONE
    licence: str | None = None
    fills_node: bool = False

    @classmethod
    def of(cls, rule: str, config: Mapping[str, Any], licence: str | None = None) -> Job:
        """The job of a rule under a composed configuration."""
        section: Mapping[str, Any] = config
        stage = STAGES[rule]
        for key in stage.accelerator or ():
            section = section[key] or {}
        accelerator = "cpu" if stage.accelerator is None else str(section.get("accelerator", "cpu"))
        processes = Processes.of(section) if stage.together else Processes(accelerator=accelerator)
        return cls(rule, processes, licence, licence is not None and config["device"].get("transport") == "local")


class Cluster(Section, of="cluster", error=ConfigError):
    """The section ``cluster``.

    Attributes:
        name: name of the file.
        licences: a job that measures on a device holds the licence ``device_NAME`` of Slurm, which only one job can
            hold. The run asks for it before its first rule.
        exclusive: a job that measures on the node that runs it (``device.transport`` is ``local``) has this node for
            itself.
        growth: factor of memory and minutes from each attempt of a job to the next one.
        limit: the most that an attempt asks for.
        each: what every job gets.
        rules: the keys of ``each`` for the jobs of single rules, for instance ``{finetune: {mem_mb: 64000, gpus: 4}}``.
        devices: further resources of the jobs that measure on a device, for instance ``{android: {slurm_extra:
            "--nodelist=lab1"}}`` where the device hangs on one node.
    """

    name: str
    licences: Flag = False
    exclusive: Flag = False
    growth: Annotated[float, Bound(ge=1)] = 2.0
    limit: Limit = field(default_factory=Limit)
    each: Need = field(default_factory=Need)
    rules: Mapping[Annotated[str, OneOf(*STAGES)], Need] = field(default_factory=dict)
    devices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for device, resources in self.devices.items():
            check_resources(resources, f"devices.{device}")

    def need(self, rule: str) -> Need:
        """What the first attempt of a rule's job gets."""
        return self.rules.get(rule, Need()).over(self.each)

    def resources(self, job: Job, device: str | None = None, attempt: int = 1) -> Resources:
        """The resources of Snakemake that a job asks for.

        Args:
            job: the job.
            device: the name by which ``devices`` knows what the job measures on.
            attempt: how often the job has been started, this time included; each attempt gets more than the last one.
        """
        need = self.need(job.rule)
        resources: Resources = dict(need.resources)
        resources |= self.devices.get(device or "", {}) if job.licence else {}
        growing = {"mem_mb": (need.mem_mb, self.limit.mem_mb), "runtime": (need.minutes, self.limit.minutes)}
        for name, (first, limit) in growing.items():
            if first is not None:
                resources[name] = _grown(first, self.growth, attempt, limit)
        resources |= _on_nodes(job.processes, self._gpus(job, need), resources.pop("gpu_model", None))
        if options := self._options(job, device):
            resources["slurm_extra"] = " ".join(options)
        return resources

    def _gpus(self, job: Job, need: Need) -> int:
        """GPUs on each node: where nobody says it, one for each process that has to compute on CUDA."""
        team = job.processes
        needed = team.each if team.accelerator.startswith("cuda") else 0
        if need.gpus is not None and need.gpus < needed:
            raise ConfigError(
                f"cluster: {job.rule} computes in {team.each} processes with accelerator {team.accelerator}, and "
                f"gets {need.gpus} GPUs on each node; set cluster.rules.{job.rule}.gpus to {needed}, or to null"
            )
        return needed if need.gpus is None else need.gpus

    def _options(self, job: Job, device: str | None) -> list[str]:
        """Options of ``sbatch`` that no other resource stands for."""
        named = [self.need(job.rule).resources, self.devices.get(device or "", {}) if job.licence else {}]
        options = [str(resources["slurm_extra"]) for resources in named if resources.get("slurm_extra")]
        if job.licence and self.licences:
            options.append(f"--licenses={job.licence}:1")
        if job.fills_node and self.exclusive:
            options.append("--exclusive")
        return options


def _grown(first: int, growth: float, attempt: int, limit: int | None) -> int:
    """What an attempt gets: more each time, and not more than a limit, unless the first attempt had more already."""
    grown = round(first * growth ** (attempt - 1))
    return grown if limit is None else max(first, min(grown, limit))


def _on_nodes(processes: Processes, gpus: int, model: int | str | None) -> Resources:
    """How a job is spread over nodes.

    The plugin for Slurm asks for ``gpu`` as a number over all nodes and for ``gres`` as a number on each node. A job
    without GPUs needs as many tasks as nodes, because Slurm gives one task one node.
    """
    if processes.nodes == 1:
        named: Resources = {"gpu_model": model} if model else {}
        return {"nodes": 1, "gpu": gpus, **named} if gpus else {}
    if gpus:
        return {"nodes": processes.nodes, "gres": ":".join(map(str, filter(None, ("gpu", model, gpus))))}
    return {"nodes": processes.nodes, "tasks": processes.nodes}
