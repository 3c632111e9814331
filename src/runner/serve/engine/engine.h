// A pool that runs: it chooses a member between inferences, and runs the ones that are materialised.
//
// Materialised are the member that runs, the one that is to run next, and the fastest one. The choice names the member that
// is to run, the target. Until the target is prepared, the present member runs on where it still fits, and otherwise the
// best materialised one. After a switch the member that ran before stays for a while as the next one, because loads come
// and go. A switch takes place between two inferences.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "anytime.h"
#include "chooser.h"
#include "counters.h"
#include "picture.h"
#include "preparer.h"

struct Answer {
    enum Flags { switched = 1, nothing_fits = 2, late = 4, early = 8 };
    size_t member = 0, exit = 0;  // the exit that answered; as many as the member has for its own answer
    unsigned flags = 0;
    double latency_ms = 0.0, cpu_ms = 0.0, confidence = NAN;  // how sure the exit is; NaN in a pool without exits
    const std::vector<float>* outputs = nullptr;  // valid until the next inference
};

// Not safe for several threads at once: the server has one, and the library takes turns.
class Engine {
public:
    Engine(Pool opened, const Settings& wanted, const Sensors& sensors)
        : pool_(std::move(opened)), chooser_(pool_, sensors), loaded_(pool_.members.size()), preparer_(pool_),
          clock_(pool_.threads, preparer_.clock()), anytime_(pool_.confidence, clock_), fastest_(chooser_.fastest()) {
        counters_.inferences.resize(pool_.members.size());
        for (const Member& member : pool_.members) counters_.exits.emplace_back(member.exits.size() + 1);
        limit_memory(wanted.most_memory_bytes);
        chooser_.apply(wanted);
        load(fastest_);
        running_ = target_ = fastest_;
        choose(wanted.policy.deadline_ms);
        if (!loaded_[target_]) load(target_);
        running_ = ran_ = target_;
    }

    const Pool& pool() const { return pool_; }
    const PoolChooser& chooser() const { return chooser_; }
    const Settings& settings() const { return chooser_.settings(); }
    const Counters& counters() const { return counters_; }
    const std::map<std::string, std::string>& broken() const { return broken_; }
    size_t running() const { return running_; }
    size_t target() const { return target_; }
    bool is_loaded(size_t number) const { return loaded_[number] != nullptr; }
    void failed() { ++counters_.errors; }

    // Whether nothing in the pool has fitted for long, so that the rule search should run again.
    bool wants_search() const { return without_fit_ms_ >= 0 && wall_ms() - without_fit_ms_ >= 1e3 * settings().long_s; }

    // Runs the best member on a picture (CHW, normalised) that has the size of one member's input.
    // A deadline of 0 is that of the settings.
    Answer infer(const float* picture, const Size& size, double deadline_ms) {
        const double asked_ms = wall_ms();
        if (!is_input(size)) throw PoolError("infer: the picture has the size " + size.text() + ", and members take " + inputs());
        if (const size_t wrong = not_finite(picture, size.count()))
            throw PoolError("infer: " + std::to_string(wrong) + " of the picture's " + std::to_string(size.count()) +
                            " numbers are NaN or infinite: prepare it as pool.json says");
        if (!(deadline_ms >= 0 && std::isfinite(deadline_ms))) throw PoolError("infer: the deadline is no time: expected milliseconds, or 0 for the server's");
        const double deadline = deadline_ms > 0 ? deadline_ms : settings().policy.deadline_ms;
        tidy();
        if (deadline != decided_for_ms_) choose(deadline);
        if (loaded_[target_]) run_from_now(target_);
        const Member& member = pool_.members[running_];
        Answer answer;
        answer.member = running_;
        const double begin = wall_ms();
        const float* input = at_size(picture, size, member.input);
        if (member.exits.empty()) run(input, answer);
        else run_until(input, asked_ms + deadline, answer);
        answer.latency_ms = std::max(wall_ms() - begin, 1e-6);
        if (answer.exit < member.exits.size()) answer.flags |= Answer::early;
        ++counters_.exits[running_][answer.exit];
        if (counters_.ran(running_, member.accuracy_of(answer.exit), answer.latency_ms, answer.cpu_ms, deadline)) answer.flags |= Answer::late;
        if (running_ != ran_) {
            ++counters_.switches;
            answer.flags |= Answer::switched;
            ran_ = running_;
        }
        if (without_fit_ms_ >= 0) answer.flags |= Answer::nothing_fits;
        const double took = member.exits.empty() ? answer.latency_ms : reached_.wall_ms;
        if (chooser_.learn(answer.member, took, answer.cpu_ms, answer.exit)) choose(deadline);
        anytime_.handed_on();
        return answer;
    }

    // Takes other settings, or none of them where one is invalid.
    void apply(const Settings& wanted) {
        collect();
        chooser_.apply(wanted);
        choose(wanted.policy.deadline_ms);
    }

    // Takes over what is known of the load, and what is asked for, from another pool's engine.
    void inherit(const Engine& before) {
        chooser_.inherit(before.chooser_);
        apply(for_successor(before.settings(), pool_));
    }

    // What is to be done now and then: takes what is prepared, and frees the member that ran before. A caller without
    // requests calls it every second.
    void tidy() {
        collect();
        if (is_held_) release();
        if (previous_ != none && wall_ms() - switched_ms_ > 1e3 * settings().keep_s) forget_previous();
    }

private:
    static constexpr size_t none = static_cast<size_t>(-1);

    // Runs the member to its end.
    void run(const float* input, Answer& answer) {
        const double cpu = clock_.ms();
        answer.outputs = &loaded_[running_]->infer(input);
        answer.cpu_ms = std::max(clock_.ms() - cpu, 1e-6);
        if (pool_.has_exits) answer.confidence = pool_.confidence.of(*answer.outputs, true);
    }

    // Runs the member until an exit is sure, or until a time.
    void run_until(const float* input, double until_ms, Answer& answer) {
        const Member& member = pool_.members[running_];
        const auto found = member.thresholds.find(settings().thresholds);
        reached_ = anytime_.answer(*loaded_[running_], input, found == member.thresholds.end() ? nullptr : &found->second, until_ms);
        answer.exit = reached_.exit;
        answer.confidence = reached_.confidence;
        answer.cpu_ms = reached_.cpu_ms;
        answer.outputs = &reached_.outputs;
    }

    // Members that do not fit into the memory limit beside the fastest one are never chosen.
    void limit_memory(size_t most) {
        if (most == 0) return;
        const size_t least = bytes(fastest_);
        if (least > most)
            throw PoolError("the smallest member, " + pool_.members[fastest_].name + ", takes " + std::to_string(least) + " bytes, and the memory limit is " +
                            std::to_string(most) + ": raise the limit");
        for (size_t number = 0; number < loaded_.size(); ++number)
            if (number != fastest_ && bytes(number) > most - least) leave_out(number, "exceeds the memory limit beside the smallest member");
    }

    size_t bytes(size_t number) const { return std::max(pool_.members[number].peak_bytes, pool_.members[number].weight_bytes); }

    void leave_out(size_t number, const std::string& why) {
        chooser_.leave_out(number);
        broken_[pool_.members[number].name] = why;
        event("broken", number, target_ == number ? running_ : target_);
    }

    void load(size_t number) { loaded_[number] = std::make_unique<Loaded>(pool_, number); }

    void event(const char* what, size_t from, size_t to) { counters_.happened(what, pool_.members[from].name, pool_.members[to].name); }

    // Decides which member is to run next, and prepares it.
    void choose(double deadline_ms) {
        decided_for_ms_ = deadline_ms;
        const PoolChooser::Choice choice = chooser_.choose(target_, deadline_ms);
        if (choice.event != Event::nothing_fits) {
            without_fit_ms_ = -1.0;
        } else if (without_fit_ms_ < 0) {
            without_fit_ms_ = wall_ms();
            ++counters_.nothing_fits;
            event(text_of(choice.event), target_, choice.member);
        }
        if (choice.member != target_ && choice.event != Event::nothing_fits) event(text_of(choice.event), target_, choice.member);
        target_ = choice.member;
        if (!ran_any()) return;  // the engine is being made, and loads by itself
        if (loaded_[target_]) return run_from_now(target_);
        make_room();
        if (asked_ != target_) preparer_.want(asked_ = target_);
        if (choice.event != Event::pinned && !chooser_.fits(running_)) run_from_now(best_loaded());
    }

    bool ran_any() const { return ran_ != none; }

    size_t best_loaded() const {
        std::vector<size_t> numbers;
        for (size_t number = 0; number < loaded_.size(); ++number)
            if (loaded_[number]) numbers.push_back(number);
        return chooser_.best_of(numbers);
    }

    void run_from_now(size_t number) {
        if (number == running_) return;
        previous_ = std::exchange(running_, number);
        switched_ms_ = wall_ms();
        release();
    }

    // Takes what the preparer has finished.
    void collect() {
        Preparer::Done done;
        while (preparer_.take(done)) {
            if (asked_ == done.number) asked_ = none;
            if (done.network) {
                ++counters_.preparations;
                counters_.prepared_sum_ms += done.ms;
                loaded_[done.number] = std::move(done.network);
                release();
            } else {
                leave_out(done.number, done.error);
                if (target_ == done.number) target_ = running_;
                choose(decided_for_ms_);
            }
        }
    }

    // Frees the members that need not be materialised.
    void release() {
        is_held_ = false;
        for (size_t number = 0; number < loaded_.size(); ++number) {
            if (!loaded_[number] || number == running_ || number == target_ || number == previous_ || number == fastest_) continue;
            if (anytime_.holds(loaded_[number].get())) is_held_ = true;  // until a layer is done
            else preparer_.retire(std::move(loaded_[number]));
        }
    }

    void forget_previous() {
        previous_ = none;
        release();
    }

    // While the target is prepared, the member that ran before goes, and under a memory limit the present one, too.
    void make_room() {
        forget_previous();
        size_t held = bytes(target_);
        for (size_t number = 0; number < loaded_.size(); ++number)
            if (loaded_[number]) held += bytes(number);
        const size_t most = settings().most_memory_bytes;
        if (most == 0 || held <= most || running_ == fastest_) return;
        run_from_now(fastest_);
        forget_previous();
    }

    bool is_input(const Size& size) const {
        for (const Member& member : pool_.members)
            if (member.input == size) return true;
        return false;
    }

    std::string inputs() const {
        std::string text;
        for (const Member& member : pool_.members)
            if (text.find(member.input.text()) == std::string::npos) text += (text.empty() ? "" : ", ") + member.input.text();
        return text;
    }

    // The picture at a member's size; the same filter serves each picture of a size.
    const float* at_size(const float* picture, const Size& from, const Size& to) {
        if (from == to) return picture;
        std::unique_ptr<Resizer>& resizer = resizers_[{from.height, from.width, to.height, to.width}];
        if (!resizer) resizer = std::make_unique<Resizer>(from, to);
        resized_.resize(to.count());
        resizer->resize(picture, resized_.data());
        return resized_.data();
    }

    const Pool pool_;
    PoolChooser chooser_;
    Counters counters_;
    std::map<std::string, std::string> broken_;  // members that cannot be used, and why
    std::vector<std::unique_ptr<Loaded>> loaded_;  // by member
    std::map<std::vector<int>, std::unique_ptr<Resizer>> resizers_;
    std::vector<float> resized_;
    Preparer preparer_;  // ends before what it reads
    CpuClock clock_;
    Anytime anytime_;  // ends before the members that it runs
    Anytime::Reached reached_;
    bool is_held_ = false;  // a member that is to be freed was still at its last layer
    const size_t fastest_;
    size_t running_ = 0, target_ = 0;
    size_t ran_ = none, previous_ = none, asked_ = none;  // the member of the last inference; that before a switch; the one in preparation
    double switched_ms_ = 0.0, decided_for_ms_ = 0.0;
    double without_fit_ms_ = -1.0;  // since when nothing fits; negative while something does
};
