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
    std::string thresholds;        // name of those of members with exits; empty: pictures leave at a deadline only
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

// The thresholds where none are named: the guaranteed ones, where a member has such.
inline std::string default_thresholds(const Pool& pool) {
    const char* name = "guaranteed";
    return pool.thresholds().count(name) ? name : "";
}

// Settings for a pool that takes another one's place: the pin goes, because its name may be another SubNet's by now.
inline Settings for_successor(Settings settings, const Pool& pool) {
    settings.pin.clear();
    if (!pool.thresholds().count(settings.thresholds)) settings.thresholds = default_thresholds(pool);
    return settings;
}

// The choice is among answers: those of members, and those of their exits, each with its own accuracy and latency.
class PoolChooser {
public:
    static constexpr double look_ms = 1000.0;  // between two looks at battery and quota
    static constexpr double quota_ms = 100.0;  // between two looks at a quota, where there is one

    struct Choice { size_t member; Event event; double latency_ms; };

    PoolChooser(const Pool& pool, const Sensors& sensors, const Clock& clock = Clock::machine())
        : pool_(pool), sensors_(sensors), clock_(clock), answers_(answers(pool)), chooser_(entries(pool, answers_)) {}

    const Settings& settings() const { return settings_; }
    const Monitor& monitor() const { return monitor_; }
    double spent_ms() const { return pace_.spent_ms(); }
    size_t fastest() const { return member_of(chooser_.table.fastest); }
    bool is_usable(size_t number) const { return chooser_.table.is_usable[rows_of(number).front()]; }

    // A member that cannot be loaded is not chosen any more.
    void leave_out(size_t number) {
        for (size_t row : rows_of(number)) chooser_.table.is_usable[row] = 0;
        if (settings_.pin == pool_.members[number].name) settings_.pin.clear();
    }

    // Takes other settings, or none of them where one is invalid.
    void apply(const Settings& wanted) {
        wanted.policy.check();
        if (!wanted.pin.empty() && !is_usable(pool_.row(wanted.pin)))
            throw PoolError("pin: " + wanted.pin + " cannot be loaded, or exceeds the memory limit: pin another member");
        if (!wanted.thresholds.empty() && !pool_.thresholds().count(wanted.thresholds)) throw PoolError(no_thresholds(wanted.thresholds));
        chooser_.set_battery(wanted.battery);
        settings_ = wanted;
        look();
    }

    // Takes over what another pool's chooser has learnt of the load, which does not depend on members.
    void inherit(const PoolChooser& before) { monitor_ = before.monitor_; }

    // Takes an inference into account that came as far as an exit, or to its end; returns whether the monitor has learnt from it, so that
    // another choice may be better.
    bool learn(size_t number, double wall, double cpu, size_t exit = std::numeric_limits<size_t>::max()) {
        double split_ms[3];
        split(pool_.members[number], exit, split_ms);
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
        const Decision decision = chooser_.decide(monitor_, policy, member_of(row_) == target ? row_ : rows_of(target).front(), since_s);
        row_ = decision.row;
        const Choice choice = {member_of(row_), decision.event, decision.latency_ms};
        if (choice.member != target) switched_ms_ = begin;
        pace_.spend(clock_.spent_ms(begin));
        return choice;
    }

    // Of some members the best that fits as of the last choice, or the fastest where none fits.
    size_t best_of(const std::vector<size_t>& numbers) const {
        std::vector<size_t> rows;
        for (size_t number : numbers)
            for (size_t row : rows_of(number)) rows.push_back(row);
        return member_of(chooser_.best_of(rows));
    }
    bool fits(size_t number) const {
        const std::vector<size_t> rows = rows_of(number);
        return std::any_of(rows.begin(), rows.end(), [this](size_t row) { return chooser_.fits(row); });
    }

private:
    struct Place { size_t member, exit; };

    static std::vector<Place> answers(const Pool& pool) {
        std::vector<Place> found;
        for (size_t number = 0; number < pool.members.size(); ++number)
            for (size_t exit = 0; exit <= pool.members[number].exits.size(); ++exit) found.push_back({number, exit});
        return found;
    }

    static std::vector<Entry> entries(const Pool& pool, const std::vector<Place>& answers) {
        std::vector<Entry> found;
        for (const Place& each : answers) {
            const Member& member = pool.members[each.member];
            Entry entry = {member.accuracy_of(each.exit), {}, member.energy_mj};
            split(member, each.exit, entry.split_ms);
            if (each.exit < member.exits.size()) entry.energy_mj *= member.reach_ms(each.exit) / member.latency_ms;
            found.push_back(entry);
        }
        return found;
    }

    // Latency up to an exit by class of operators, in the proportions of the whole member.
    static void split(const Member& member, size_t exit, double split_ms[3]) {
        const double share = exit < member.exits.size() ? member.reach_ms(exit) / member.latency_ms : 1.0;
        for (int k = 0; k < 3; ++k) split_ms[k] = share * member.split_ms[k];
    }

    size_t member_of(size_t row) const { return answers_[chooser_.table.member[row]].member; }

    // The rows of a member's answers, the own one first.
    std::vector<size_t> rows_of(size_t number) const {
        std::vector<size_t> rows;
        for (size_t place = answers_.size(); place-- > 0;)
            if (answers_[place].member == number) rows.push_back(chooser_.table.row_of(place));
        return rows;
    }

    std::string no_thresholds(const std::string& name) const {
        std::string known;
        for (const std::string& each : pool_.thresholds()) known += (known.empty() ? "" : ", ") + each;
        return "thresholds: no member has any called " + name + ": " + (known.empty() ? "the pool has none" : "there are " + known);
    }

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
    const std::vector<Place> answers_;
    Chooser chooser_;
    size_t row_ = 0;  // of the last choice
    Settings settings_;
    Monitor monitor_;
    Pace pace_;
    Quota quota_;
    double looked_ms_ = 0.0, looked_at_quota_ms_ = 0.0;
    double switched_ms_ = -1.0;  // when another member was last chosen; negative: never
};
