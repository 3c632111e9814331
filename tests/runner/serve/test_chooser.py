"""The server's chooser keeps within a quota, and follows the machine's before an inference has run under it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compiled import compiled
from served import ncnn_headers

POOL = r"""
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include "engine/chooser.h"

Pool pool_of(int threads) {
    Pool pool;
    pool.threads = threads;
    for (double ms : {3.0, 12.0, 40.0}) {
        Member member;
        member.name = "m" + std::to_string(pool.members.size());
        member.accuracy = 70.0 + 10.0 * static_cast<double>(pool.members.size());
        member.latency_ms = member.split_ms[0] = ms;
        pool.members.push_back(member);
    }
    return pool;
}
"""

ASKED = r"""
int main(int, char** words) {
    const std::string root = words[1];
    const auto limit = [&](const char* quota) {
        std::ofstream(root + "/sys/fs/cgroup/cpu.max") << quota << " 20000\n";
        std::this_thread::sleep_for(std::chrono::milliseconds(110));
    };
    const Pool pool = pool_of(std::atoi(words[2]));
    const Sensors sensors(root);
    PoolChooser chooser(pool, sensors);
    Settings settings;
    settings.policy.deadline_ms = 70.0;
    settings.policy.quantile = 0.9;
    settings.policy.dwell_s = 0.0;
    limit(words[3]);
    chooser.apply(settings);  // which looks at the quota
    for (int i = 0; i < 20; ++i) chooser.learn(2, i % 2 ? 48.0 : 52.0, 40.0);
    std::printf("%zu", chooser.choose(2, 70.0).member);
    limit(words[4]);
    std::printf(" %zu", chooser.choose(2, 70.0).member);
    limit(words[3]);
    std::printf(" %zu", chooser.choose(1, 70.0).member);
    limit("max");
    chooser.choose(2, 70.0);
    std::printf(" %.17g\n", chooser.monitor().waits.share());
}
"""


@pytest.mark.parametrize(("threads", "before", "after"), [(1, 16000, 8000), (2, 32000, 16000)])
def test_a_quota_that_falls_is_followed_before_an_inference_is_late(
    tmp_path: Path, threads: int, before: int, after: int
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    words = [
        str(each) for each in (compiled(tmp_path, POOL + ASKED, *ncnn_headers()), tmp_path, threads, before, after)
    ]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["2", "1", "2", "0"]


PACED = r"""
int main(int, char** words) {
    const Pool pool = pool_of(std::atoi(words[2]));
    const Sensors sensors(words[1]);
    for (double share : {0.75, 0.85}) {
        PoolChooser chooser(pool, sensors);
        Settings settings;
        settings.policy.deadline_ms = 70.0;
        settings.policy.rate = 20.0;  // times 40 ms: 0.8 cores for each thread
        settings.policy.quota = share * pool.threads;
        chooser.apply(settings);
        std::printf("%zu ", chooser.choose(2, 70.0).member);
    }
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_the_threads_of_all_requests_together_keep_within_a_quota(tmp_path: Path, threads: int) -> None:
    words = [str(each) for each in (compiled(tmp_path, POOL + PACED, *ncnn_headers()), tmp_path, threads)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "2"]
