"""Accuracy against energy by the level of a battery, with a tree of files in place of the machine's.

Members have accuracies 90, 91.8 and 92 and energies 0.1, 0.2 and 0.3 mJ: scaled, 0, 0.9, 1 and 0, 0.5, 1. With the
level mu, mu accuracy - (1 - mu) energy is largest for the third above 5/6, for the first below 5/14, and for the second
between them.
"""

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.serving import Client, PoolError
from autotailor.serving.files import INDEX, Index
from pools import TinyPool, tiny_pool
from served import serve_binary

IMAGE = np.zeros((3, 12, 12), np.float32)
ACCURACIES = (90.0, 91.8, 92.0)
SETTLED_S = 60.0


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    made = tiny_pool(tmp_path / "pool")
    changed(made, [{"accuracy": accuracy} for accuracy in ACCURACIES])
    return made


def changed(pool: TinyPool, values: list[dict[str, float]]) -> None:
    """Changes what ``pool.txt`` says of each member."""
    path = pool.folder / INDEX
    index = Index.parse(path.read_bytes())
    members = tuple(replace(member, **change) for member, change in zip(index.members, values, strict=True))
    path.write_text(replace(index, members=members).text(), encoding="utf-8")


class Phone:
    """The files of a phone that say what its battery does."""

    def __init__(self, root: Path) -> None:
        self.root, self.supply = root, root / "sys" / "class" / "power_supply" / "battery"
        self.supply.mkdir(parents=True)
        (self.supply / "type").write_text("Battery\n", encoding="utf-8")
        self.says(100)

    def says(self, percent: int, status: str = "Discharging") -> None:
        (self.supply / "capacity").write_text(f"{percent}\n", encoding="utf-8")
        (self.supply / "status").write_text(f"{status}\n", encoding="utf-8")


@pytest.fixture
def phone(tmp_path: Path) -> Phone:
    return Phone(tmp_path / "phone")


@contextmanager
def served(pool: TinyPool, phone: Phone) -> Iterator[Client]:
    """A server that the command has started, and a client of it."""
    serve_binary()
    address = f"unix:{pool.folder.parent / 's'}"
    words = ["--listen", address, "--deadline-ms", "1000", "--sensors", str(phone.root)]
    command = [sys.executable, "-m", "autotailor", "runtime", "serve", str(pool.folder), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving 3 members")
        with Client(address) as client:
            yield client
        process.terminate()


@pytest.fixture
def client(pool: TinyPool, phone: Phone) -> Iterator[Client]:
    with served(pool, phone) as made:
        yield made


def settled(client: Client, member: int) -> None:
    """Waits until a member runs, and sees that it goes on: the server looks at the battery once in a second."""
    end = time.monotonic() + SETTLED_S
    while client.infer(IMAGE).member != member:
        assert time.monotonic() < end, client.status()
        time.sleep(0.01)
    assert {client.infer(IMAGE).member for _ in range(20)} == {member}


def test_the_member_follows_the_battery_s_level_and_the_charger(client: Client, phone: Phone) -> None:
    settled(client, 2)
    for percent, member in ((50, 1), (10, 0), (90, 2)):
        phone.says(percent)
        settled(client, member)
        assert client.status()["machine"]["battery"] == pytest.approx(percent / 100)
        assert f"autotailor_machine_battery {percent / 100:g}\n" in client.metrics()
    phone.says(10)
    settled(client, 0)
    phone.says(10, "Charging")
    settled(client, 2)
    assert "battery" not in client.status()["machine"]


def test_a_level_that_a_client_sets_counts_in_place_of_the_machine_s(client: Client, phone: Phone) -> None:
    assert client.set(battery=0.5)["battery"] == 0.5
    settled(client, 1)
    phone.says(10)
    end = time.monotonic() + SETTLED_S
    while client.status()["machine"]["battery"] != pytest.approx(0.1):
        assert time.monotonic() < end, client.status()
        time.sleep(0.01)
    settled(client, 1)
    assert client.set(battery=None)["battery"] is None
    settled(client, 0)


def test_the_deadline_comes_before_the_battery(client: Client, phone: Phone) -> None:
    settled(client, 2)
    client.set(deadline_ms=1e-4)
    settled(client, 0)
    phone.says(50)
    client.set(deadline_ms=1000.0)
    settled(client, 1)


def test_where_an_energy_is_unknown_the_battery_counts_for_nothing(pool: TinyPool, phone: Phone) -> None:
    changed(pool, [{}, {"energy_mj": math.nan}, {}])
    phone.says(1)
    with served(pool, phone) as client:
        settled(client, 2)
        assert client.status()["machine"]["battery"] == pytest.approx(0.01)
        with pytest.raises(PoolError, match="energ"):
            client.set(battery=0.5)
        settled(client, 2)
