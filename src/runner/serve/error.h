// Errors of a pool: each names the object, what was expected, and the remedy.
#pragma once

#include <stdexcept>

class PoolError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
