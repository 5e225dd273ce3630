# Sourced by namespaces.sh and machines.sh, which define "alive", "node", "enter" and "link":
#   ha.sh power NAME OP ...          called by the software BMC to query or switch the power
#   ha.sh ipmi NAME on|off|status    ask the BMC of a node, as a person would
# $here: the directory of the lab. $here/NAME.pid: the id of the process that is the node; killing it cuts the power.
number_of() { if [ "$1" = a ]; then echo 1; else echo 2; fi; }
power() { # NAME OP...
    name=$1
    shift
    echo "$(date +%s.%N) mds-$name $*" >>"$here/bmc.log"
    case "$*" in
    'get power'*) if alive "$name"; then echo power:1; else echo power:0; fi ;;
    'set power 0' | 'set reset 1')
        alive "$name" && read -r outer <"$here/$name.pid" && kill -KILL "$outer"
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
