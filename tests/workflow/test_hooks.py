"""What a run asks before its first rule: troubles that a person can mend end it with one sentence."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = [str(Path(sys.executable).with_name("snakemake")), "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
COMMAND += ["--profile", str(ROOT / "profiles" / "default"), "--", "results/resnet_digits/pretrained.pt"]


def test_results_that_take_no_folder_end_the_run_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "results").symlink_to("/sys/kernel")  # which lets nobody make a folder, not even root
    done = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode != 0
    assert "autotailor: results/.tracking: cannot be used (" in done.stderr
    assert "give access to it, and give the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    assert "hooks.smk" not in done.stderr
