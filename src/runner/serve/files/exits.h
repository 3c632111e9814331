// Exits of members: where a network can answer before its end, how sure such an answer is, and from which confidence on it counts.
// In pool.txt the lines of its exits follow a member's own line, and those of thresholds follow these.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "words.h"

struct Exit {
    std::string name, blob;
    double accuracy = 0.0;
    double latency_ms = 0.0;  // from the input to its answer, with the exits before it; without load
};

// The confidence from which a picture leaves, by exit; infinite where none leaves.
using Thresholds = std::vector<double>;

// How sure an answer is: its largest probability, or the margin to the second one. Exits answer with logits, and so do most networks.
struct Confidence {
    bool is_margin = false, are_probabilities = false;  // the latter: those of a network's own answer

    double of(const std::vector<float>& outputs, bool is_last) const {
        double largest = -std::numeric_limits<double>::infinity(), second = largest, sum = 0.0;
        for (float each : outputs) {
            second = std::max(second, std::min<double>(each, largest));
            largest = std::max<double>(largest, each);
        }
        const bool is_probability = is_last && are_probabilities;
        for (float each : outputs) sum += is_probability ? each : std::exp(each - largest);
        const double most = is_probability ? largest : 1.0, next = is_probability ? second : std::exp(second - largest);
        return (is_margin ? most - next : most) / sum;
    }
};

namespace pool_text {

constexpr size_t most_exits = 16;
constexpr const char* last_exit = "last";  // what a network's own answer is called

// A name may become a part of a path, and must therefore not leave the folder.
inline std::string safe_name(Words& words, const char* what) {
    const std::string name = words.word(what);
    const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (name.find_first_not_of(allowed) != std::string::npos)
        words.refuse(std::string(what) + " holds a sign that is no letter, digit, point or dash");
    if (name.front() == '.' || name.size() > 128) words.refuse(std::string(what) + " is no name");
    return name;
}

inline Confidence confidence(Words& words) {
    const std::string kind = words.word("probability or margin"), outputs = words.word("logits or probabilities");
    if (kind != "probability" && kind != "margin") words.refuse("a confidence is a probability or a margin, not " + kind);
    if (outputs != "logits" && outputs != "probabilities") words.refuse("a network answers with logits or probabilities, not " + outputs);
    return {kind == "margin", outputs == "probabilities"};
}

inline Exit exit_of(Words& words, const std::vector<Exit>& before, const std::string& own_blob, double whole_ms) {
    Exit found;
    found.name = safe_name(words, "an exit's name");
    words.expect("accuracy");
    found.accuracy = words.finite("accuracy");
    words.expect("latency_ms");
    found.latency_ms = words.number("latency_ms");
    words.expect("output");
    found.blob = words.word("a blob");
    if (found.name == last_exit) words.refuse("an exit is called last, as the member's own answer is");
    for (const Exit& each : before)
        if (each.name == found.name || each.blob == found.blob) words.refuse("two exits of a member have the name " + found.name + " or the blob " + found.blob);
    if (found.blob == own_blob) words.refuse("the exit " + found.name + " has the blob of the member's own answer");
    if (!(found.latency_ms > 0) || found.latency_ms < (before.empty() ? 0.0 : before.back().latency_ms) || found.latency_ms > whole_ms)
        words.refuse("latency_ms of the exit " + found.name + " is not positive, or not between those of the exit before and of the member");
    if (before.size() == most_exits) words.refuse("a member has at most " + std::to_string(most_exits) + " exits");
    return found;
}

// A name, and a threshold for each exit of the member before: a confidence, or - where no picture leaves.
inline void thresholds(Words& words, size_t exits, std::map<std::string, Thresholds>& known) {
    const std::string name = words.word("a name");  // of a budget: 60%
    Thresholds found;
    while (!words.at_end()) {
        const std::string text = words.word("a threshold");
        found.push_back(text == "-" ? std::numeric_limits<double>::infinity() : Words(text, "the threshold " + text).number("a threshold"));
    }
    if (exits == 0 || found.size() != exits) words.refuse("there are " + std::to_string(found.size()) + " thresholds for " + std::to_string(exits) + " exits");
    if (!known.emplace(name, found).second) words.refuse("two lines of thresholds of a member are called " + name);
}

}  // namespace pool_text
