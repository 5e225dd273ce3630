// Implements Post over MPI, by non-blocking calls only, so that class Patience decides how to wait.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi/exchange.hpp"
#include "mpi/libraries.hpp"
#include "team/post.hpp"

namespace strakes {

class MpiPost final : public Post {
  public:
    // Connects all processes, with separate communicators for the post and for exchanges. The calling thread must have
    // initialised MPI.
    MpiPost() : longest_nap_ns_(kLongestNapNs) {
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
    // Collective. Must be called before MPI is finalised.
    void close() {
        for (auto& [ranks, one] : some_) MPI_Comm_free(&one);
        MPI_Comm_free(&everybody_);
        MPI_Comm_free(&messages_);
    }

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return size_; }
    void send(Rank to, std::string_view bytes) override { complete(begin(to, bytes), Wait::patient); }
    std::string receive(Rank from, Wait wait) override {
        std::string bytes;
        for (std::size_t piece = kPiece; piece == kPiece;) {
            Patience patience = this->patience(wait);
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status status;
            for (int there = 0;;) {
                check_mpi("MPI_Improbe",
                          MPI_Improbe(static_cast<int>(from), kPostTag, everybody_, &there, &message, &status));
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
    std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) override {
        std::vector<MPI_Request> requests = begin(to, bytes);
        std::string said = receive(from, wait);
        complete(std::move(requests), wait);
        return said;
    }

    std::unique_ptr<Exchange> exchange(Circle circle, std::vector<Rank> ranks,
                                       std::vector<std::uint32_t> nodes) override {
        return std::make_unique<MpiExchange>(messages_, std::move(circle), std::move(ranks), std::move(nodes),
                                             crowded_ ? kShortNapNs : 0);
    }
    std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> ranks) override {
        return make_libraries([this, ranks = std::move(ranks)] { return communicator_of(ranks); });
    }

    void set_crowding(std::size_t ranks_per_processor) noexcept {
        crowded_ = ranks_per_processor > 1;
        longest_nap_ns_ = kLongestNapNs * std::clamp<std::size_t>(ranks_per_processor, 1, 8);
    }

  private:
    static constexpr int kPostTag = 1;
    static constexpr std::size_t kPiece = Exchange::kMostBytes;
    static constexpr std::uint64_t kLongestNapNs = 1'000'000;

    // Sends in pieces. The last piece is shorter than the others and may be empty.
    std::vector<MPI_Request> begin(Rank to, std::string_view bytes) {
        std::vector<MPI_Request> requests;
        for (bool last = false; !last;) {
            const std::string_view piece = bytes.substr(0, kPiece);
            last = piece.size() < kPiece;
            requests.push_back(MPI_REQUEST_NULL);
            check_mpi("MPI_Isend", MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE,
                                             static_cast<int>(to), kPostTag, everybody_, &requests.back()));
            bytes.remove_prefix(piece.size());
        }
        return requests;
    }
    void complete(std::vector<MPI_Request> requests, Wait wait) const {
        Patience patience = this->patience(wait);
        for (MPI_Request& request : requests) {
            for (int done = 0;;) {
                check_mpi("MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE));
                if (done != 0) break;
                patience.pause();
            }
        }
    }
    [[nodiscard]] Patience patience(Wait wait) const noexcept {
        if (wait == Wait::eager) return Patience(0);
        return Patience(wait == Wait::brisk ? kShortNapNs : longest_nap_ns_);
    }

    // Returns the communicator of these ranks, and keeps it for later plans. Collective over these ranks.
    MPI_Comm communicator_of(const std::vector<Rank>& ranks) {
        const auto [place, fresh] = some_.try_emplace(ranks, MPI_COMM_NULL);
        if (!fresh) return place->second;
        const std::vector<int> members(ranks.begin(), ranks.end());
        MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
        MPI_Comm_group(everybody_, &all);
        MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
        check_mpi("MPI_Comm_create_group", MPI_Comm_create_group(everybody_, some, kPostTag, &place->second));
        MPI_Group_free(&some);
        MPI_Group_free(&all);
        return place->second;
    }

    MPI_Comm everybody_ = MPI_COMM_NULL;
    std::map<std::vector<Rank>, MPI_Comm> some_;
    MPI_Comm messages_ = MPI_COMM_NULL;  // communicator for exchanges
    Rank rank_ = 0;
    Rank size_ = 1;
    std::uint64_t longest_nap_ns_;
    bool crowded_ = false;
};

}  // namespace strakes
