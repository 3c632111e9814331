"""Names of the groups and files of ``conf``, and messages for names that do not exist.

A project of the user's needs only the files of ``conf`` that autotailor lacks or that differ from autotailor's. Behind
the folder of the user, autotailor's own folder is searched.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from autotailor.ir.errors import AutoTailorError
from autotailor.project import places


def search_path(conf_dir: Path) -> list[Path]:
    """The folders that hold the configuration: ``conf_dir``, and autotailor's own unless they are the same."""
    return [conf_dir] if conf_dir.resolve() == places.CONF.resolve() else [conf_dir, places.CONF]


def conf_folder(folder: Path | None = None) -> Path:
    """The folder of configuration files that is searched first.

    Args:
        folder: the folder that the user names; None takes ``conf`` of the current folder, or autotailor's own without.

    Raises:
        ConfigError: the named folder does not exist.
    """
    if folder is None:
        here = Path("conf")
        return here if here.is_dir() else places.CONF
    if not folder.is_dir():
        raise ConfigError(
            f"--conf {folder}: no such folder; leave it out to take conf in the current folder, or name one"
        )
    return folder


def files(conf_dir: Path) -> list[Path]:
    """Every file of the configuration, the user's and autotailor's, whether it is chosen or not.

    The link ``.#mine.yaml`` to nowhere, by which Emacs locks a file that is being changed, is none of them.
    """
    return sorted(path for folder in search_path(conf_dir) for path in folder.rglob("*.yaml") if path.is_file())


def find_file(conf_dir: Path, name: str) -> Path | None:
    """The first file of this name (``model/mine.yaml``) on the search path; None where there is none."""
    return next((path for folder in search_path(conf_dir) if (path := folder / name).is_file()), None)


def options(conf_dir: Path, group: str) -> list[str]:
    """Names of the files of one configuration group, for instance the known models."""
    paths = (path for folder in search_path(conf_dir) for path in (folder / group).glob("*.yaml"))
    return sorted({path.stem for path in paths if path.is_file()})


def groups(conf_dir: Path) -> list[str]:
    """Names of the configuration groups."""
    folders = [path for folder in search_path(conf_dir) if folder.is_dir() for path in folder.iterdir()]
    return sorted({path.name for path in folders if path.is_dir() and any(path.glob("*.yaml"))})


def check_option(conf_dir: Path, group: str, name: str) -> None:
    """Raises ConfigError unless the group has a file of this name."""
    names = options(conf_dir, group)
    if name not in names:
        folders = " and of ".join(str(folder / group) for folder in search_path(conf_dir) if (folder / group).is_dir())
        raise ConfigError(f"{unknown(group, name, name, names)} (the files of {folders})")
    if not _is_read_by_hydra(group, name):
        raise ConfigError(
            f"{group} {name!r}: Hydra, which reads the configuration, cannot use this as the name of a file; rename "
            f"{name}.yaml to letters from a to z, digits and any of . _ -, which are no number as a whole"
        )


def _is_read_by_hydra(group: str, name: str) -> bool:
    """Whether Hydra takes a name in an override for this name, and neither for a number nor for grammar of its own."""
    try:
        return bool(OverridesParser.create().parse_override(f"{group}={name}").value() == name)
    except HydraException:
        return False


def unknown(kind: str, shown: str, name: str, offered: Iterable[str]) -> str:
    """Message for an unknown name, with a list of the known ones."""
    names = sorted(offered)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {kind} {shown!r}.{hint} Known: {', '.join(names) or 'none'}"


class ConfigError(AutoTailorError):
    """The configuration names something that does not exist, or has an invalid value."""
