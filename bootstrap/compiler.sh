# Sourced by bootstrap/install and dev: if ccache is installed, what was compiled in one checkout is not compiled again
# in another.
use_compiler_cache() { # CHECKOUT
    command -v ccache >/dev/null || return 0
    local place cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/ccache settings=${XDG_CONFIG_HOME:-${HOME:-}/.config}/ccache
    for place in "${CCACHE_DIR:-$cache}" "${HOME:-}/.ccache" "${CCACHE_CONFIGPATH:-$settings/ccache.conf}"; do
        is_cache_ours "$place" || export CCACHE_DISABLE=1
    done
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
}
