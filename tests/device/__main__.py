"""A device to try things on by hand, until interrupted.

    PYTHONPATH=tests python -m device adb /tmp/phone --machine aarch64 --port 5555 --fault drop:20:3
    PYTHONPATH=tests python -m device ssh /tmp/board

Then ``snakemake --config device=android 'overrides=["device.address=127.0.0.1:5555","device.cores=[]",...]'``; for ssh
with the HOME that it prints, and a ``device.folder``.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from device.adb_daemon import AdbDaemon
from device.adb_faults import KINDS
from device.ssh_server import SshServer, find_sshd


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m device", description=__doc__)
    parser.add_argument("kind", choices=["adb", "ssh"])
    parser.add_argument("folder", type=Path, help="stands for the device's file system; made here")
    parser.add_argument("--machine", choices=["aarch64"], help="emulated processor (adb)")
    parser.add_argument("--old", action="store_true", help="a daemon without exec:, of version 1 of the protocol (adb)")
    parser.add_argument("--port", type=int, default=0, help="(adb)")
    parser.add_argument("--nobody", action="store_true", help="nobody accepts this computer's key (adb)")
    parser.add_argument("--reboot", type=float, help="seconds after which it restarts, being away for 5 (adb)")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=planned,
        metavar="KIND[:AFTER[:TIMES[:SECONDS]]]",
        help="what goes wrong, after how many occasions, how often, for how long (adb): "
        + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()),
    )
    chosen = parser.parse_args()
    serve_adb(chosen) if chosen.kind == "adb" else serve_ssh(chosen.folder.absolute())


def planned(text: str) -> tuple[str, int, int, float]:
    """A fault of the command line."""
    given = text.split(":")
    kind, after, times, seconds = (*given, *("", "0", "1", "0.5")[len(given) :])
    if kind not in KINDS:
        raise argparse.ArgumentTypeError(f"unknown kind {kind!r}, expected one of {', '.join(KINDS)}")
    return kind, int(after), int(times), float(seconds)


def serve_adb(chosen: argparse.Namespace) -> None:
    root = chosen.folder.absolute()
    prompt = None if chosen.nobody else 0.0
    with AdbDaemon(root, prompt=prompt, machine=chosen.machine, port=chosen.port, old=chosen.old) as daemon:
        for fault in chosen.fault:
            daemon.faults.plan(*fault)
        print(f"an ADB daemon listens at {daemon.address}", flush=True)
        if chosen.reboot is not None:
            signal.signal(signal.SIGALRM, lambda *_: daemon.reboot(5))
            signal.setitimer(signal.ITIMER_REAL, chosen.reboot)
        try:
            while True:
                signal.pause()
        except KeyboardInterrupt:
            print(f"faults that happened: {daemon.faults.happened or 'none'}")


def serve_ssh(folder: Path) -> None:
    program = find_sshd()
    if program is None:
        sys.exit("sshd is missing: install it with: apt-get install -y openssh-server")
    home = folder / "home"
    home.mkdir(parents=True)
    server = SshServer(program, folder / "server", home)
    print(f"an SSH server listens at {server.address}; for its client: HOME={home}", flush=True)
    os.environ["HOME"] = str(home)
    try:
        signal.pause()
    finally:
        server.stop()


if __name__ == "__main__":
    main()
