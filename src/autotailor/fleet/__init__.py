"""A fleet: several networks, each tailored for several devices, and what all these finished runs say together.

* ``best``: the most accurate SubNet of all networks within each budget of each device, and the fronts of all networks
  united.
* ``single``: what it would cost in accuracy to run one SubNet of one network on every device.
* ``effort``: how many minutes each device and each network took.
* ``exports``: what was exported and measured.
* ``page``: the page that shows these tables.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.fleet.page.write import write_page
    from autotailor.fleet.runs import Fleet

__getattr__ = attach(__name__)
