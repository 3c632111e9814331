// The words of a line, one after the other. Numbers have a point, whatever the language of the program around is.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"

class Words {
public:
    Words(const std::string& line, std::string place) : place_(std::move(place)), stream_(line) {
        stream_.imbue(std::locale::classic());
    }

    [[noreturn]] void refuse(const std::string& what) const {
        throw PoolError(place_ + ": " + what + ": the pool is damaged or of another version, make it anew with the rule pool");
    }

    bool at_end() { return (stream_ >> std::ws).eof(); }

    std::string word(const char* what) {
        std::string found;
        if (!(stream_ >> found)) refuse(std::string("expected ") + what + " at the end of the line");
        return found;
    }

    void expect(const char* name) {
        const std::string found = word(name);
        if (found != name) refuse("expected " + std::string(name) + ", not " + found);
    }

    // A number that is finite.
    double finite(const char* what) { return within(what, -std::numeric_limits<double>::max(), "expected a number"); }

    // A number that is finite and not negative.
    double number(const char* what) { return within(what, 0.0, "expected a number that is not negative"); }

    // A count of at most some value.
    size_t count(const char* what, size_t most) { return parsed(word(what), what, most); }

    size_t parsed(const std::string& text, const char* what, size_t most) const {
        size_t value = 0;
        bool is_count = !text.empty();
        for (char digit : text) {
            is_count = digit >= '0' && digit <= '9' && value <= (SIZE_MAX - 9) / 10;
            if (!is_count) break;
            value = value * 10 + static_cast<size_t>(digit - '0');
        }
        if (!is_count || value > most) refuse(std::string(what) + " is " + text + ", expected a count of at most " + std::to_string(most));
        return value;
    }

    void expect_end() {
        if (!at_end()) refuse("expected the end of the line, not " + word("a word"));
    }

private:
    double within(const char* what, double least, const char* expected) {
        const std::string text = word(what);
        std::istringstream stream(text);
        stream.imbue(std::locale::classic());
        double value = 0.0;
        if (!(stream >> value) || !stream.eof() || !std::isfinite(value) || value < least) refuse(std::string(what) + " is " + text + ", " + expected);
        return value;
    }

    std::string place_;
    std::istringstream stream_;
};

// The parts of a text between some separator.
inline std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (char letter : text) {
        if (letter == separator) parts.emplace_back();
        else parts.back() += letter;
    }
    return parts;
}
