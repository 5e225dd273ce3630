# Sourced by ./strakes, ./dev and bootstrap/install: where the environment of a checkout is, and whether it is up to
# date. This runs before every command, so it starts few processes and prints nothing.

# What the installed engine and package are made from, relative to the checkout. Python sources are used in place.
sources=(CMakeLists.txt cmake bootstrap/lock pyproject.toml engine schemas src/strakes/base/version.py)

# CHECKOUT -> $environment: inside the checkout, or in the user's cache if the checkout is not writable. True if nothing
# has to be installed.
choose_environment() {
    environment=$1/.venv
    [[ -r /proc/self/mountinfo ]] || {
        printf 'strakes: error: /proc is not mounted\n  next: mount -t proc proc /proc\n' >&2
        exit 3
    }
    refuse_planted "$1" "$environment"
    is_fresh "$1" "$environment" && return
    if [[ -e $environment ]]; then [[ ! -w $environment ]] || return 1; else [[ ! -w $1 ]] || return 1; fi
    local sum cache=${XDG_CACHE_HOME:-} home=${HOME:-}
    [[ $home == /* ]] || home=/var/tmp/strakes-$UID
    [[ $cache == /* ]] || cache=$home/.cache
    sum=$(printf %s "$1" | cksum)
    environment=$cache/strakes/${sum// /-}
    refuse_others "$environment"
    environment=$(readlink -m -- "$environment")
    refuse_planted "$1" "$environment"
    is_fresh "$1" "$environment"
}

# PATH: ends the command if another user could put something there, or replace a directory above it.
refuse_others() {
    is_ours "$1" && return
    printf 'strakes: error: other users can write where strakes would keep its own files\n  where: %s\n  %s\n' "${1//[[:cntrl:]]/?}" \
        "next: set XDG_CACHE_HOME to a directory of your own, below directories that only you and root can write" >&2
    exit 3
}

# PATH: true if each link and directory on the way, as far as they exist, belongs to this user or root, and others can
# write none of them. In a sticky directory above the environment, others cannot replace what is not theirs.
is_ours() {
    local place places=()
    find_way "$1"
    are_ours "$EUID" "${places[@]}"
}

# PATH: true if others can write neither this directory nor those in it.
is_cache_ours() {
    local place places=()
    for place in "$1" "$1"/*; do find_way "$place"; done
    are_ours "$EUID" "${places[@]}"
}

# CHECKOUT ENVIRONMENT: ends the command if another user could have put the Python of the environment there. Who can
# write the checkout, or replace it, can replace this script, so that neither its owner nor the directories above matter.
refuse_planted() {
    local place places=() below=() owner remedy="rm -r '$2', then run the same command again"
    [[ -e $2 || -L $2 ]] || return 0
    owner=$(stat -c %u -- "$1") || exit 3
    find_way "$2/bin"
    # Ordinary users get the Python of their site, which need not belong to root.
    ((EUID != 0)) || find_way "$2/bin/python"
    for place in "${places[@]}" "$2"/{bin/python,pyvenv.cfg,lib,lib/python*,lib/python*/site-packages}; do
        [[ $1/ == "${place%/}"/* ]] || below+=("$place")
    done
    if are_ours "$owner" "${below[@]}"; then
        # Byte code that was made with another umask, so that others could have replaced it, is removed. Not searched:
        # lib, which has thousands of directories. ./strakes uses no byte code from there.
        place=$(cd "$2" && find pycache -type d -perm /022 -prune ! -exec rm -rf -- {} \; -print -quit 2>/dev/null)
        [[ -n $place ]] || return 0
        place=$2/$place
    fi
    [[ $place/ == "$2"/* ]] || remedy+=" with another python3 first in PATH"
    printf 'strakes: error: another user could have put the Python of this checkout there\n  where: %s\n  next: %s\n' \
        "${place//[[:cntrl:]]/?}" "${remedy//[[:cntrl:]]/?}" >&2
    exit 3
}

# For Python without pycache_prefix, as in ./dev and bootstrap/install.
remove_loose_byte_code() { find "$environment/lib" -name __pycache__ -perm /022 -prune -exec rm -rf -- {} + 2>/dev/null; }

# PATH: adds each directory and link on the way to it to $places.
find_way() {
    local left=$1 way= part links=0
    places+=(/)
    while [[ -n $left ]]; do
        part=${left%%/*}
        if [[ $left == */* ]]; then left=${left#*/}; else left=; fi
        case $part in '' | .) continue ;; ..) way=${way%/*} && continue ;; esac
        places+=("$way/$part")
        if [[ -L $way/$part ]] && ((++links <= 40)); then
            left=$(readlink -- "$way/$part")/$left
            [[ $left != /* ]] || way=
        else
            way+=/$part
        fi
    done
}

# USER PLACE...: true if those that exist belong to this user, root or USER; else $place is one of another user, or in
# which others can replace something. A FUSE file system of another user can show any owner.
are_ours() {
    local user=$1 owner mode root= line fields
    while read -r line; do
        [[ $line =~ ,user_id=([1-9][0-9]*)[^\ ]*$ ]] || continue
        ((BASH_REMATCH[1] == EUID || BASH_REMATCH[1] == user)) && continue
        read -ra fields < <(printf %s "$line")
        # The kernel writes blanks as octal numbers, which printf would read on into a digit that follows.
        line=${fields[4]//\\040/ } line=${line//\\011/$'\t'} line=${line//\\012/$'\n'} line=${line//\\043/#}
        line=${line//\\134/\\}
        for place in "${@:2}"; do
            [[ $place/ != "${line%/}"/* ]] || return
        done
    done 2>/dev/null </proc/self/mountinfo
    while read -r -d '' owner mode place; do
        if [[ -z $root ]]; then
            root=$owner # of /: in a user namespace, root of the machine has another number
            continue
        fi
        ((owner == EUID || owner == user || owner == 0 || owner == root)) || return
        (((0x$mode & 0170000) == 0120000 || !(0x$mode & 022))) && continue
        ((0x$mode & 01000)) && [[ $place/ != "$environment"/* ]] || return
    done < <(stat --printf '%u %f %n\0' -- / "${@:2}" 2>/dev/null)
    [[ -n $root ]]
}

# CHECKOUT ENVIRONMENT: true if nothing has to be installed. The stamp file has the checkout, the digest of the sources,
# and "dev" if the packages for development are installed, or "wheel" and the digest of the wheel that is.
is_fresh() {
    local stamp=$2/strakes.stamp checkout digest kind newer
    [[ -x $2/bin/python && -r $stamp ]] || return 1
    { IFS= read -r checkout && IFS= read -r digest && IFS= read -r kind; } <"$stamp" && [[ $checkout == "$1" ]] || return 1
    [[ $kind != wheel ]] || return 0 # nothing comes from the sources
    newer=$(cd "$1" && find "${sources[@]}" -cnewer "$stamp" -print -quit 2>/dev/null)
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
