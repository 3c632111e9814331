// The members of a pool as the choice among them knows them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "../error.h"

struct Entry {
    double accuracy = 0.0;
    double split_ms[3] = {};  // compute, memory, fixed
    double energy_mj = NAN;   // NaN: unknown

    double latency_ms() const { return split_ms[0] + split_ms[1] + split_ms[2]; }
};

// Rows by falling accuracy and, where accuracy is equal, by rising latency. One array for each column: a decision reads
// whole columns.
struct Table {
    std::vector<size_t> member;  // of each row: its number among the entries that the table was made of
    std::vector<double> accuracy, energy_mj, split_ms[3], latency_ms;
    std::vector<char> is_usable;  // a member that cannot be loaded never fits
    size_t fastest = 0;

    explicit Table(const std::vector<Entry>& entries) : member(entries.size()), is_usable(entries.size(), 1) {
        if (entries.empty()) throw PoolError("a table needs at least one member");
        std::iota(member.begin(), member.end(), 0);
        std::stable_sort(member.begin(), member.end(), [&](size_t a, size_t b) {
            return entries[a].accuracy != entries[b].accuracy ? entries[a].accuracy > entries[b].accuracy
                                                              : entries[a].latency_ms() < entries[b].latency_ms();
        });
        for (size_t each : member) {
            accuracy.push_back(entries[each].accuracy);
            energy_mj.push_back(entries[each].energy_mj);
            for (int k = 0; k < 3; ++k) split_ms[k].push_back(entries[each].split_ms[k]);
            latency_ms.push_back(entries[each].latency_ms());
        }
        fastest = static_cast<size_t>(std::min_element(latency_ms.begin(), latency_ms.end()) - latency_ms.begin());
    }

    size_t size() const { return member.size(); }

    size_t row_of(size_t number) const {
        return static_cast<size_t>(std::find(member.begin(), member.end(), number) - member.begin());
    }
};
