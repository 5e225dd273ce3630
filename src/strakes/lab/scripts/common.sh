# Sourced by host.sh, namespaces.sh and machines.sh.
# $here: the directory of the lab. $here/NAME.pid: the process that is the node NAME; killing it cuts the power.
stamp() { # PID: print its id, its start time and the boot, which no later process has; nothing if it has ended
    read -r stat <"/proc/$1/stat" && read -r boot </proc/sys/kernel/random/boot_id || return
    # The second field is the program's name in parentheses, with any characters.
    set -- "$1" ${stat##*) }
    [ "$2" = Z ] || echo "$1 ${21} $boot"
} 2>/dev/null
become() { # NAME: write down that this process is the node
    (umask 077 && stamp $$ >"$here/$1.pid")
}
outer() { # NAME: print the id of the process that is the node, if it lives
    read -r line <"$here/$1.pid" && [ "$(stamp "${line%% *}")" = "$line" ] && echo "${line%% *}"
} 2>/dev/null
init() { # NAME: print the id of the first process of the node, as seen from outside
    of=$(outer "$1") && cut -d' ' -f1 "/proc/$of/task/$of/children"
} 2>/dev/null
enter_namespaces() { # NAME COMMAND...
    inner=$(init "$1")
    # From now on the current directory is this process, even if a later one gets its number.
    cd "/proc/${inner:-none}" 2>/dev/null && [ "$(init "$1")" = "$inner" ] || {
        echo "$1 is off" >&2
        exit 126
    }
    shift
    exec nsenter --net=ns/net --mount=ns/mnt --uts=ns/uts --ipc=ns/ipc --pid=ns/pid "$@"
}

# The pair of servers; namespaces.sh and machines.sh define "alive", "node", "enter" and "link":
#   ha.sh power NAME OP ...          called by the software BMC to query or switch the power
#   ha.sh ipmi NAME on|off|status    ask the BMC of a node, as a person would
number_of() { if [ "$1" = a ]; then echo 1; else echo 2; fi; }
power() { # NAME OP...
    name=$1
    shift
    echo "$(date +%s.%N) mds-$name $*" >>"$here/bmc.log"
    case "$*" in
    'get power'*) if alive "$name"; then echo power:1; else echo power:0; fi ;;
    'set power 0' | 'set reset 1')
        alive "$name" && kill -KILL "$(outer "$name")"
        tries=0
        while alive "$name" && [ $tries -lt 100 ]; do
            sleep 0.05
            tries=$((tries + 1))
        done
        ;;
    esac
    case "$*" in 'set power 1' | 'set reset 1') alive "$name" || setsid "$here/ha.sh" node "$name" </dev/null >>"$here/log/node.$name.out" 2>&1 & ;; esac
    exit 0
}
ipmi() { # NAME on|off|status
    IPMI_PASSWORD=$("$here/bmc-password")
    export IPMI_PASSWORD
    exec nsenter --net="$here/net.hub" ipmitool -I lanplus -C 3 -H "10.9.0.$(number_of "$1")" -U fence -E chassis power "$2"
}
