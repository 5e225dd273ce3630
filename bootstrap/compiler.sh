# Sourced by bootstrap/install and dev: if ccache is installed, what was compiled in one checkout is not compiled again
# in another.
use_compiler_cache() { # CHECKOUT
    command -v ccache >/dev/null || return 0
    is_ours "${CCACHE_DIR:-/}" && is_ours "${CCACHE_CONFIGPATH:-/}" || unset CCACHE_DIR CCACHE_CONFIGPATH
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
}
