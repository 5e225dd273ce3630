// Ranks that are threads have no MPI.
#include "backend/registry.hpp"

namespace strakes {

Absence absence_of_library(Backend /*backend*/) {
    return {"it needs ranks that are processes, but the ranks of this engine are threads",
            "Start the ranks as processes: --launcher mpi."};
}

}  // namespace strakes
