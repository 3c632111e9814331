"""What the jobs of each rule get where they are computed, from conf/cluster."""

# A job of a cluster gets the cores that it asks for, however many the machine has that submits it.
MANY = 1_000_000
MEASURING = ("profile", "validate", "confirm", "measure", "compare")


def load_cluster():
    """The section cluster; an invalid one ends the run with a message before any rule."""
    try:
        found = configuration.Cluster.from_section(CLUSTER_SECTION)
        for rule in configuration.COMPUTED_WITH:
            found.resources(configuration.Job.of(rule, CONFIG))
        return found
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")


CLUSTER = load_cluster()
IS_LOCAL = CLUSTER.name == "local"


def measuring_threads():
    """Measuring on this machine takes all its cores; on a cluster's node it takes those of the device and one more."""
    if CONFIG["device"].get("transport") != "local":
        return 1
    if not IS_LOCAL:
        return CONFIG["device"]["threads"] + 1
    return workflow.cores or os.cpu_count()


MEASURING_THREADS = measuring_threads()
if not IS_LOCAL and workflow.is_main_process:
    workflow.global_resources["_cores"] = MANY


def licence_of(device):
    """The licence that a job holds while it measures on a device."""
    return f"device_{device}"


def job_of(rule):
    """What the cluster has to know of the jobs of a rule."""
    measures = rule in MEASURING and COST.is_measured
    return configuration.Job.of(rule, CONFIG, licence_of(DEVICE) if measures else None)


def cores(rule, computes_with=1):
    """The threads of a rule: what the cluster's file says, else what the rule computes with."""
    return CLUSTER.need(rule).cpus or computes_with


def on_cluster(rule):
    """The resources of a rule's jobs, more with each attempt."""
    job = job_of(rule)

    def resource(name):
        return lambda wildcards, attempt: CLUSTER.resources(job, DEVICE, attempt)[name]

    return {name: resource(name) for name in CLUSTER.resources(job, DEVICE)}


def ask_cluster():
    """Ends the run before its first rule if the cluster cannot take its jobs."""
    if workflow.local_exec and not IS_LOCAL:
        sys.exit(
            f"autotailor: cluster={CLUSTER.name} is for jobs that a cluster runs, and this run would start them on this "
            "machine; add --profile profiles/slurm, or leave cluster=... out"
        )
    jobs = workflow.dag.needrun_jobs()
    if CLUSTER.licences and any(
        f"device_{DEVICE}" in job.resources.keys() for job in jobs
    ):
        try:
            configuration.check_licences([licence_of(DEVICE)])
        except AutoTailorError as error:
            sys.exit(f"autotailor: {error}")
