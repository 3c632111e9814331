"""Short POSIX shell scripts that run on a device, with Android's toybox, with busybox, and with coreutils.

Each script may be repeated after a lost connection: running it twice has the same effect as running it once.
"""

import re
from shlex import quote
from typing import Any

USABLE = """
for t in cat date df dirname head readlink sha256sum stat tail; do
  command -v $t >/dev/null || {{ echo "$t: not found"; exit 1; }}
done
d={base}
while [ ! -e "$d" ] && [ "$d" != . ] && [ "$d" != / ]; do d=$(dirname "$d"); done
[ -d "$d" ] && [ -w "$d" ] && [ -x "$d" ] || {{ echo "$d: Permission denied"; exit 1; }}
"""
"""Fails where a device lacks a command of these scripts, or where the folder ``base`` cannot be made or written to."""

ALIVE = """
alive() { [ -n "$1" ] && [ "$(readlink /proc/$1/cwd 2>/dev/null)" = "$2" ]; }
stop() { for p in $(cat "$1"/run.*/pid 2>/dev/null); do
  if alive "$p" "$1"; then kill -s KILL -- "-$p" 2>/dev/null || kill -9 "$p"; fi; done; }
"""
"""Functions that tell whether a command is alive, and stop it.

``alive PID FOLDER``: whether a process of this number runs in the folder. The folder tells a command from a later
process that has got the same number, which must not be killed.
``stop FOLDER``: kills the folder's commands with all that they have started. Dash, the shell of Debian's boards, takes
``-s KILL --`` but not ``-9 --``.
"""

CLAIM = "mkdir -p {base}/{name} && cd {base}/{name} && pwd -P"
"""Makes the folder ``name`` in ``base``, and prints the new folder's path."""

RUNS = (
    ALIVE
    + """
cd {base} 2>/dev/null || exit 0
here=$(pwd -P); now=$(date +%s)
for d in run-*; do
  [ -d "$d" ] || continue
  works=0
  for p in $(cat "$d"/run.*/pid 2>/dev/null); do if alive "$p" "$here/$d"; then works=1; fi; done
  changed=$(stat -c %Y "$d" 2>/dev/null) && echo "$d $works $((now - changed))"
done
true
"""
)
"""Prints for each run's folder: its name, 1 where a command runs in it (else 0), its age in seconds.

The age counts from when something was last made in the folder.
"""

TIDY = (
    ALIVE
    + """
cd {folder} 2>/dev/null || exit 0
here=$(pwd -P); stop "$here"
for f in * .[!.]*; do
  case "$f" in
    profile-*.journal) [ -s "$f" ] || rm -f "$f" ;;
    *) rm -rf "$f" ;;
  esac
done
cd .. && rmdir "$here" 2>/dev/null || true
"""
)
"""Stops and removes what a dead run left, except journals with content, which perhaps nobody has read."""

ROOM = "mkdir -p {folder} && df -Pk {folder} | tail -n 1"
"""Makes a folder, and prints the line of ``df`` about its file system."""

WORKING = "touch {folder} 2>/dev/null || true\n"
"""Resets a folder's age to zero: other runs see that the folder's run is at work though none of its commands runs."""

SETTLE = """
cd {folder} || exit 1
[ -f {part} ] || {{ echo "{part}: No such file or directory"; exit 1; }}
set -- $(sha256sum {part})
if [ "$1" = {digest} ]; then chmod 755 {part} && mv -f {part} {name}; else rm -f {part}; echo "damaged $1"; fi
"""
"""Gives a file that arrived whole its final name; removes a file that did not, and prints ``damaged``."""

SETTLED = (
    'cd {folder} 2>/dev/null && [ -f {name} ] && set -- $(sha256sum {name}) && [ "$1" = {digest} ] && echo yes || true'
)
"""Prints ``yes`` when a file with the expected content exists already."""

KEEP = """
mkdir -p {folder} && cd {folder} || exit 1
[ ! -f {path} ] || mv -f {path} {kept} || exit 1
for f in *-{name}; do [ "$f" = {kept} ] || rm -f "$f"; done
"""
"""Moves a program that arrived whole to the folder where later runs find it; removes the program's other versions."""

LACKING = """
cd {folder} 2>/dev/null
for f in $(echo {digests}); do
  if [ -f "$f" ]; then set -- $(sha256sum "$f"); else set -- none; fi
  [ "$1" = "$f" ] || echo "$f"
done
"""
"""Prints the hashes of those files that the folder does not hold whole under their hashes."""

MOVE = "mkdir -p {folder} && cd {folder} && {{ [ ! -f {path} ] || mv -f {path} {name}; }} && [ -f {name} ]"
"""Moves a file that arrived whole to another folder."""

LINK = "mkdir -p $(dirname {path}) && ln -sf {target} {path} || exit 1\n"
"""Makes a file of this session that is another file."""

PRUNE = 'cd {folder} || exit 0\nfor f in *; do case {digests} in *" $f "*) ;; *) rm -rf "$f" ;; esac; done'
"""Removes the files of a folder that are not among those wanted; the list begins and ends with a space."""

DIGEST = "cd {folder} && sha256sum {name}"

START = """
cd {folder} || exit 1
mkdir {run} 2>/dev/null || exit 0
leader=$(command -v setsid || command -v nohup)
$leader sh -c {body} </dev/null >/dev/null 2>&1 &
echo $! > {run}/pid
"""
"""Starts a command that outlives the connection; does nothing when repeated. The output goes to the folder ``run``."""

BODY = "{command} > {run}/out 2> {run}/err; echo $? > {run}/code.new; mv {run}/code.new {run}/code"

POLL = (
    ALIVE
    + """
cd {folder} 2>/dev/null || {{ printf '\\nlost'; exit 0; }}
code=$(cat {run}/code 2>/dev/null)
if [ -z "$code" ] && ! alive "$(cat {run}/pid 2>/dev/null)" "$(pwd -P)"; then
  code=$(cat {run}/code 2>/dev/null)
  [ -n "$code" ] || code=lost
fi
tail -c +{start} {run}/out 2>/dev/null | head -c {limit}
printf '\\n%s' "$code"
"""
)
"""Prints what a command has written from byte ``start`` on, a line feed, and, once it has ended, its exit code."""

STOP = ALIVE + 'here={folder}\nstop "$here"\n'

RESCUE = ALIVE + 'here={folder}\nif [ -d "$here" ]; then stop "$here"; cat {path} 2>/dev/null || true; fi\n'
"""Stops what a dead run left in a folder, and prints one of the folder's files."""

DISCARD = "rm -f {manifest} {journal}"

REMOVE = ALIVE + 'cd {folder} 2>/dev/null || exit 0\nhere=$(pwd -P)\nstop "$here"\ncd / && rm -rf "$here"\n'

ERRORS = "tail -n 5 {folder}/{run}/err 2>/dev/null || true"

FACTS = r"""
get() { getprop "$1" 2>/dev/null; }
tell() { [ -n "$2" ] && echo "$1=$2"; }
tell machine "$(uname -m)"
tell system "$(uname -s)"
tell model "$(tr -d '\000' </proc/device-tree/model 2>/dev/null || true)"
tell model "$(echo $(get ro.product.manufacturer) $(get ro.product.model))"
tell soc "$(tr '\000' ' ' </proc/device-tree/compatible 2>/dev/null || true)"
tell soc "$(get ro.board.platform)"
tell soc "$(get ro.soc.model)"
tell os "$(sed -n 's/^PRETTY_NAME="*\([^"]*\)"*$/\1/p' /etc/os-release 2>/dev/null)"
release=$(get ro.build.version.release)
tell os "${release:+Android $release}"
tell cpu "$(sed -n 's/^model name[^:]*: *//p;s/^Hardware[^:]*: *//p' /proc/cpuinfo | head -n 1)"
tell parts "$(echo $(sed -n 's/^CPU part[^:]*: *//p' /proc/cpuinfo))"
tell cores "$(echo $(ls -d /sys/devices/system/cpu/cpu[0-9]* 2>/dev/null | wc -l))"
tell khz "$(echo $(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq 2>/dev/null))"
tell caches "$(echo $(cat /sys/devices/system/cpu/cpu0/cache/index*/size 2>/dev/null))"
tell memory_kb "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
true
"""
"""Prints facts of the hardware as lines ``name=value``; where a name occurs twice, its last line is the better one."""


def fill(script: str, **values: str | int) -> str:
    """A script with values in place of the names in braces; text is quoted for the shell."""
    if ALIVE in script:
        return ALIVE + fill(script.removeprefix(ALIVE), **values)
    return script.format(**{key: value if isinstance(value, int) else quote(value) for key, value in values.items()})


def parse_facts(text: str) -> dict[str, Any]:
    """Reads facts from lines ``name=value``; the last value of a name counts.

    Args:
        text: what ``scripts.FACTS`` printed.

    Returns:
        ``machine``, ``system``, ``cpu``, ``cores``, ``memory_gb``, and, as far as the device tells, ``model``, ``soc``,
        ``os``, ``caches`` and ``frequencies_mhz`` (the highest frequency of each core).
    """
    said = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and value.strip():
            said[name] = value.strip()
    parts, khz, memory = said.pop("parts", ""), said.pop("khz", ""), said.pop("memory_kb", "")
    facts: dict[str, Any] = dict(said)
    facts["cpu"] = said.get("cpu") or " ".join(parts.split()) or said.get("machine", "unknown")
    facts["cores"] = next(iter(_numbers(said.get("cores", ""))), 0) or None
    if frequencies := _numbers(khz):
        facts["frequencies_mhz"] = [value // 1000 for value in frequencies]
    if kilobytes := _numbers(memory):
        facts["memory_gb"] = round(kilobytes[0] / 2**20, 1)
    return facts


def _numbers(text: str) -> list[int]:
    """The words of a text that are whole numbers."""
    return [int(word) for word in re.findall(r"(?<!\S)[0-9]{1,18}(?!\S)", text)]
