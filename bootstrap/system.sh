# Sourced by bootstrap/install: finds out what the machine itself lacks, and installs it or says how.

# [dev | wheel] -> $missing: what is missing, in words; $packages: Debian's packages for it; $found_python: the interpreter.
find_missing() {
    missing=()
    packages=()
    fedora=()
    suse=()
    found_python=$(find_python) || lack "Python 3.11 or newer with venv" "$(debian_python)" python3.12 python312
    [[ ${1:-} != wheel ]] || return 0
    has_compiler || lack "a C++20 compiler" g++ gcc-c++ gcc13-c++
    # Optional: installed only where that needs nobody's permission.
    has_header liburing.h || ! may_install || lack "the header liburing.h" liburing-dev liburing-devel liburing-devel
    has_header nlohmann/json.hpp || lack "the header nlohmann/json.hpp" nlohmann-json3-dev json-devel nlohmann_json-devel
    command -v flock >/dev/null || lack "flock" util-linux util-linux util-linux
    command -v find >/dev/null || lack "find" findutils findutils findutils
    [[ ${1:-} == dev ]] || return 0
    has_header doctest/doctest.h || lack "the header doctest/doctest.h" doctest-dev doctest-devel doctest-devel
    command -v mkfs.xfs >/dev/null || [[ -x /usr/sbin/mkfs.xfs ]] || lack "mkfs.xfs" xfsprogs xfsprogs xfsprogs
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || lack "chromium" chromium chromium chromium
    # Without these, their tests are skipped, so a machine that lacks them is not refused.
    may_install || return 0
    command -v ceph-fuse >/dev/null || lack "CephFS" "ceph-mon ceph-osd ceph-mds ceph-mgr ceph-fuse ceph-common fuse3" ceph ceph
    command -v ccache >/dev/null || lack "ccache" ccache ccache ccache
    has_header cephfs/libcephfs.h || lack "the header cephfs/libcephfs.h" libcephfs-dev libcephfs-devel libcephfs-devel
    has_header curl/curl.h || lack "the header curl/curl.h" libcurl4-openssl-dev libcurl-devel libcurl-devel
    command -v radosgw >/dev/null || lack "radosgw" radosgw ceph-radosgw ceph-radosgw
    command -v glusterd >/dev/null || lack "GlusterFS" "glusterfs-server glusterfs-client glusterfs-cli" glusterfs-server glusterfs
    command -v mfsmaster >/dev/null ||
        lack "MooseFS" "moosefs-master moosefs-chunkserver moosefs-client moosefs-cli" moosefs-master moosefs-master
    command -v ganesha.nfsd >/dev/null && command -v nfs-cat >/dev/null && command -v mount.nfs4 >/dev/null ||
        lack "NFS" "nfs-ganesha nfs-ganesha-vfs nfs-common libnfs-utils" "nfs-ganesha nfs-ganesha-vfs nfs-utils" nfs-ganesha
    command -v tmux >/dev/null || lack "tmux" tmux tmux tmux
    has_slurm ||
        lack "sshd and Slurm" "openssh-server openssh-client munge slurmctld slurmd slurm-client" "openssh-server slurm" "openssh-server slurm"
    command -v mpicxx >/dev/null || lack "Open MPI" "libopenmpi-dev openmpi-bin" openmpi-devel openmpi-devel
    has_header hdf5/openmpi/hdf5.h || is_unknown libhdf5-openmpi-dev || lack "parallel HDF5" libhdf5-openmpi-dev hdf5-openmpi-devel hdf5-openmpi4-devel
    has_header pnetcdf.h || is_unknown libpnetcdf-dev || lack "PnetCDF" libpnetcdf-dev pnetcdf-openmpi-devel libpnetcdf-devel
    command -v promtool >/dev/null || lack "promtool" prometheus golang-github-prometheus golang-github-prometheus-prometheus
    command -v prometheus-alertmanager >/dev/null || command -v alertmanager >/dev/null ||
        lack "Alertmanager" prometheus-alertmanager golang-github-prometheus-alertmanager golang-github-prometheus-alertmanager
    has_pacemaker || lack "Pacemaker" \
        "corosync pacemaker pacemaker-cli-utils resource-agents fence-agents openipmi ipmitool drbd-utils pcs" pacemaker pacemaker
}

# Whether apt's lists are there and do not have the package: then it is not asked for.
is_unknown() { # PACKAGE
    apt-cache show g++ >/dev/null 2>&1 && ! apt-cache show "$1" >/dev/null 2>&1
}

has_slurm() {
    [[ -x /usr/sbin/sshd && -x /usr/sbin/slurmctld && -x /usr/sbin/slurmd ]]
}

has_pacemaker() {
    [[ -x /usr/sbin/pacemakerd && -x /usr/sbin/crm_simulate && -x /usr/bin/ipmi_sim && -x /usr/sbin/drbdadm && -x /usr/sbin/pcs ]]
}

lack() { # WORDS DEBIAN FEDORA SUSE
    missing+=("$1")
    read -r -a names <<<"$2"
    packages+=("${names[@]}")
    fedora+=("$3")
    suse+=("$4")
}

# The first Python that is new enough and can make environments (uv makes them without ensurepip).
find_python() {
    local candidate needs='import ensurepip, venv'
    command -v uv >/dev/null && needs='import venv'
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -I -c "import sys; assert sys.version_info >= (3, 11); $needs" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Debian's default python3, or the newest other version if the default is too old.
debian_python() {
    local version
    version=$(apt-cache policy python3 2>/dev/null | sed -n 's/^  Candidate: 3\.\([0-9]*\).*/\1/p')
    if [[ -n $version ]] && ((version < 11)); then
        for version in 3.13 3.12 3.11; do
            if apt-cache show "python$version-venv" >/dev/null 2>&1; then
                echo "python$version python$version-venv"
                return
            fi
        done
    fi
    echo "python3 python3-venv"
}

compiler() {
    local candidate
    for candidate in ${CXX:+"$CXX"} c++ g++ clang++; do
        command -v "$candidate" && return
    done
    return 1
}

has_compiler() {
    local compiler
    compiler=$(compiler) || return 1
    printf '#include <span>\n#include <bit>\nint main() { return std::bit_width(0u); }\n' | "$compiler" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

has_header() { # NAME: found by the compiler, or below a prefix in CMAKE_PREFIX_PATH
    local compiler prefix prefixes=${CMAKE_PREFIX_PATH:-}
    prefixes=${prefixes//[:;]/ }
    for prefix in /usr /usr/local $prefixes; do
        [[ -e $prefix/include/$1 ]] && return
    done
    compiler=$(compiler) || return 1
    printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | "$compiler" -std=c++20 -E -x c++ - >/dev/null 2>&1
}

may_install() {
    [[ ${STRAKES_NO_INSTALL:-} != 1 && $EUID -eq 0 ]] && command -v apt-get >/dev/null
}

install_system() {
    # If apt has no package lists, or old ones, the first attempt fails quickly.
    apt_install || { apt-get update && find_missing "$extras" && apt_install; }
}

apt_install() {
    # The services of these packages are not needed: these settings keep them from being started.
    DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 RUNLEVEL=1 apt-get -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends "${packages[@]}"
}

refuse_missing() {
    local who="run as root" text
    ((EUID == 0)) || who="ask the administrator for"
    printf -v text '%s, ' "${missing[@]}"
    fail "this machine lacks ${text%, }" \
        "next: $who one of these commands" \
        "  Debian, Ubuntu:    apt-get update && apt-get install -y ${packages[*]}" \
        "  RHEL, Rocky, Alma: dnf install -y epel-release && dnf install -y ${fedora[*]}" \
        "  SUSE:              zypper install -y ${suse[*]}" \
        "without a compiler:   ./strakes --from-wheel FILE.whl COMMAND..., with the wheel of a release (Python is still needed)" \
        "and then run the same command again"
}
