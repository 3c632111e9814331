"""``autotailor runtime status``, ``infer``, ``reload`` and ``stop``: ask a server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.commands import answer
from autotailor.commands.runtime.place import add_address, address_of, pool_folder, read_classes
from autotailor.commands.terminal import given_path, say, terminal
from autotailor.data.labels import CLASSIFICATION
from autotailor.ir.errors import AutoTailorError, printable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from autotailor.serving import Client, Reply


SHOWN = 8
"""Most numbers of an answer that are printed for people."""


class PictureError(AutoTailorError):
    """A file holds no picture that can be sent."""


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``status``, ``infer``, ``reload`` and ``stop``."""
    status = actions.add_parser("status", help="what a server runs, and what it knows of the load")
    add_address(status, "--at", "where the server listens")
    shown = status.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object")
    shown.add_argument("--metrics", action="store_true", help="print counters and gauges in Prometheus' text format")
    status.set_defaults(run=run_status)
    infer = actions.add_parser(
        "infer",
        help="run pictures on a server",
        description="Sends pictures to a server, and prints the class, or the numbers of a network that returns "
        "numbers, the latency and the member that ran for each.",
    )
    infer.add_argument(
        "pictures",
        nargs="+",
        type=given_path,
        metavar="PICTURE.npy",
        help="array [C, H, W] of NumPy, normalised as for training",
    )
    add_address(infer, "--at", "where the server listens")
    infer.add_argument(
        "--deadline-ms", type=float, default=0.0, metavar="MS", help="of each inference; 0: the server's"
    )
    infer.add_argument(
        "--pool",
        type=given_path,
        metavar="POOL",
        help="folder of the server's pool, or of its run: answers then have the names of the classes",
    )
    infer.add_argument("--json", action="store_true", help="print one JSON object")
    infer.set_defaults(run=run_infer)
    reload = actions.add_parser(
        "reload",
        help="let a server open its pool anew",
        description="Lets a server open the folder of its pool again, after another pool of the same model has taken "
        "that place. Requests are answered meanwhile, with the old pool; where the new one cannot be used, the old one "
        "goes on.",
    )
    add_address(reload, "--at", "where the server listens")
    reload.set_defaults(run=run_reload)
    stop = actions.add_parser("stop", help="stop a server that listens on a Unix socket")
    add_address(stop, "--at", "where the server listens")
    stop.set_defaults(run=run_stop)


def run_status(options: argparse.Namespace) -> None:
    """Prints what a server runs; raises PoolError where none answers."""
    from autotailor.serving import Client

    with Client(address_of(options)) as client:
        if options.metrics:
            say(client.metrics(), end="")
        elif options.json:
            answer.print_json(client.status())
        else:
            _show(client.status())


def run_infer(options: argparse.Namespace) -> None:
    """Prints what a server answers.

    Raises:
        PoolError: no server answers, or ``--pool`` names none, or another than the server's.
        PictureError: a file holds no picture.
    """
    from autotailor.serving import Client, Flag, PoolError

    pictures = [read_picture(path) for path in options.pictures]
    classes = read_classes(pool_folder(options.pool)) if options.pool else ()
    answers: list[dict[str, Any]] = []
    with Client(address_of(options)) as client:
        members = _members(client)
        classifies = _classifies(client.status())
        for path, picture in zip(options.pictures, pictures, strict=True):
            try:
                reply, members = _answer(client, picture, options.deadline_ms, members)
            except PoolError as error:
                raise PoolError(f"{path}: {error}") from error
            if classes and len(classes) != len(reply.outputs):
                raise PoolError(
                    f"--pool {options.pool}: its networks have {len(classes)} classes, and the server answers with "
                    f"{len(reply.outputs)} numbers; name the pool that this server serves"
                )
            answered, member = int(reply.outputs.argmax()), members[reply.member]
            said = {"class": answered, "class_name": classes[answered] if classes else None}
            answers.append(
                {
                    "picture": str(path),
                    **(said if classifies else {"outputs": reply.outputs.tolist()}),
                    "latency_ms": reply.latency_ms,
                    "cpu_ms": reply.cpu_ms,
                    "member": member["name"],
                    "late": Flag.LATE in reply.flags,
                    **_exit_of(reply, members),
                }
            )
    if options.json:
        answer.print_json({"answers": answers})
    else:
        for row in answers:
            late = ", late" if row["late"] else ""
            took = f"{row['latency_ms']:.3g} ms by {row['member']}{late}"
            sure = f", exit {row['exit']}, confidence {row['confidence']:.2f}" if "exit" in row else ""
            say(f"{row['picture']}: {_answered(row, classes)} in {took}{sure}")


def _classifies(status: Mapping[str, Any]) -> bool:
    """Whether the largest output of a server's networks is a class."""
    from autotailor.task.registry import find

    task = find(status.get("task", CLASSIFICATION))
    return task.labelled and task.names_outputs and not task.has_numbers


def _answered(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """What a network says of a picture, in words."""
    if "outputs" not in row:
        return f"class {row['class']}" + (f" ({row['class_name']})" if row["class_name"] is not None else "")
    outputs = row["outputs"]
    if len(outputs) > SHOWN:
        return f"{len(outputs)} numbers (--json prints them)"
    return ", ".join(f"{name} {value:.6g}".strip() for name, value in zip(names or [""] * SHOWN, outputs, strict=False))


def _members(client: Client) -> list[dict[str, Any]]:
    """The pool's members as the status has them, in its order."""
    return list(client.status()["members"])


def _exit_of(reply: Reply, members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which exit answered, where the pool has such."""
    from autotailor.serving.wire.bodies import answers_of

    if not _have_exits(members):
        return {}
    return {"exit": answers_of(members[reply.member])[reply.exit], "confidence": reply.confidence}


def _have_exits(members: Sequence[Mapping[str, Any]]) -> bool:
    return any("exits" in member for member in members)


def _answer(
    client: Client, picture: npt.NDArray[np.float32], deadline_ms: float, members: list[dict[str, Any]]
) -> tuple[Reply, list[dict[str, Any]]]:
    """A server's reply with the members that its number refers to.

    A reply holds a member's number in the pool that answered. Where the server has loaded another pool meanwhile,
    nobody knows which of both answered, and the picture is sent again.

    Args:
        client: of the server.
        picture: to be sent.
        deadline_ms: of the inference.
        members: before.
    """
    while True:
        ask = client.infer_exits if _have_exits(members) else client.infer
        reply, after = ask(picture, deadline_ms), _members(client)
        if after == members:
            return reply, members
        members = after


def run_reload(options: argparse.Namespace) -> None:
    """Lets a server open its pool anew; raises PoolError where none answers, or where the new pool cannot be used."""
    from autotailor.serving import Client

    with Client(address_of(options)) as client:
        status = client.reload()
    say(f"serving {len(status['members'])} members of {status['model']} on {status['device']}")


def run_stop(options: argparse.Namespace) -> None:
    """Stops a server; raises PoolError where none answers, or where it listens on TCP."""
    from autotailor.serving import Client

    with Client(address_of(options)) as client:
        client.stop()


def read_picture(path: Path) -> npt.NDArray[np.float32]:
    """The picture of a file; nothing in it is unpickled.

    Raises:
        PictureError: the file cannot be read, or holds no array of one picture with finite numbers.
    """
    import numpy as np

    try:
        with path.open("rb") as stream:
            array = np.load(stream, allow_pickle=False)
    except OSError as error:
        raise PictureError(f"{path}: cannot be read ({error.strerror or error}); name a file of numpy.save") from error
    except (ValueError, EOFError) as error:
        raise PictureError(f"{path}: holds no array of NumPy; write one with numpy.save") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise PictureError(f"{path}: expected an array [C, H, W] of numbers; write one with numpy.save")
    if array.ndim == 4 and len(array) == 1:  # as the prepare.py of an export's card makes it
        array = array[0]
    if array.ndim != 3:
        raise PictureError(f"{path}: expected an array [C, H, W], or a batch of one, not {list(array.shape)}")
    with np.errstate(over="ignore"):
        picture: npt.NDArray[np.float32] = array.astype(np.float32)
    if not np.isfinite(picture).all():
        raise PictureError(f"{path}: holds numbers that are not finite as float32, for which no class can be told")
    return picture


def _show(status: Mapping[str, Any]) -> None:
    """The status for people."""
    counters, load = status["counters"], status["load"]
    by_member = counters["by_member"]
    table = answer.table(
        f"{status['model']} on {status['device']}", "member", "accuracy %", "latency ms", "inferences", "now",
        numbers=("accuracy %", "latency ms", "inferences"),
    )  # fmt: skip
    for member in status["members"]:
        name = member["name"]
        now = "active" if name == status["active"] else "next" if name == status["target"] else ""
        now = now or ("loaded" if name in status["loaded"] else "broken" if name in status["broken"] else "")
        table.add_row(
            printable(name), f"{member['accuracy']:.2f}", f"{member['latency_ms']:.4g}", str(by_member[name]), now
        )
    terminal(least=100).print(table)
    settings = ", ".join(f"{key} {value}" for key, value in status["settings"].items() if value is not None)
    say(f"settings: {settings}")
    say(f"load: operators {load['slowdown']:.2f} times as slow, waiting {load['waiting']:.0%} of the CPU time")
    say(f"missed {counters['missed']} of {counters['inferences']} deadlines, {counters['switches']} switches")
    if status["wants_search"]:
        say("no member has fitted for a minute: `autotailor runtime search RUN`, or raise the deadline")
