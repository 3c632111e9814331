// The monitor: what the wall and CPU times of the inferences so far say of the next one. CPU time is that of the load model, and
// a quantile of measured over predicted CPU time says how far it varies. Waiting for the processor is added. A residual that is a
// surprise teaches the load model nothing; two in a row to the same side are a step of the load, and what came before no longer counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "forecast.h"
#include "load.h"
#include "waits.h"

class Monitor {
public:
    static constexpr size_t most_residuals = 32;
    static constexpr double surprise = 0.5;

    LoadModel load;
    Forecast forecast;

    Waits waits;

    // One more inference; the times are positive.
    void observe(const double split_ms[3], double wall_ms, double cpu) {
        note(cpu / cpu_ms(split_ms, 1), wall_ms, cpu);
        waits.forget_before_change();
        if (is_step()) {
            load = LoadModel(cpu / (split_ms[0] + split_ms[1] + split_ms[2]));
            forecast = Forecast();
            residuals_.clear();
        } else if (std::fabs(std::log(residuals_.back())) > surprise) {
            return;  // alone, it may be an accident
        }
        load.observe(split_ms, cpu);
        forecast.observe(load.ratio);
    }

    // An inference from which the load model does not learn; the residual is measured over predicted CPU time.
    void note(double residual, double wall_ms, double cpu) {
        if (residuals_.size() == most_residuals) residuals_.erase(residuals_.begin());
        residuals_.push_back(residual);
        waits.observe(wall_ms, cpu);
    }

    // CPU time of a member some inferences on.
    double cpu_ms(const double split_ms[3], int steps) const {
        return load.cpu_ms(split_ms[0], split_ms[1], split_ms[2]) * forecast.factor(steps);
    }

    // What at least a share q of the last CPU times were below, as a multiple of what had been predicted.
    double quantile(double q) const {
        std::vector<double> ordered = residuals_;
        ordered.push_back(1.0);
        const auto place = ordered.begin() + static_cast<std::ptrdiff_t>(std::ceil(q * static_cast<double>(ordered.size()))) - 1;
        std::nth_element(ordered.begin(), place, ordered.end());
        return *place;
    }

private:
    // Whether the last two residuals are surprises to the same side.
    bool is_step() const {
        if (residuals_.size() < 2) return false;
        const double last = std::log(residuals_.back()), before = std::log(residuals_[residuals_.size() - 2]);
        return (last > surprise && before > surprise) || (last < -surprise && before < -surprise);
    }

    std::vector<double> residuals_;  // measured over predicted CPU time, each predicted before it was measured
};
