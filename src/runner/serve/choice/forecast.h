// The forecast of the load: autoregressive of order 2 (AdaScale, section IV-A), and used only while it beats 'as now' on what has
// just happened: before each value arrives, both say what it will be, and their squared errors are compared.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

// Coefficients of x_t = c_0 + c_1 x_(t-1) + c_2 x_(t-2) by least squares: of several solutions the shortest.
//
// One-sided Jacobi rotations make the columns of the design orthogonal: A V = U S. Small singular values count as zero,
// so that a constant series, whose columns are all alike, has a solution, too.
inline std::array<double, 3> fitted(const std::vector<double>& x) {
    constexpr size_t columns = 3, most_rows = 64;
    const size_t rows = x.size() - 2;
    double a[columns][most_rows], v[columns][columns] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (size_t t = 0; t < rows; ++t) a[0][t] = 1.0, a[1][t] = x[t + 1], a[2][t] = x[t];
    auto dot = [&](const double* p, const double* q) {
        double sum = 0.0;
        for (size_t t = 0; t < rows; ++t) sum += p[t] * q[t];
        return sum;
    };
    constexpr double tiny = 1e-15;
    for (int sweep = 0, rotated = 1; rotated && sweep < 30; ++sweep) {
        rotated = 0;
        for (size_t i = 0; i < columns; ++i)
            for (size_t j = i + 1; j < columns; ++j) {
                const double alpha = dot(a[i], a[i]), beta = dot(a[j], a[j]), gamma = dot(a[i], a[j]);
                if (std::fabs(gamma) <= tiny * std::sqrt(alpha * beta) || gamma == 0.0) continue;
                rotated = 1;
                const double zeta = (beta - alpha) / (2 * gamma);
                const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
                const double c = 1 / std::sqrt(1 + t * t), s = c * t;
                auto turn = [&](double& p, double& q) { const double old = p; p = c * old - s * q; q = s * old + c * q; };
                for (size_t k = 0; k < rows; ++k) turn(a[i][k], a[j][k]);
                for (size_t k = 0; k < columns; ++k) turn(v[i][k], v[j][k]);
            }
    }
    double norms[columns], largest = 0.0;
    for (size_t i = 0; i < columns; ++i) largest = std::max(largest, norms[i] = std::sqrt(dot(a[i], a[i])));
    std::array<double, columns> found = {};
    for (size_t i = 0; i < columns; ++i) {
        if (norms[i] <= std::numeric_limits<double>::epsilon() * static_cast<double>(std::max(rows, columns)) * largest) continue;
        const double share = dot(a[i], x.data() + 2) / (norms[i] * norms[i]);
        for (size_t k = 0; k < columns; ++k) found[k] += share * v[i][k];
    }
    return found;
}

class Forecast {
public:
    static constexpr size_t order = 2, window = 48, backtest = 16;

    void observe(double value) {
        if (has_said_) {
            if (errors_.size() == backtest) errors_.erase(errors_.begin());
            errors_.push_back({(value - said_) * (value - said_), (value - values_.back()) * (value - values_.back())});
        }
        if (values_.size() == window) values_.erase(values_.begin());
        values_.push_back(value);
        has_said_ = values_.size() >= 4 * order;
        if (!has_said_) return;
        coefficients_ = fitted(values_);
        said_ = next(1);
    }

    // Whether the backtest is complete, and the model's errors in it are smaller than those of 'as now'.
    bool is_used() const {
        double model = 0.0, as_now = 0.0;
        for (const auto& [of_model, of_now] : errors_) model += of_model, as_now += of_now;
        return errors_.size() == backtest && model < as_now;
    }

    // What the value is forecast to be some steps on, as a multiple of the present one.
    double factor(int steps) const {
        if (!is_used() || values_.back() <= 0) return 1.0;
        return std::clamp((steps == 1 ? said_ : next(steps)) / values_.back(), 0.25, 4.0);
    }

private:
    double next(int steps) const {
        double older = values_[values_.size() - 2], latest = values_.back();
        for (int i = 0; i < steps; ++i) {
            const double value = coefficients_[0] + (coefficients_[1] * latest + coefficients_[2] * older);
            older = latest;
            latest = value;
        }
        return latest;
    }

    std::vector<double> values_;
    std::vector<std::pair<double, double>> errors_;  // of the last forecasts, squared: the model's, and that of 'as now'
    std::array<double, 3> coefficients_ = {};
    double said_ = 0.0;
    bool has_said_ = false;
};
