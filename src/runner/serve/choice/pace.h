// The pace of the monitor: how often it may learn, so that its own time stays a small share. It learns from each inference as long
// as its allowance lasts, and from one that surprises on credit. The allowance grows with time by `growth`, so that what is spent in a
// window is at most `share` of it, savings and debt included, but for the last step.
#pragma once

#include <algorithm>

class Pace {
public:
    static constexpr double share = 0.01;        // of the time that passes, in any window_ms
    static constexpr double window_ms = 4000.0;
    static constexpr double most_ms = 5.0;       // that can be saved up
    static constexpr double debt_ms = 5.0;       // by which surprises may overdraw the allowance
    static constexpr double growth = share - (most_ms + debt_ms) / window_ms;  // of the allowance, with the time that passes

    bool allows(double now_ms, bool is_surprise) {
        left_ms_ = std::min(left_ms_ + growth * (has_begun_ ? now_ms - now_ms_ : 0.0), most_ms);
        has_begun_ = true;
        now_ms_ = now_ms;
        return left_ms_ > (is_surprise ? -debt_ms : 0.0);
    }

    void spend(double ms) {
        left_ms_ -= ms;
        spent_ms_ += ms;
    }

    double spent_ms() const { return spent_ms_; }

private:
    double left_ms_ = most_ms, spent_ms_ = 0.0, now_ms_ = 0.0;
    bool has_begun_ = false;
};
