// Ranks that are threads have no MPI.
#include "backend/available.hpp"

namespace strakes {

Absence absence_of_library(Backend /*backend*/) {
    return {"it needs ranks as processes, and the ranks of this engine are threads",
            "Start the ranks as processes: --launcher mpi."};
}

}  // namespace strakes
