// The engine from its hello to its exit status; each of the executables has its own.
#pragma once

namespace strakes {

// `signals` is a signalfd of those that end the session.
int run_engine(int signals);

}  // namespace strakes
