# Sourced by ./strakes, ./dev and bootstrap/install: where the environment of a checkout is, and whether it is up to
# date. This runs before every command, so it starts few processes and prints nothing.

# What the installed engine and package are made from, relative to the checkout. Python sources are used in place.
sources=(CMakeLists.txt cmake bootstrap/lock pyproject.toml engine schemas src/strakes/base/version.py)

# CHECKOUT -> $environment: inside the checkout, or in the user's cache if the checkout is not writable. True if nothing
# has to be installed.
choose_environment() {
    environment=$1/.venv
    is_fresh "$1" "$environment" && return
    if [[ -e $environment ]]; then [[ ! -w $environment ]] || return 1; else [[ ! -w $1 ]] || return 1; fi
    local sum cache=${XDG_CACHE_HOME:-} home=${HOME:-}
    [[ $home == /* ]] || home=/var/tmp/strakes-$UID
    [[ $cache == /* ]] || cache=$home/.cache
    sum=$(printf %s "$1" | cksum)
    environment=$cache/strakes/${sum// /-}
    refuse_others "$environment"
    environment=$(readlink -m -- "$environment")
    is_fresh "$1" "$environment"
}

# PATH: ends the command if another user could put something there, or replace a directory above it.
refuse_others() {
    is_ours "$1" && return
    printf 'strakes: error: other users can write where strakes would keep its own files\n  where: %s\n  %s\n' "$1" \
        "next: set XDG_CACHE_HOME to a directory of your own, below directories that only you and root can write" >&2
    exit 3
}

# PATH: true if each link and directory on the way, as far as they exist, belongs to this user or root, and others can
# write none of them. In a sticky directory, others cannot replace what is not theirs.
is_ours() {
    local place places=(/) owner mode root=
    for place in "$1" "$(readlink -m -- "$1")"; do
        while [[ $place == /?* ]]; do
            places+=("$place")
            place=${place%/*}
        done
    done
    while read -r owner mode place; do
        [[ $place != / ]] || root=$owner # in a user namespace, root of the machine has another number
        ((owner == EUID || owner == 0 || owner == root)) || return
        (((0x$mode & 0170000) == 0120000 || !(0x$mode & 022) || 0x$mode & 01000)) || return
    done < <(stat -c '%u %f %n' -- "${places[@]}" 2>/dev/null)
    [[ -n $root ]]
}

# CHECKOUT ENVIRONMENT: true if nothing has to be installed. The stamp file has the checkout, the digest of the sources,
# and "dev" if the packages for development are installed.
is_fresh() {
    local stamp=$2/strakes.stamp checkout digest newer
    [[ -x $2/bin/python && -r $stamp ]] || return 1
    { IFS= read -r checkout && IFS= read -r digest; } <"$stamp" && [[ $checkout == "$1" ]] || return 1
    newer=$(find "${sources[@]/#/$1/}" -cnewer "$stamp" -print -quit 2>/dev/null)
    [[ $? -ne 127 ]] || return 1
    [[ -z $newer ]] && return
    # Something was touched (or unpacked later than the stamp): only its content decides.
    touch "$stamp.checked" 2>/dev/null
    [[ $(digest_of_sources "$1") == "$digest" ]] || return 1
    touch -r "$stamp.checked" "$stamp" 2>/dev/null || true
}

digest_of_sources() {
    (cd "$1" && find "${sources[@]}" -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 cksum | cksum)
}
