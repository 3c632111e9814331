// The choice: the most accurate member that meets its deadline now. A member fits where three things hold under the load:
//
//     P(latency <= deadline) >= q,    rate * latency <= 1,    rate * CPU time <= quota.
//
// The second keeps a queue of requests from growing, the third holds under a quota of CPU time (cgroup). CPU time is that of one of
// the threads that compute an inference, and so is the quota: each thread has an equal part of the process'.
//
// Where the active member no longer fits, the best one that fits follows at once. A better one follows only where it fits with a
// margin, and when the last switch is a while ago (dwell), so that noise does not switch to and fro. Where nothing fits, the member
// with the least latency runs. Without a battery the best member is the most accurate one; with one it has the largest
// mu Norm(accuracy) - (1 - mu) Norm(energy), mu being the battery's level (CrowdHMTware, equation 3, maximised).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "monitor.h"
#include "table.h"

struct Policy {
    double deadline_ms = 100.0;
    double quantile = 0.95;  // the probability with which an inference is to meet its deadline
    double rate = 0.0;       // requests a second; 0 where they come one at a time
    double quota = std::numeric_limits<double>::infinity();  // cores that the process may use
    double margin = 0.1;     // share by which a better member must fit before it is switched to
    double dwell_s = 0.1;    // seconds after a switch in which no better member is switched to
    int horizon = 1;         // inferences ahead for which the load is forecast

    void check() const {
        auto require = [](bool is_valid, const char* name, double value, const char* expected) {
            if (is_valid) return;
            std::ostringstream text;
            text.imbue(std::locale::classic());
            text << "policy: " << name << " is " << value << ", expected " << expected;
            throw PoolError(text.str());
        };
        const double infinity = std::numeric_limits<double>::infinity();
        require(deadline_ms > 0 && deadline_ms < infinity, "deadline_ms", deadline_ms, "a positive number of milliseconds");
        require(quantile >= 0.5 && quantile < 1, "quantile", quantile, "a probability from 0.5 to below 1");
        require(rate >= 0 && rate < infinity, "rate", rate, "a number of requests a second, not negative");
        require(quota > 0, "quota", quota, "a positive number of cores");
        require(margin >= 0 && margin < infinity, "margin", margin, "a share, not negative");
        require(dwell_s >= 0 && dwell_s < infinity, "dwell_s", dwell_s, "a number of seconds, not negative");
        require(horizon >= 1, "horizon", horizon, "a number of inferences, at least 1");
    }
};

enum class Event { stay, down, up, nothing_fits, pinned };

inline const char* text_of(Event event) {
    const char* texts[] = {"stay", "down", "up", "nothing fits", "pinned"};
    return texts[static_cast<int>(event)];
}

struct Decision {
    size_t row = 0;
    Event event = Event::stay;
    double latency_ms = 0.0;  // not exceeded with the policy's probability
};

// Decides for one pool; keeps its arrays, so that a decision takes no memory.
class Chooser {
public:
    explicit Chooser(const std::vector<Entry>& entries) : table(entries), demand_(entries.size()), ranking_(table.accuracy) {}

    Table table;

    // A level from 0 to 1, which weighs accuracy against energy (CrowdHMTware, equation 3); NaN without a battery.
    void set_battery(double level) {
        if (std::isnan(level)) {
            ranking_ = table.accuracy;
        } else {
            if (!(level >= 0 && level <= 1)) throw PoolError("battery: the level is no share from 0 to 1");
            for (double energy : table.energy_mj)
                if (std::isnan(energy))
                    throw PoolError("battery: the energy of a member is unknown, because the device has no sensor or the sensor was not "
                                    "read: leave the battery out");
            const std::vector<double> accuracy = scaled(table.accuracy), energy = scaled(table.energy_mj);
            for (size_t i = 0; i < ranking_.size(); ++i) ranking_[i] = level * accuracy[i] - (1 - level) * energy[i];
        }
    }

    Decision decide(const Monitor& monitor, const Policy& policy, size_t active, double since_switch_s) {
        const double limit = measure(monitor, policy);
        if (demand_[active] > limit) {
            size_t row = 0;
            if (best(limit, 1.0, row)) return {row, Event::down, bound(row)};
            return {table.fastest, Event::nothing_fits, bound(table.fastest)};
        }
        if (since_switch_s >= policy.dwell_s) {
            size_t row = 0;
            if (best(limit, 1 + policy.margin, row) && ranking_[row] > ranking_[active]) return {row, Event::up, bound(row)};
        }
        return {active, Event::stay, bound(active)};
    }

    // The best of some rows that fits after decide; of those that do not fit, the fastest under the load of now.
    template <class Rows>
    size_t best_of(const Rows& rows) const {
        size_t found = *rows.begin();
        auto is_better = [&](size_t a, size_t b) {
            const bool a_fits = demand_[a] <= limit_, b_fits = demand_[b] <= limit_;
            if (a_fits != b_fits) return a_fits;
            return a_fits ? ranking_[a] > ranking_[b] : bound(a) < bound(b);
        };
        for (size_t row : rows)
            if (is_better(row, found)) found = row;
        return found;
    }

    bool fits(size_t row) const { return demand_[row] <= limit_; }

private:
    static std::vector<double> scaled(std::vector<double> values) {
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        const double low = *least, spread = *most - *least;
        for (double& value : values) value = (value - low) / (spread != 0 ? spread : 1.0);
        return values;
    }

    double bound(size_t row) const {
        return wall_ms(monitor_->load.cpu_ms(table.split_ms[0][row], table.split_ms[1][row], table.split_ms[2][row]));
    }

    // Wall time that is not exceeded with the probability, of a member that takes so much CPU time now.
    double wall_ms(double cpu_ms) const {
        const double cpu = cpu_ms * factor_ * quantile_;
        return cpu + monitor_->waits.quantile_ms(cpu, q_);
    }

    // What each member demands of the limit, which is returned: its latency, or under a quota its CPU time if that is more.
    double measure(const Monitor& monitor, const Policy& policy) {
        monitor_ = &monitor;
        factor_ = monitor.forecast.factor(policy.horizon);
        q_ = policy.quantile;
        quantile_ = monitor.quantile(q_);
        limit_ = policy.rate > 0 ? std::min(policy.deadline_ms, 1000.0 / policy.rate) : policy.deadline_ms;
        const double *compute = table.split_ms[0].data(), *memory = table.split_ms[1].data(), *fixed = table.split_ms[2].data();
        const bool has_quota = policy.rate > 0 && std::isfinite(policy.quota);
        const double of_quota = has_quota ? limit_ / (policy.quota * 1000.0 / policy.rate) : 0.0;
        for (size_t row = 0; row < table.size(); ++row) {
            const double cpu = monitor.load.cpu_ms(compute[row], memory[row], fixed[row]);
            demand_[row] = std::max(wall_ms(cpu), cpu * of_quota);
            if (!table.is_usable[row]) demand_[row] = std::numeric_limits<double>::infinity();
        }
        return limit_;
    }

    // The best row that fits, of equal ones the first.
    bool best(double limit, double more, size_t& found) const {
        bool is_found = false;
        for (size_t row = 0; row < table.size(); ++row)
            if (demand_[row] * more <= limit && (!is_found || ranking_[row] > ranking_[found])) {
                found = row;
                is_found = true;
            }
        return is_found;
    }

    std::vector<double> demand_, ranking_;
    const Monitor* monitor_ = nullptr;
    double factor_ = 1.0, q_ = 0.95, quantile_ = 1.0, limit_ = 0.0;
};
