// The load model: how much slower each class of operators runs now, learnt from the inferences themselves.
//
// An inference of a member with latencies s_k without load (in operators of class k) takes the CPU time c. With s = sum_k s_k, the
// shares f_k = s_k / s and y = c / s, recursive least squares with the factor L of forgetting find the slowdowns theta that minimise
//
//     sum_i L^(n-i) (y_i - f_i theta)^2 + sum_i (1 - L) L^(n-i) R |theta - rho_i 1|^2 + L^n R |theta - 1|^2
//
// after n inferences. R weighs the assumption that all classes are slowed down alike, and rho_i is the mean of y so far, with the same
// forgetting: what the inferences say nothing of follows the common ratio, AdaptiveNet's r (section 5.3). R is small, because CPU
// times vary by a few percent, and classes differ by tens of percent. No class is assumed to run more than five times as fast.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

class LoadModel {
public:
    static constexpr double forgetting = 0.8, prior = 0.02, least_slowdown = 0.2;

    double slowdown[3] = {1.0, 1.0, 1.0};
    double ratio = 1.0;  // slowdown of all classes together

    explicit LoadModel(double ratio_of_all = 1.0) : ratio(ratio_of_all) {
        for (int i = 0; i < 3; ++i) {
            slowdown[i] = ratio_of_all;
            information_[i][i] = prior;
            moment_[i] = prior * ratio_of_all;
        }
    }

    // One more inference of a member with these latencies without load; its CPU time is positive.
    void observe(const double split_ms[3], double cpu_ms) {
        constexpr double kept = forgetting, fresh = 1 - forgetting;
        const double nominal = split_ms[0] + split_ms[1] + split_ms[2], slower = cpu_ms / nominal;
        ratio = kept * ratio + fresh * slower;
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j)
                information_[i][j] = kept * information_[i][j] + split_ms[i] / nominal * (split_ms[j] / nominal);
            information_[i][i] += fresh * prior;
            moment_[i] = kept * moment_[i] + slower * (split_ms[i] / nominal) + fresh * prior * ratio;
        }
        solve();
    }

    double cpu_ms(double compute, double memory, double fixed) const {
        const double slowed = compute * slowdown[0] + memory * slowdown[1] + fixed * slowdown[2];
        return std::max(slowed, least_slowdown * (compute + memory + fixed));
    }

private:
    // information * slowdown = moment, by elimination with pivots.
    void solve() {
        double a[3][4];
        for (int i = 0; i < 3; ++i) {
            std::copy(information_[i], information_[i] + 3, a[i]);
            a[i][3] = moment_[i];
        }
        for (int column = 0; column < 3; ++column) {
            int pivot = column;
            for (int row = column + 1; row < 3; ++row)
                if (std::fabs(a[row][column]) > std::fabs(a[pivot][column])) pivot = row;
            std::swap(a[column], a[pivot]);
            for (int row = column + 1; row < 3; ++row) {
                const double factor = a[row][column] / a[column][column];
                for (int k = column; k < 4; ++k) a[row][k] -= factor * a[column][k];
            }
        }
        for (int row = 2; row >= 0; --row) {
            double value = a[row][3];
            for (int k = row + 1; k < 3; ++k) value -= a[row][k] * slowdown[k];
            slowdown[row] = value / a[row][row];
        }
    }

    double information_[3][3] = {};
    double moment_[3] = {};
};
