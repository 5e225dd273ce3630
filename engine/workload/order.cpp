// Random choice of a rank's transfers.
#include "workload/order.hpp"

#include <algorithm>
#include <cmath>

namespace strakes {

namespace {

constexpr double kOneMinus = 1 - Drawn::kZipf;

// Antiderivative of x^-kZipf, and its inverse.
double area(double x) noexcept { return std::pow(x, kOneMinus) / kOneMinus; }
double area_inverse(double y) noexcept { return std::pow(y * kOneMinus, 1 / kOneMinus); }

}  // namespace

// Rejection-inversion (Hoermann and Derflinger, ACM TOMACS 6 (1996) 169), which needs no table for any number of
// places.
void Drawn::prepare_zipf() noexcept {
    zipf_low_ = area(1.5) - 1;
    zipf_high_ = area(static_cast<double>(region_.transfers) + 0.5);
    zipf_skip_ = 2 - area_inverse(area(2.5) - std::pow(2, -kZipf));
}

std::uint64_t Drawn::zipf() noexcept {
    for (;;) {
        const double y = zipf_high_ + unit() * (zipf_low_ - zipf_high_);
        const double x = area_inverse(y);
        const double place = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(region_.transfers));
        if (place - x <= zipf_skip_ || y >= area(place + 0.5) - std::pow(place, -kZipf))
            return static_cast<std::uint64_t>(place) - 1;
    }
}

std::uint64_t Drawn::place() noexcept {
    const std::uint64_t places = region_.transfers;
    if (draw_ == Access::zipf) return zipf();
    if (draw_ == Access::pareto) {
        static const double kPower = std::log(kPareto) / std::log(1 - kPareto);
        const double at = std::pow(unit(), kPower) * static_cast<double>(places);
        return std::min(places - 1, static_cast<std::uint64_t>(at));
    }
    if (draw_ != Access::hotspot) return below(places);
    const std::uint64_t hot = std::max<std::uint64_t>(1, places * kHotPlaces / 100);
    if (hot == places || below(100) < kHotDraws) return below(hot);
    return hot + below(places - hot);
}

}  // namespace strakes
