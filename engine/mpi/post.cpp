// Uses non-blocking calls only, so that Patience decides how to wait.
#include "mpi/post.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <functional>
#include <utility>

#include "mpi/exchange.hpp"
#include "mpi/libraries.hpp"

namespace strakes {

namespace {

constexpr int kTag = 1;
constexpr std::size_t kPiece = Exchange::kMostBytes;
constexpr std::uint64_t kLongestNapNs = 1'000'000;

std::function<void(const std::string&)>& told_of_failure() {
    static std::function<void(const std::string&)> told;
    return told;
}

}  // namespace

void on_mpi_failure(std::function<void(const std::string&)> tell) { told_of_failure() = std::move(tell); }

void check_mpi(const char* call, int error) {
    if (error == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int size = 0;
    MPI_Error_string(error, text.data(), &size);
    std::string words(text.data(), static_cast<std::size_t>(size));
    words = std::string(call) + ": " + words.substr(0, words.find('\n'));
    std::fprintf(stderr, "strakes-engine-mpi: %s\n", words.c_str());
    // Before the processes are connected, the exit status makes the launcher end the others.
    if (!told_of_failure()) ::_exit(1);
    told_of_failure()(words);
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
    crowded_ = ranks_per_processor > 1;
    longest_nap_ns_ = kLongestNapNs * std::clamp<std::size_t>(ranks_per_processor, 1, 8);
}

Patience MpiPost::patience(Wait wait) const noexcept {
    if (wait == Wait::eager) return Patience(0);
    return Patience(wait == Wait::brisk ? kShortNapNs : longest_nap_ns_);
}

// Sends in pieces. The last piece is shorter than the others and may be empty.
std::vector<MPI_Request> MpiPost::begin(Rank to, std::string_view bytes) {
    std::vector<MPI_Request> requests;
    for (bool last = false; !last;) {
        const std::string_view piece = bytes.substr(0, kPiece);
        last = piece.size() < kPiece;
        requests.push_back(MPI_REQUEST_NULL);
        check_mpi("MPI_Isend", MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, static_cast<int>(to),
                                         kTag, everybody_, &requests.back()));
        bytes.remove_prefix(piece.size());
    }
    return requests;
}

void MpiPost::complete(std::vector<MPI_Request> requests, Wait wait) const {
    Patience patience = this->patience(wait);
    for (MPI_Request& request : requests) {
        for (int done = 0;;) {
            check_mpi("MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            if (done != 0) break;
            patience.pause();
        }
    }
}

void MpiPost::send(Rank to, std::string_view bytes) { complete(begin(to, bytes), Wait::patient); }

std::string MpiPost::receive(Rank from, Wait wait) {
    std::string bytes;
    for (std::size_t piece = kPiece; piece == kPiece;) {
        Patience patience = this->patience(wait);
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        for (int there = 0;;) {
            check_mpi("MPI_Improbe", MPI_Improbe(static_cast<int>(from), kTag, everybody_, &there, &message, &status));
            if (there != 0) break;
            patience.pause();
        }
        int size = 0;
        MPI_Get_count(&status, MPI_BYTE, &size);
        piece = static_cast<std::size_t>(size);
        bytes.resize(bytes.size() + piece);
        std::vector<MPI_Request> request{MPI_REQUEST_NULL};
        check_mpi("MPI_Imrecv",
                  MPI_Imrecv(bytes.data() + bytes.size() - piece, size, MPI_BYTE, &message, &request.front()));
        complete(std::move(request), wait);
    }
    return bytes;
}

std::string MpiPost::swap(Rank to, std::string_view bytes, Rank from, Wait wait) {
    std::vector<MPI_Request> requests = begin(to, bytes);
    std::string said = receive(from, wait);
    complete(std::move(requests), wait);
    return said;
}

std::unique_ptr<Exchange> MpiPost::exchange(Circle circle, std::vector<Rank> ranks, std::vector<std::uint32_t> nodes) {
    return std::make_unique<MpiExchange>(messages_, std::move(circle), std::move(ranks), std::move(nodes),
                                         crowded_ ? kShortNapNs : 0);
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
    check_mpi("MPI_Comm_create_group", MPI_Comm_create_group(everybody_, some, kTag, &place->second));
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return place->second;
}

}  // namespace strakes
