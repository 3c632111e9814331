// The order in which the programs of a batch run: random in every pass, as in profiling/runtimes/runner/loop.py, because a
// scheduler that shares the core takes it away after equal times, and would interrupt the same programs in every pass.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

class Turns {
public:
    explicit Turns(size_t count) : order_(count) { std::iota(order_.begin(), order_.end(), size_t{0}); }

    // The numbers of all programs, in the order of the next pass.
    const std::vector<size_t>& next() {
        std::shuffle(order_.begin(), order_.end(), chance_);
        return order_;
    }

private:
    std::vector<size_t> order_;
    std::mt19937 chance_;
};
