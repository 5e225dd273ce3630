// Everything non-blocking, so that waiting is ours to do.
#include "mpi/post.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "mpi/exchange.hpp"
#include "mpi/libraries.hpp"

namespace strakes {

namespace {

constexpr int kTag = 1;
constexpr std::uint64_t kLongestNapNs = 1'000'000;

}  // namespace

void check_mpi(int error) {
    if (error == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int size = 0;
    MPI_Error_string(error, text.data(), &size);
    std::fprintf(stderr, "strakes-engine-mpi: MPI: %.*s\n", size, text.data());
    for (;;) {
        constexpr timespec kLong{3600, 0};
        ::nanosleep(&kLong, nullptr);
    }
}

MpiPost::MpiPost() : longest_nap_ns_(kLongestNapNs) {
    for (MPI_Comm* one : {&everybody_, &messages_}) {
        MPI_Comm_dup(MPI_COMM_WORLD, one);
        MPI_Comm_set_errhandler(*one, MPI_ERRORS_RETURN);
    }
    int value = 0;
    MPI_Comm_rank(everybody_, &value);
    rank_ = static_cast<Rank>(value);
    MPI_Comm_size(everybody_, &value);
    size_ = static_cast<Rank>(value);
}

void MpiPost::close() {
    for (auto& [ranks, one] : some_) MPI_Comm_free(&one);
    MPI_Comm_free(&everybody_);
    MPI_Comm_free(&messages_);
}

void MpiPost::set_crowding(std::size_t ranks_per_processor) noexcept {
    longest_nap_ns_ = kLongestNapNs * std::clamp<std::size_t>(ranks_per_processor, 1, 8);
}

Patience MpiPost::patience(Wait wait) const noexcept {
    if (wait == Wait::eager) return Patience(0);
    return Patience(wait == Wait::brisk ? kShortNapNs : longest_nap_ns_);
}

MPI_Request MpiPost::begin(Rank to, std::string_view bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, static_cast<int>(to), kTag, everybody_,
                        &request));
    return request;
}

void MpiPost::complete(MPI_Request request, Wait wait) const {
    Patience patience = this->patience(wait);
    for (int done = 0;;) {
        check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done != 0) return;
        patience.pause();
    }
}

void MpiPost::send(Rank to, std::string_view bytes) { complete(begin(to, bytes), Wait::patient); }

std::string MpiPost::receive(Rank from, Wait wait) {
    Patience patience = this->patience(wait);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    for (int there = 0;;) {
        check_mpi(MPI_Improbe(static_cast<int>(from), kTag, everybody_, &there, &message, &status));
        if (there != 0) break;
        patience.pause();
    }
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Imrecv(bytes.data(), size, MPI_BYTE, &message, &request));
    complete(request, wait);
    return bytes;
}

std::string MpiPost::swap(Rank to, std::string_view bytes, Rank from, Wait wait) {
    MPI_Request request = begin(to, bytes);
    std::string said = receive(from, wait);
    complete(request, wait);
    return said;
}

std::unique_ptr<Exchange> MpiPost::exchange(Circle circle, std::vector<Rank> ranks, std::vector<std::uint32_t> nodes) {
    return std::make_unique<MpiExchange>(messages_, std::move(circle), std::move(ranks), std::move(nodes));
}

std::unique_ptr<LibraryFiles> MpiPost::libraries(std::vector<Rank> ranks) {
    return std::make_unique<MpiLibraries>([this, ranks = std::move(ranks)] { return communicator_of(ranks); });
}

MPI_Comm MpiPost::communicator_of(const std::vector<Rank>& ranks) {
    const auto [place, fresh] = some_.try_emplace(ranks, MPI_COMM_NULL);
    if (!fresh) return place->second;
    const std::vector<int> members(ranks.begin(), ranks.end());
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    MPI_Comm_group(everybody_, &all);
    MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
    check_mpi(MPI_Comm_create_group(everybody_, some, kTag, &place->second));
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return place->second;
}

}  // namespace strakes
