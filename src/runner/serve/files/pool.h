// A pool on disk: pool.txt, the mapped files of weights, and each member's network and slices (docs/guides/pool.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exits.h"
#include "mapped.h"
#include "sha256.h"
#include "size.h"
#include "slices.h"
#include "words.h"

struct Member {
    std::string name, input_blob, output_blob;
    double accuracy = 0.0, latency_ms = 0.0;
    double split_ms[3] = {};  // in operators bound by compute, by memory, and in fixed costs; without load
    size_t peak_bytes = 0, weight_bytes = 0;
    double energy_mj = NAN;   // NaN: unknown
    Size input;
    size_t outputs = 0;
    std::string param;   // ncnn's text
    std::string slices;  // what its weights are gathered from
    std::vector<Exit> exits;  // before its own answer, in the order of the network
    std::map<std::string, Thresholds> thresholds;

    // From the input to an answer, the own one last, without load.
    double reach_ms(size_t exit) const { return exit < exits.size() ? exits[exit].latency_ms : latency_ms; }
    double accuracy_of(size_t exit) const { return exit < exits.size() ? exits[exit].accuracy : accuracy; }
    std::string exit_name(size_t exit) const { return exit < exits.size() ? exits[exit].name : pool_text::last_exit; }
};

struct Pool {
    std::string folder, model, device;
    int threads = 1;
    std::vector<int> cores;  // on which it was measured; empty where the system chose
    std::string task;  // of the networks; empty where they classify
    std::vector<std::pair<std::string, bool>> options;  // of ncnn, as in the measurements
    bool is_half = false;
    MappedFile weights, norms;
    std::vector<Member> members;  // by rising latency
    bool has_exits = false;
    Confidence confidence;  // where there are exits

    Sources sources() const { return {weights.data(), weights.size(), is_half, norms.data(), norms.size()}; }

    size_t row(const std::string& name) const {
        for (size_t i = 0; i < members.size(); ++i)
            if (members[i].name == name) return i;
        throw PoolError("the pool has no member " + name + ": its members are " + members.front().name + " to " + members.back().name);
    }

    // Names of thresholds that some member has.
    std::set<std::string> thresholds() const {
        std::set<std::string> names;
        for (const Member& member : members)
            for (const auto& each : member.thresholds) names.insert(each.first);
        return names;
    }

    // The largest picture that a member takes.
    Size largest_input() const {
        Size largest;
        for (const Member& member : members)
            if (member.input.count() > largest.count()) largest = member.input;
        return largest;
    }
};

namespace pool_text {

constexpr size_t most_members = 1024, most_text_bytes = 64 << 20, most_size = 65535;

inline std::string checked_text(const std::string& path, const std::string& digest) {
    const MappedFile file(path);
    if (file.size() > most_text_bytes) throw PoolError(path + ": is too large for a text");
    std::string text = file.text();
    if (sha256(text) != digest)
        throw PoolError(path + ": is not the file that the pool was written with (its SHA-256 differs): copy the whole pool again");
    return text;
}

inline MappedFile checked_file(const std::string& path, size_t size, const std::string& digest) {
    MappedFile file(path);
    if (file.size() != size)
        throw PoolError(path + ": has " + std::to_string(file.size()) + " bytes, expected " + std::to_string(size) + ": copy the whole pool again");
    if (sha256(file.data(), file.size()) != digest)
        throw PoolError(path + ": is not the file that the pool was written with (its SHA-256 differs): copy the whole pool again");
    return file;
}

inline Member member(Words& words, const std::string& folder) {
    Member found;
    found.name = safe_name(words, "a member's name");
    auto number = [&](const char* name, double& value) { words.expect(name); value = words.number(name); };
    words.expect("accuracy");
    found.accuracy = words.finite("accuracy");  // a predicted one is a sum of drops, and may be below 0
    number("latency_ms", found.latency_ms);
    number("compute_ms", found.split_ms[0]);
    number("memory_ms", found.split_ms[1]);
    number("fixed_ms", found.split_ms[2]);
    const double sum = found.split_ms[0] + found.split_ms[1] + found.split_ms[2];
    if (!(sum > 0) || std::fabs(sum - found.latency_ms) > 1e-3 * found.latency_ms)
        words.refuse("the latencies of the classes have the sum " + std::to_string(sum) + ", expected a positive latency_ms");
    words.expect("peak_bytes");
    found.peak_bytes = words.count("peak_bytes", size_t{1} << 40);
    words.expect("energy_mj");
    const std::string energy = words.word("energy_mj");
    if (energy != "-") found.energy_mj = Words(energy, "energy_mj").finite("energy_mj");  // above idle, measured with noise
    words.expect("input");
    found.input_blob = words.word("a blob");
    const std::vector<std::string> sizes = split(words.word("the size of the input"), 'x');
    if (sizes.size() != 3) words.refuse("an input has three sizes, CxHxW");
    int* each[3] = {&found.input.channels, &found.input.height, &found.input.width};
    for (int i = 0; i < 3; ++i) *each[i] = static_cast<int>(words.parsed(sizes[static_cast<size_t>(i)], "a size of the input", most_size));
    if (found.input.count() == 0 || found.input.count() > size_t{1} << 28) words.refuse("the input " + found.input.text() + " is empty or too large");
    words.expect("output");
    found.output_blob = words.word("a blob");
    found.outputs = words.count("the number of outputs", size_t{1} << 24);
    words.expect("param");
    found.param = checked_text(folder + "/members/" + found.name + ".param", words.word("a SHA-256"));
    words.expect("slices");
    const std::string slices = folder + "/members/" + found.name + ".slices";
    found.slices = checked_text(slices, words.word("a SHA-256"));
    words.expect_end();
    return found;
}

inline MappedFile weights(Words& words, Pool& pool) {
    const std::string kind = words.word("fp32 or fp16");
    if (kind != "fp32" && kind != "fp16") words.refuse("weights are fp32 or fp16, not " + kind);
    pool.is_half = kind == "fp16";
    const size_t size = words.count("the size of weights.bin", size_t{1} << 40);
    return checked_file(pool.folder + "/weights.bin", size, words.word("a SHA-256"));
}

inline void runtime(Words& words, Pool& pool) {
    pool.threads = static_cast<int>(words.count("the number of threads", 256));
    if (pool.threads < 1) words.refuse("a network needs at least one thread");
    while (!words.at_end()) {
        const std::vector<std::string> option = split(words.word("an option"), '=');
        if (option.size() != 2 || (option[1] != "0" && option[1] != "1")) words.refuse("an option is NAME=0 or NAME=1");
        pool.options.emplace_back(option[0], option[1] == "1");
    }
}

// Cores are numbers below those that a set of cores of the system holds.
inline void cores(Words& words, Pool& pool) {
    while (!words.at_end()) pool.cores.push_back(static_cast<int>(words.count("the number of a core", 1023)));
}

// The lines of pool.txt before its last one, whose digest is checked.
inline std::vector<std::string> lines(const std::string& path) {
    const MappedFile file(path);
    if (file.size() > most_text_bytes) throw PoolError(path + ": is too large for a text");
    const std::string text = file.text();
    const size_t end = text.rfind("end ");
    if (end == std::string::npos || (end > 0 && text[end - 1] != '\n') || text.size() != end + 4 + 64 + 1 || text.back() != '\n')
        throw PoolError(path + ": is cut off, or is no pool: expected a last line: end SHA256: copy the whole pool again");
    if (text.substr(end + 4, 64) != sha256(text.data(), end))
        throw PoolError(path + ": has been changed since it was written (its SHA-256 differs): copy the whole pool again");
    std::vector<std::string> found = split(text.substr(0, end), '\n');
    found.pop_back();
    return found;
}

}  // namespace pool_text

// Refuses a pool that cannot take another one's place while clients are connected: they know the model's classes, and send
// pictures at the size of any member's input.
inline void check_successor(const Pool& before, const Pool& after) {
    const std::string remedy = ": start another server for it, with another address";
    if (after.model != before.model || after.device != before.device || after.members[0].outputs != before.members[0].outputs)
        throw PoolError("the new pool is of " + after.model + " on " + after.device + " with " + std::to_string(after.members[0].outputs) +
                        " outputs, and clients expect " + before.model + " on " + before.device + " with " + std::to_string(before.members[0].outputs) + remedy);
    for (const Member& old : before.members)
        if (std::none_of(after.members.begin(), after.members.end(), [&](const Member& each) { return each.input == old.input; }))
            throw PoolError("no member of the new pool takes pictures of " + old.input.text() + ", which clients may send" + remedy);
}

// Reads and checks a pool: every file has the size and the hash that pool.txt says, and every slice lies inside its file.
inline Pool open_pool(const std::string& folder) {
    Pool pool;
    pool.folder = folder;
    const std::string path = folder + "/pool.txt";
    std::vector<std::string> lines = pool_text::lines(path);
    if (lines.empty() || lines[0] != "autotailor-pool 1")
        throw PoolError(path + ": expected the first line to be: autotailor-pool 1: update the program, or make the pool anew with the rule pool");
    size_t further = 0;  // lines behind that of the runtime which not every pool has
    for (const std::string head : {"cores", "task"}) {
        if (lines.size() <= 4 || lines[4].rfind(head + " ", 0) != 0) continue;
        Words words(lines[4], path + ", line " + std::to_string(5 + further++));
        words.expect(head.c_str());
        if (head == "cores") pool_text::cores(words, pool);
        else pool.task = words.word("a name");
        words.expect_end();
        lines.erase(lines.begin() + 4);
    }
    const char* heads[] = {"model", "device", "runtime", "weights", "norms"};
    std::set<std::string> names;
    for (size_t i = 1; i < lines.size(); ++i) {
        Words words(lines[i], path + ", line " + std::to_string(i + 1 + (i >= 4 ? further : 0)));
        const std::string kind = lines[i].substr(0, lines[i].find(' '));
        const bool is_of_exits = i > 6 && pool.has_exits && !pool.members.empty() && (kind == "exit" || kind == "thresholds");
        const bool is_confidence = i == 6 && kind == "confidence";
        words.expect(i <= 5 ? heads[i - 1] : is_of_exits || is_confidence ? kind.c_str() : "member");
        if (i == 1) pool.model = words.word("a name");
        else if (i == 2) pool.device = words.word("a name");
        else if (i == 3) pool_text::runtime(words, pool);
        else if (i == 4) pool.weights = pool_text::weights(words, pool);
        else if (i == 5) {
            const size_t size = words.count("the size of norms.bin", size_t{1} << 40);
            pool.norms = pool_text::checked_file(folder + "/norms.bin", size, words.word("a SHA-256"));
        } else if (is_confidence) {
            pool.confidence = pool_text::confidence(words);
            pool.has_exits = true;
        } else if (is_of_exits) {
            Member& member = pool.members.back();
            if (kind == "thresholds") pool_text::thresholds(words, member.exits.size(), member.thresholds);
            else if (!member.thresholds.empty()) words.refuse("the exits of a member stand before their thresholds");
            else member.exits.push_back(pool_text::exit_of(words, member.exits, member.output_blob, member.latency_ms));
        } else {
            pool.members.push_back(pool_text::member(words, folder));
            const Member& member = pool.members.back();
            if (!names.insert(member.name).second) words.refuse("two members are called " + member.name);
            if (pool.members.size() > pool_text::most_members) words.refuse("a pool has at most " + std::to_string(pool_text::most_members) + " members");
            for (const Piece& piece : parse_slices(member.slices, pool.sources(), folder + "/members/" + member.name + ".slices"))
                pool.members.back().weight_bytes += 4 * piece.count;
        }
        words.expect_end();
    }
    if (pool.members.empty()) throw PoolError(path + ": names no member: make the pool anew with the rule pool");
    if (pool.has_exits && std::all_of(pool.members.begin(), pool.members.end(), [](const Member& each) { return each.exits.empty(); }))
        throw PoolError(path + ": has a line confidence, and no member has exits: make the pool anew");
    for (const Member& member : pool.members)
        if (member.outputs != pool.members[0].outputs || member.input.channels != pool.members[0].input.channels)
            throw PoolError(path + ": " + member.name + " has other outputs or channels than " + pool.members[0].name);
    return pool;
}
