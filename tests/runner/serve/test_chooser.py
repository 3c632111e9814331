"""The server's chooser follows the quota in the machine's files before an inference has run under it."""

import subprocess
from pathlib import Path

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


def test_a_quota_that_falls_is_followed_before_an_inference_is_late(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    words = [str(each) for each in (compiled(tmp_path, POOL + ASKED, *ncnn_headers()), tmp_path, 2, 32000, 16000)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["2", "1", "2", "0"]
