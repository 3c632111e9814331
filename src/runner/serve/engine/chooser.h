// Monitor, load model, forecast and choice of one pool, fed with the inferences as they come. Members are known by their
// number in the pool.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "../choice/choice.h"
#include "../choice/pace.h"
#include "../files/pool.h"
#include "clock.h"
#include "sensors.h"

struct Settings {
    Policy policy;                 // an infinite quota is the control group's
    double battery = NAN;          // level from 0 to 1; NaN takes the machine's where it can be read
    std::string pin;               // the member that runs whatever the load; empty: the best that fits
    double keep_s = 10.0;          // for which the member that ran before a switch stays materialised
    double long_s = 60.0;          // without a member that fits, after which the status asks for a search
    size_t most_memory_bytes = 0;  // of the materialised members together; 0: without a limit
};

// The deadline where none is given: there is some slack above the largest member's latency without load.
inline double default_deadline_ms(const Pool& pool) {
    double largest = 0.0;
    for (const Member& member : pool.members) largest = std::max(largest, member.latency_ms);
    return 1.25 * largest;
}

class PoolChooser {
public:
    static constexpr double look_ms = 1000.0;  // between two looks at battery and quota
    static constexpr double quota_ms = 100.0;  // between two looks at a quota, where there is one

    struct Choice { size_t member; Event event; double latency_ms; };

    PoolChooser(const Pool& pool, const Sensors& sensors, const Clock& clock = Clock::machine())
        : pool_(pool), sensors_(sensors), clock_(clock), chooser_(entries(pool)) {}

    const Settings& settings() const { return settings_; }
    const Monitor& monitor() const { return monitor_; }
    double spent_ms() const { return pace_.spent_ms(); }
    size_t fastest() const { return chooser_.table.member[chooser_.table.fastest]; }
    bool is_usable(size_t number) const { return chooser_.table.is_usable[row(number)]; }

    // A member that cannot be loaded is not chosen any more.
    void leave_out(size_t number) {
        chooser_.table.is_usable[row(number)] = 0;
        if (settings_.pin == pool_.members[number].name) settings_.pin.clear();
    }

    // Takes other settings, or none of them where one is invalid.
    void apply(const Settings& wanted) {
        wanted.policy.check();
        if (!wanted.pin.empty() && !is_usable(pool_.row(wanted.pin)))
            throw PoolError("pin: " + wanted.pin + " cannot be loaded, or exceeds the memory limit: pin another member");
        chooser_.set_battery(wanted.battery);
        settings_ = wanted;
        look();
    }

    // Takes over what another pool's chooser has learnt of the load, which does not depend on members.
    void inherit(const PoolChooser& before) { monitor_ = before.monitor_; }

    // Takes an inference into account; returns whether the monitor has learnt from it, so that another choice may be better.
    bool learn(size_t number, double wall, double cpu) {
        const double* split_ms = pool_.members[number].split_ms;
        const double begin = clock_.ms(), expected = monitor_.cpu_ms(split_ms, 1);
        if (!pace_.allows(begin, std::fabs(std::log(wall / expected)) > Monitor::surprise)) {
            monitor_.note(cpu / expected, wall, cpu);
            return false;
        }
        monitor_.observe(split_ms, wall, cpu);
        pace_.spend(clock_.spent_ms(begin));
        return true;
    }

    // The member that is to run next, where another one runs or is being prepared.
    Choice choose(size_t target, double deadline_ms) {
        if (!settings_.pin.empty()) return {pool_.row(settings_.pin), Event::pinned, NAN};
        const double begin = clock_.ms();
        if (begin - looked_ms_ >= look_ms) look();
        else if (std::isfinite(quota_.cores) && begin - looked_at_quota_ms_ >= quota_ms) look_at_quota();
        Policy policy = settings_.policy;
        policy.deadline_ms = deadline_ms;
        if (std::isinf(policy.quota)) policy.quota = quota_.cores;
        policy.quota /= pool_.threads;  // CPU times are those of one thread
        const double since_s = switched_ms_ < 0 ? std::numeric_limits<double>::infinity() : (begin - switched_ms_) / 1e3;
        const Decision decision = chooser_.decide(monitor_, policy, row(target), since_s);
        const Choice choice = {chooser_.table.member[decision.row], decision.event, decision.latency_ms};
        if (choice.member != target) switched_ms_ = begin;
        pace_.spend(clock_.spent_ms(begin));
        return choice;
    }

    // Of some members the best that fits as of the last choice, or the fastest where none fits.
    size_t best_of(const std::vector<size_t>& numbers) const {
        std::vector<size_t> rows;
        for (size_t number : numbers) rows.push_back(row(number));
        return chooser_.table.member[chooser_.best_of(rows)];
    }
    bool fits(size_t number) const { return chooser_.fits(row(number)); }

private:
    static std::vector<Entry> entries(const Pool& pool) {
        std::vector<Entry> found;
        for (const Member& member : pool.members)
            found.push_back({member.accuracy, {member.split_ms[0], member.split_ms[1], member.split_ms[2]}, member.energy_mj});
        return found;
    }

    size_t row(size_t number) const { return chooser_.table.row_of(number); }

    // The machine's battery and quota; the battery counts where the energy of each member is known.
    void look() {
        looked_ms_ = clock_.ms();
        look_at_quota();
        bool knows_energy = true;
        for (const Member& member : pool_.members) knows_energy = knows_energy && !std::isnan(member.energy_mj);
        if (std::isnan(settings_.battery)) chooser_.set_battery(knows_energy ? sensors_.battery() : NAN);
    }

    // What has waited under another quota is known to wait otherwise now.
    void look_at_quota() {
        looked_at_quota_ms_ = clock_.ms();
        const Quota before = quota_;
        quota_ = sensors_.quota();
        if (!(quota_ == before)) monitor_.waits.move_to_quota(before.of_each(pool_.threads), quota_.of_each(pool_.threads));
    }

    const Pool& pool_;
    const Sensors& sensors_;
    const Clock& clock_;
    Chooser chooser_;
    Settings settings_;
    Monitor monitor_;
    Pace pace_;
    Quota quota_;
    double looked_ms_ = 0.0, looked_at_quota_ms_ = 0.0;
    double switched_ms_ = -1.0;  // when another member was last chosen; negative: never
};
