"""What benchmarks/gpu/bundle.sh packs for a machine that has PyTorch and no internet."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_lock_has_a_version_of_everything_that_is_packed() -> None:
    """A package without a version would be left out in silence."""
    script = (ROOT / "benchmarks" / "gpu" / "bundle.sh").read_text(encoding="utf-8")
    listed = re.search(r"names=\(([^)]*)\)", script)
    assert listed
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert set(listed[1].split()) - set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)) == set()
