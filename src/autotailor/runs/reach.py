"""Reaches the device of a finished run, of which the run's files hold no address, serial number and key."""

from collections.abc import Mapping

from autotailor import config, profiling
from autotailor.profiling import DeviceConfig, DeviceError, ProfilingError
from autotailor.profiling.table.same_device import check_same_device
from autotailor.runs.folder import RunError
from autotailor.runs.tables import RunTables

ACCESS = ("address", "serial", "key")
"""Keys of a device that a run's files do not hold (``autotailor.tracking.journal``)."""


def device_of(run: RunTables, access: Mapping[str, str] | None = None) -> DeviceConfig | None:
    """The device as the run has used it, with the way to reach it; None where the run had no device.

    Args:
        run: the finished run.
        access: ``address``, ``serial`` and ``key`` as in ``conf/device``. What is missing is taken from
            ``conf/device/DEVICE.yaml`` in the folder in which the run was started, or from autotailor's file of that
            name where that folder has a ``conf`` without such a file.

    Raises:
        ConfigError: the file of ``conf/device`` is invalid.
        RunError: ``access`` has another key, or the run had no device.
    """
    section = dict(run.configuration["device"])
    given = {key: value for key, value in (access or {}).items() if value is not None}
    if unknown := sorted(set(given) - set(ACCESS)):
        raise RunError(f"access to device {run.folder.device}: unknown {unknown}; known are {', '.join(ACCESS)}")
    if not run.cost.is_measured:
        if given:
            raise RunError(
                f"device={run.folder.device} counts {run.cost.title} and stands for no device; leave "
                f"{', '.join(given)} out"
            )
        return None
    conf = run.folder.root / "conf"
    named = conf.is_dir() and config.find_file(conf, f"device/{run.folder.device}.yaml")
    if section.get("transport") != "local" and named:
        current = config.compose(conf, None, run.folder.device)["device"]
        section |= {key: value for key, value in current.items() if key in ACCESS}
    return DeviceConfig.from_section(section | given)


def check_reachable(run: RunTables, device: DeviceConfig) -> None:
    """Refuses a device that cannot be reached, or that is not the one whose operators the run has measured.

    Raises:
        RunError: the reason, and that the export can do without the device.
    """
    try:
        profiling.check(device)
        with profiling.Session(device) as session:
            if run.lut is not None:
                check_same_device(run.lut, session.fingerprint, device.name)
    except (DeviceError, ProfilingError) as error:
        raise RunError(f"{error}. To export without measuring, add --no-measure (in Python: measure=False)") from error
