// JSON: written piece by piece, and read where it is one object of numbers, strings and null.
#pragma once

#include <cmath>
#include <locale>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "../../machine.h"

// {"name": value, ...}; a number that is not finite is null.
class JsonObject {
public:
    JsonObject& raw(const std::string& name, const std::string& value) {
        text_ += (text_.empty() ? "" : ", ") + quoted(name) + ": " + value;
        return *this;
    }
    JsonObject& add(const std::string& name, const std::string& value) { return raw(name, quoted(value)); }
    JsonObject& add(const std::string& name, double value) { return raw(name, number(value)); }
    JsonObject& add(const std::string& name, uint64_t value) { return raw(name, std::to_string(value)); }
    std::string text() const { return "{" + text_ + "}"; }

    static std::string number(double value) {
        if (!std::isfinite(value)) return "null";
        std::ostringstream stream;
        stream.imbue(std::locale::classic());
        stream.precision(10);
        stream << value;
        return stream.str();
    }

private:
    std::string text_;
};

inline std::string json_list(const std::vector<std::string>& values) {
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
    return "[" + text + "]";
}

struct JsonValue {
    enum Kind { null, number, string } kind = null;
    double value = 0.0;
    std::string text;
};

// Reads an object without nesting; refuses everything else.
class JsonReader {
public:
    explicit JsonReader(const std::string& text) : text_(text) {}

    std::vector<std::pair<std::string, JsonValue>> object() {
        std::vector<std::pair<std::string, JsonValue>> found;
        expect('{');
        for (bool is_first = true; !at('}'); is_first = false) {
            if (!is_first) expect(',');
            skip();
            std::string name = string();
            expect(':');
            found.emplace_back(std::move(name), value());
        }
        expect('}');
        skip();
        if (at_ != text_.size()) refuse();
        return found;
    }

private:
    [[noreturn]] void refuse() const {
        throw PoolError("expected a JSON object of numbers, strings and null, without nesting; it is wrong at byte " + std::to_string(at_));
    }
    void skip() {
        while (at_ < text_.size() && std::string(" \t\r\n").find(text_[at_]) != std::string::npos) ++at_;
    }
    bool at(char letter) {
        skip();
        return at_ < text_.size() && text_[at_] == letter;
    }
    void expect(char letter) {
        if (!at(letter)) refuse();
        ++at_;
    }

    JsonValue value() {
        JsonValue found;
        if (at('"')) {
            found.kind = JsonValue::string;
            found.text = string();
        } else if (text_.compare(at_, 4, "null") == 0) {
            at_ += 4;
        } else {
            found.kind = JsonValue::number;
            const size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
            const std::string digits = text_.substr(at_, end == std::string::npos ? end : end - at_);
            std::istringstream stream(digits);
            stream.imbue(std::locale::classic());
            if (digits.empty() || digits[0] == '+' || digits[0] == '.' || !(stream >> found.value) || !stream.eof()) refuse();
            at_ += digits.size();
        }
        return found;
    }

    // Names and members' names have no signs that need an escape, but for a quote and a backslash.
    std::string string() {
        std::string found;
        if (at_ >= text_.size() || text_[at_] != '"') refuse();
        for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
            if (static_cast<unsigned char>(text_[at_]) < 0x20) refuse();
            if (text_[at_] == '\\') {
                ++at_;
                if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\\' && text_[at_] != '/')) refuse();
            }
            found += text_[at_];
        }
        if (at_ >= text_.size()) refuse();
        ++at_;
        return found;
    }

    const std::string& text_;
    size_t at_ = 0;
};
