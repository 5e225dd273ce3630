// Threads of a team have small stacks, and separate descriptor tables and credentials.
#include "team/team.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <utility>

#include "system/processors.hpp"

namespace strakes {

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = std::size_t{2} * 1024 * 1024;  // Stack of a thread. Sanitizers need larger stacks.
#else
constexpr std::size_t kStackBytes = std::size_t{256} * 1024;
#endif

// The kernel counts references to shared credentials in every open and close. That costs two ranks a third of their
// total rate.
void share_nothing() noexcept {
#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer confuses equal descriptors of different tables.
    take_own_table();
#endif
    // Setting the flag to its present value makes the kernel copy the credentials for this thread.
    const int keeps = ::prctl(PR_GET_KEEPCAPS);
    if (keeps >= 0) static_cast<void>(::prctl(PR_SET_KEEPCAPS, keeps));
}

}  // namespace

Team::Team(Rank size, Rank ranks_per_node, bool crowded)
    : size_(size),
      first_(0),
      count_(size),
      processes_(nullptr),
      meeting_(static_cast<std::ptrdiff_t>(size), Count{this}),
      exchange_(std::make_unique<ThreadExchange>(size, ranks_per_node)),
      start_(std::make_unique<ThreadStart>(size, crowded || Processors::allowed().too_few_for(size))) {}

Team::Team(Rank size, Rank mine, Processes& processes)
    : size_(size), first_(mine), count_(1), processes_(&processes), meeting_(1, Count{this}) {}

void Team::answer() noexcept {
    if (start_) start_->reset();
    const bool mine = raised_.exchange(false, std::memory_order_relaxed);
    answer_ = processes_ != nullptr ? processes_->any(mine) : mine;
}

void* Team::enter(void* seat) {
    const auto [team, rank] = *static_cast<const Seat*>(seat);
    share_nothing();
    team->gate_.wait(Gate::closed);
    if (team->gate_.load() == Gate::open) team->body_(rank);
    return nullptr;
}

int Team::start(std::function<void(Rank)> body) {
    body_ = std::move(body);
    if (processes_ == nullptr) return start_threads();
    processes_->perform([this] { body_(first_); });
    return 0;
}

int Team::start_threads() {
    seats_.reserve(size_);
    threads_.reserve(size_);
    pthread_attr_t attributes;
    int error = ::pthread_attr_init(&attributes);
    if (error != 0) return error;
    error = ::pthread_attr_setstacksize(&attributes, kStackBytes);
    for (Rank rank = 0; rank < size_ && error == 0; ++rank) {
        seats_.push_back({this, rank});
        pthread_t thread{};
        error = ::pthread_create(&thread, &attributes, &Team::enter, &seats_.back());
        if (error == 0) threads_.push_back(thread);
    }
    ::pthread_attr_destroy(&attributes);
    gate_.store(error == 0 ? Gate::open : Gate::cancelled);
    gate_.notify_all();
    if (error != 0) join();
    return error;
}

void Team::join() {
    if (processes_ != nullptr && body_) processes_->wait();
    for (const pthread_t thread : threads_) ::pthread_join(thread, nullptr);
    threads_.clear();
}

}  // namespace strakes
