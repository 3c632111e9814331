"""What the jobs of each rule get where they are computed, from conf/cluster."""

# A job of a cluster gets the cores that it asks for, however many the machine has that submits it.
MANY = 1_000_000


def load_cluster():
    """The section cluster; an invalid one ends the run with a message before any rule."""
    try:
        found = configuration.Cluster.from_section(MATRIX.cluster)
        for model in MODELS:
            for name in STAGES:
                found.resources(configuration.Job.of(name, of_model(model)))
        return found
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


CLUSTER = load_cluster()
IS_LOCAL = CLUSTER.name == "local"
if not IS_LOCAL and workflow.is_main_process:
    workflow.global_resources["_cores"] = MANY


def measuring_threads(wildcards):
    """Measuring on this machine takes all its cores; on a cluster's node it takes those of the device and one more.

    Measuring on a remote device leaves the cores to other rules.
    """
    device = settings(wildcards)["device"]
    if device.get("transport") != "local":
        return 1
    if not IS_LOCAL:
        return device["threads"] + 1
    return workflow.cores or os.cpu_count()


def confirming_threads(wildcards):
    """Threads of a rule that both measures latencies and evaluates SubNets side by side."""
    return max(measuring_threads(wildcards), sharing_threads(wildcards))


def licence_of(device):
    """The licence that a job holds while it measures on a device."""
    return f"device_{device}"


def cores(rule, computes_with=1):
    """The threads of a rule: what the cluster's file says, else what the rule computes with."""
    return CLUSTER.need(rule).cpus or computes_with


@functools.cache
def resources_of(rule, pair, attempt=1):
    """The resources of a rule's job for a pair, more with each attempt."""
    measures = STAGES[rule].measures and pair.device in MEASURED
    licence = licence_of(pair.device) if measures else None
    job = configuration.Job.of(rule, MATRIX.configuration(pair), licence)
    return CLUSTER.resources(job, pair.device, attempt)


def on_cluster(rule):
    """The resources of a rule's jobs. A resource that only other pairs need is None, which Snakemake leaves out."""

    def resource(name):
        def value(wildcards, attempt):
            return resources_of(rule, pair_of(wildcards), attempt).get(name)

        return value

    names = {name: None for pair in MATRIX.pairs for name in resources_of(rule, pair)}
    return {name: resource(name) for name in names}


def ask_cluster():
    """Ends the run before its first rule if the cluster cannot take its jobs."""
    if workflow.local_exec and not IS_LOCAL:
        sys.exit(
            f"autotailor: cluster={CLUSTER.name} is for jobs that a cluster runs, and this run would start them on this "
            "machine; add --profile profiles/slurm, or leave cluster=... out"
        )
    jobs = list(workflow.dag.needrun_jobs())
    used = [
        device for device in MEASURED if any(measures_on(job, device) for job in jobs)
    ]
    if CLUSTER.licences and used:
        try:
            configuration.check_licences([licence_of(device) for device in used])
        except AutoTailorError as error:
            sys.exit(f"autotailor: {error}")
