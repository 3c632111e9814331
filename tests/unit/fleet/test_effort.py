from pathlib import Path

import fleets
from autotailor.fleet.effort import efforts, minutes


def test_what_a_network_takes_once_counts_once_and_each_device_by_itself(tmp_path: Path) -> None:
    fleet, _ = fleets.fleet(tmp_path)
    table = efforts(fleet)
    assert len(table) == len(fleets.MODELS) * (1 + len(fleets.DEVICES))
    spent = minutes(table)
    for model in fleets.MODELS:
        assert spent.loc[model, ""] == 1.0
        assert spent.loc[model, "host"] == 0.5 * (1 + len("host"))
        assert spent.loc[model, "phone"] == 0.5 * (1 + len("phone"))
