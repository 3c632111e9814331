"""A fleet: several networks, each tailored for several devices, and what all these finished runs say together.

* ``best``: the most accurate SubNet of all networks within each budget of each device, the fronts of all networks
  united, and what was exported and measured.
* ``single``: what it would cost in accuracy to run one SubNet of one network on every device.
* ``page``: the page that shows these tables, and how many minutes each device and each network took.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach

if TYPE_CHECKING:
    from autotailor.fleet.page.write import write_page
    from autotailor.fleet.runs import Fleet

__getattr__ = attach(__name__)
