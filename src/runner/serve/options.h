// The words of the command line: autotailor-serve POOL [--NAME VALUE ...].
#pragma once

#include <map>
#include <set>
#include <string>

#include "files/words.h"

class CommandLine {
public:
    CommandLine(int count, char** words, const std::set<std::string>& known) {
        for (int i = 1; i < count; ++i) {
            const std::string word = words[i];
            if (word.rfind("--", 0) != 0) {
                if (!pool.empty()) throw PoolError("expected one pool, not both " + pool + " and " + word);
                pool = word;
                continue;
            }
            if (!known.count(word)) throw PoolError("unknown option " + word + "; --help lists those that there are");
            if (i + 1 == count) throw PoolError(word + " needs a value");
            values_[word] = words[++i];
        }
    }

    std::string pool;

    bool has(const std::string& name) const { return values_.count(name) > 0; }
    std::string text(const std::string& name, const std::string& otherwise = "") const { return has(name) ? values_.at(name) : otherwise; }

    double number(const std::string& name, double otherwise) const {
        if (!has(name)) return otherwise;
        std::istringstream stream(values_.at(name));
        stream.imbue(std::locale::classic());
        double value = 0.0;
        if (!(stream >> value) || !stream.eof()) throw PoolError(name + " is " + values_.at(name) + ", expected a number");
        return value;
    }

private:
    std::map<std::string, std::string> values_;
};
