"""Good configurations of clusters combined with node files in the styles of Debian, Red Hat and SUSE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

_GOOD = Path(__file__).with_name("good")
_UNITS = "etc/systemd/system"

_DEBIAN_NFS = {
    "etc/network/interfaces": """\
source /etc/network/interfaces.d/*
auto lo
iface lo inet loopback

auto eno1
iface eno1 inet static
    address 172.16.4.11/24
    gateway 172.16.4.1
    dns-nameservers 172.16.4.2
auto eno2
iface eno2 inet static
    address 172.16.5.1
    netmask 255.255.255.248
    mtu 9000
    post-up ethtool -K eno2 gro on
""",
    "etc/nftables.conf": """\
#!/usr/sbin/nft -f
flush ruleset
define HA_UDP = { 5404-5412 }
table inet filter {
    chain input {
        type filter hook input priority 0; policy drop;
        iif lo accept
        ct state established,related accept
        ip protocol icmp accept
        udp dport $HA_UDP accept
        tcp dport { 22, 111, 2049, 2224, 7700-7899, 20048 } accept
        udp dport { 111, 2049, 20048 } accept
    }
}
""",
    "etc/chrony/chrony.conf": """\
confdir /etc/chrony/conf.d
pool 2.debian.pool.ntp.org iburst
sourcedir /run/chrony-dhcp
keyfile /etc/chrony/chrony.keys
driftfile /var/lib/chrony/chrony.drift
logdir /var/log/chrony
maxupdateskew 100.0
rtcsync
makestep 1 3
leapsectz right/UTC
""",
    "etc/default/grub": """\
GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=tty0 console=ttyS1,115200n8 panic=30 net.ifnames=0"
""",
    "etc/apt/apt.conf.d/50unattended-upgrades": """\
Unattended-Upgrade::Origins-Pattern {
        "origin=Debian,codename=${distro_codename},label=Debian-Security";
};
Unattended-Upgrade::Package-Blacklist {
        "corosync"; "pacemaker"; "drbd-utils";
};
// Unattended-Upgrade::Automatic-Reboot "true";
Unattended-Upgrade::Automatic-Reboot "false";
""",
    "etc/cron.d/mdadm": "57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ]; then /usr/share/mdadm/checkarray --cron --all --idle --quiet; fi\n",
    "etc/cron.daily/apt-compat": "#!/bin/sh\nset -e\n[ -x /usr/lib/apt/apt.systemd.daily ] || exit 0\nexec /usr/lib/apt/apt.systemd.daily\n",
    "etc/crontab": """\
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
25 6	* * *	root	test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )
42 3	* * 6	root	drbdadm verify home
*/5 *	* * *	root	/usr/lib/nagios/plugins/check_drbd > /var/lib/node_exporter/drbd.prom
""",
    "etc/mdadm/mdadm.conf": "HOMEHOST <system>\nMAILADDR root\nARRAY /dev/md/0 metadata=1.2 UUID=11111111:22222222:33333333:44444444\n",
    "etc/crypttab": "md1_crypt UUID=3c9a0e0e-9f5f-4a0d-8f65-1f8d4a7a9c11 none luks,discard\nswap_crypt /dev/md/2 /dev/urandom swap\n",
    "etc/nsswitch.conf": "passwd: files systemd\ngroup: files systemd\nhosts: files mdns4_minimal [NOTFOUND=return] dns myhostname\n",
    "etc/rsyslog.conf": 'module(load="imuxsock")\n*.*;auth,authpriv.none -/var/log/syslog\n',
    "etc/logrotate.d/corosync": "/var/log/corosync/*.log {\n daily\n rotate 31\n compress\n copytruncate\n missingok\n}\n",
    "etc/needrestart/needrestart.conf": "$nrconf{restart} = 'l';\n$nrconf{blacklist} = [ qr(^/usr/bin/sudo(\\.dpkg-new)?$), ];\n",
}
_RED_HAT_ZFS = {
    "etc/sysconfig/network-scripts/ifcfg-bond0": """\
DEVICE=bond0
TYPE=Bond
BONDING_MASTER=yes
BONDING_OPTS="mode=802.3ad lacp_rate=fast xmit_hash_policy=layer3+4"
BOOTPROTO=none
IPADDR=10.71.0.21
PREFIX=24
GATEWAY=10.71.0.1
MTU=9000
ONBOOT=yes
""",
    "etc/sysconfig/network-scripts/ifcfg-em3": "DEVICE=em3\nBOOTPROTO=none\nIPADDR=10.72.0.21\nNETMASK=255.255.255.0\nONBOOT=yes\nNM_CONTROLLED=no\n",
    "etc/sysconfig/network-scripts/ifcfg-em4": "DEVICE=em4\nBOOTPROTO=dhcp\nONBOOT=no\n",
    "etc/zfs/vdev_id.conf": "multipath yes\ntopology sas_direct\nphys_per_port 4\nslot bay\nalias e0s0 /dev/disk/by-id/wwn-0x5000c500aaaa0001\nalias e0s1 /dev/disk/by-id/wwn-0x5000c500aaaa0002\n",
    "etc/default/zfs": "ZFS_MOUNT='no'\nZFS_UNMOUNT='no'\nZFS_SHARE='no'\nZPOOL_IMPORT_ALL_VISIBLE='no'\nZFS_POOL_IMPORT=\"\"\n",
    f"{_UNITS}/zfs-import.target.wants/zfs-import-cache.service": "",
    f"{_UNITS}/zfs.target.wants/zfs-zed.service": "",
    f"{_UNITS}/multi-user.target.wants/chronyd.service": "",
    f"{_UNITS}/multi-user.target.wants/kdump.service": "",
    "etc/kdump.conf": "path /var/crash\ncore_collector makedumpfile -l --message-level 7 -d 31\nfinal_action reboot\nfailure_action reboot\n",
    "etc/cron.weekly/scrub": "#!/bin/bash\nfor pool in $(zpool list -H -o name); do\n  zpool status $pool | grep -q scrub || zpool scrub $pool\ndone\n",
    "etc/udev/rules.d/99-scsi-timeout.rules": 'ACTION=="add|change", SUBSYSTEM=="scsi", ATTR{type}=="0", ATTR{timeout}="60"\n',
    "etc/firewalld/zones/trusted.xml": '<?xml version="1.0" encoding="utf-8"?>\n<zone target="ACCEPT">\n  <short>Trusted</short>\n  <interface name="em3"/>\n  <interface name="bond0"/>\n</zone>\n',
    "etc/firewalld/zones/public.xml": '<?xml version="1.0" encoding="utf-8"?>\n<zone>\n  <short>Public</short>\n  <service name="ssh"/>\n</zone>\n',
    "etc/default/grub": 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="crashkernel=auto rd.lvm.lv=rhel/root rd.lvm.lv=rhel/swap nmi_watchdog=1 zfs.zfs_arc_max=68719476736"\n',
    "etc/dnf/automatic.conf": "[commands]\nupgrade_type = security\ndownload_updates = yes\napply_updates = no\n",
    "etc/rc.d/rc.local": "#!/bin/bash\ntouch /var/lock/subsys/local\necho never > /sys/kernel/mm/transparent_hugepage/enabled\nfor d in /sys/block/sd*; do echo mq-deadline > $d/queue/scheduler; done\n",
}
_SLES_SBD = {
    "etc/sysconfig/network/ifcfg-eth0": "BOOTPROTO='static'\nIPADDR='10.9.0.11/24'\nSTARTMODE='auto'\n",
    "etc/sysconfig/network/ifcfg-eth1": "BOOTPROTO='static'\nIPADDR='10.10.0.11/24'\nSTARTMODE='auto'\nMTU='9000'\n",
    "etc/sysconfig/network/ifcfg-eth2": "BOOTPROTO='dhcp'\nSTARTMODE='off'\n",
    "etc/sysconfig/bootloader": 'LOADER_TYPE="grub2"\nSECURE_BOOT="no"\n',
    "etc/default/grub": 'GRUB_TIMEOUT=8\nGRUB_CMDLINE_LINUX_DEFAULT="splash=silent resume=/dev/system/swap mitigations=auto quiet crashkernel=334M,high"\nGRUB_CMDLINE_LINUX=""\n',
    "etc/modprobe.d/99-local.conf": "options softdog soft_margin=60\n",
    "etc/modules-load.d/watchdog.conf": "softdog\n",
    f"{_UNITS}/multi-user.target.wants/pacemaker.service": "",
    f"{_UNITS}/multi-user.target.wants/chronyd.service": "",
    f"{_UNITS}/corosync.service.requires/sbd.service": "",
    f"{_UNITS}/sbd.service.d/sbd_delay_start.conf": "[Service]\nTimeoutSec=144\n",
    "etc/chrony.conf": "! pool pool.ntp.org iburst\ninclude /etc/chrony.d/*.conf\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n",
    "etc/chrony.d/pool.conf": "pool suse.pool.ntp.org iburst\n",
    "etc/init.d/after.local": "#!/bin/sh\nethtool -G eth1 rx 4096\n",
    "etc/sysctl.d/70-yast.conf": "net.ipv4.ip_forward = 0\nnet.ipv6.conf.all.forwarding = 0\nkernel.sysrq = 184\n",
    "etc/systemd/journald.conf.d/persistent.conf": "[Journal]\nStorage=persistent\nSystemMaxUse=2G\n",
    "etc/cron.d/cluster-report": "0 5 * * 1 root /usr/sbin/crm report -f '2 days ago' /var/tmp/weekly > /dev/null 2>&1\n*/10 * * * * root /usr/sbin/crm_mon -1 -r > /run/crm_mon.txt\n",
}
_RED_HAT_LVM = {
    "etc/NetworkManager/system-connections/prod.nmconnection": "[connection]\nid=prod\ntype=bond\ninterface-name=bond0\n\n[bond]\nmode=active-backup\nmiimon=100\n\n[ipv4]\naddress1=10.3.1.11/24,10.3.1.1\nmethod=manual\n",
    "etc/NetworkManager/system-connections/cross.nmconnection": "[connection]\nid=cross\ntype=ethernet\ninterface-name=ens2f1\n\n[ethernet]\nmtu=9000\n\n[ipv4]\naddress1=10.3.2.11/24\nmethod=manual\n\n[ipv6]\nmethod=disabled\n",
    "etc/NetworkManager/system-connections/idrac.nmconnection": "[connection]\nid=idrac\ntype=ethernet\ninterface-name=idrac\nautoconnect=false\n\n[ipv4]\nmethod=auto\n",
    "etc/NetworkManager/conf.d/99-cluster.conf": "[main]\nno-auto-default=*\n",
    "etc/firewalld/zones/public.xml": '<?xml version="1.0" encoding="utf-8"?>\n<zone>\n  <short>Public</short>\n  <service name="ssh"/>\n  <service name="high-availability"/>\n  <service name="nfs"/>\n  <service name="mountd"/>\n  <service name="rpc-bind"/>\n</zone>\n',
    "etc/lvm/lvm.conf": 'global {\n  system_id_source = "uname"\n}\nactivation {\n  auto_activation_volume_list = [ "rhel_root" ]\n}\ndevices {\n  global_filter = [ "a|.*|" ]\n}\n',
    f"{_UNITS}/multi-user.target.wants/pacemaker.service": "",
    f"{_UNITS}/multi-user.target.wants/corosync.service": "",
    f"{_UNITS}/multi-user.target.wants/firewalld.service": "",
    f"{_UNITS}/multi-user.target.wants/pcsd.service": "",
    f"{_UNITS}/timers.target.wants/dnf-automatic.timer": "",
    f"{_UNITS}/backup.service": "[Unit]\nDescription=Backup of the node\n[Service]\nType=oneshot\nExecStart=/usr/bin/rsync -a /etc /var/backup/\n",
    f"{_UNITS}/backup.timer": "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n",
    "etc/fstab": "/dev/mapper/rhel_root-root / xfs defaults 0 0\nUUID=aa-bb /boot xfs defaults 0 0\n/dev/mapper/rhel_root-swap none swap defaults 0 0\ntmpfs /tmp tmpfs size=4G 0 0\n/dev/my_vg/my_lv /nfsshare xfs noauto 0 0\n",
    "etc/auto.master": "/misc /etc/auto.misc\n/net -hosts\n+auto.master\n",
    "etc/logrotate.d/pacemaker": "/var/log/pacemaker/*.log {\n\tcompress\n\tcopytruncate\n\tdaily\n\tmissingok\n\tpostrotate\n\t\t/usr/bin/systemctl kill -s HUP rsyslog.service >/dev/null 2>&1 || true\n\tendscript\n}\n",
}
_UBUNTU_ZFS_NFS = {
    "etc/netplan/50-cloud-init.yaml": """\
network:
  version: 2
  ethernets:
    eno1: {}
    eno2: {}
    eno3:
      addresses: [10.67.0.1/24]
      mtu: 9000
  bonds:
    bond0:
      interfaces: [eno1, eno2]
      addresses:
        - 10.66.0.1/24
      routes:
        - to: default
          via: 10.66.0.254
      parameters:
        mode: active-backup
        mii-monitor-interval: 100
        primary: eno1
""",
    "etc/default/zfs": "ZFS_MOUNT='no'\nZFS_SHARE='no'\n",
    "etc/modprobe.d/zfs.conf": "options zfs zfs_arc_max=34359738368\noptions zfs zfs_multihost_interval=1000 zfs_multihost_fail_intervals=20 zfs_multihost_import_intervals=20\n",
    "etc/systemd/timesyncd.conf": "[Time]\nNTP=ntp1.example.org ntp2.example.org\n",
    f"{_UNITS}/sysinit.target.wants/systemd-timesyncd.service": "",
    f"{_UNITS}/multi-user.target.wants/pacemaker.service": "",
    f"{_UNITS}/multi-user.target.wants/corosync.service": "",
    f"{_UNITS}/multi-user.target.wants/ufw.service": "",
    f"{_UNITS}/zfs.target.wants/zfs-import.target": "",
    f"{_UNITS}/zed-report.timer": "[Timer]\nOnCalendar=hourly\n[Install]\nWantedBy=timers.target\n",
    f"{_UNITS}/zed-report.service": "[Service]\nType=oneshot\nExecStart=/usr/sbin/zpool status -x\nExecStart=/usr/sbin/zpool iostat tank\n",
    "etc/nfs.conf": "[general]\npipefs-directory=/run/rpc_pipefs\n[exportd]\nthreads=1\n[mountd]\nmanage-gids=y\nport=20048\n[nfsd]\nthreads=64\nvers3=n\n[statd]\nport=32765\n",
    "etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_TIMEOUT_STYLE=hidden\nGRUB_TIMEOUT=0\nGRUB_RECORDFAIL_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\n',
    "etc/needrestart/conf.d/50-ha.conf": "$nrconf{restart} = 'a';\n$nrconf{override_rc} = { qr(^corosync) => 0, qr(^pacemaker) => 0, };\n",
    "etc/cron.d/zfsutils-linux": "24 0 8-14 * * root if [ $(date +\\%w) -eq 0 ] && [ -x /usr/lib/zfs-linux/scrub ]; then /usr/lib/zfs-linux/scrub; fi\n",
}
_ROCKY_LUSTRE = {
    "etc/modprobe.d/ko2iblnd.conf": "options ko2iblnd peer_credits=32 peer_credits_hiw=16 credits=1024 concurrent_sends=64 ntx=2048 map_on_demand=256 fmr_pool_size=2048\n",
    "etc/sysctl.d/90-lustre.conf": "net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.all.arp_announce = 2\nnet.ipv4.neigh.default.gc_thresh1 = 4096\nnet.ipv4.neigh.default.gc_thresh2 = 8192\nnet.ipv4.neigh.default.gc_thresh3 = 16384\nvm.zone_reclaim_mode = 0\nkernel.panic_on_oops = 1\nkernel.panic = 60\n",
    "etc/udev/rules.d/99-lustre-server.rules": 'ACTION=="add|change", SUBSYSTEM=="block", ENV{ID_FS_TYPE}=="lustre", ATTR{queue/scheduler}="none"\nSUBSYSTEM=="lustre", ACTION=="change", ENV{PARAM}=="?*", RUN+="/usr/sbin/lctl set_param \'$env{PARAM}=$env{SETTING}\'"\n',
    "etc/sysconfig/network-scripts/ifcfg-ib0": "DEVICE=ib0\nTYPE=InfiniBand\nBOOTPROTO=none\nIPADDR=10.5.0.1\nPREFIX=16\nONBOOT=yes\nCONNECTED_MODE=no\nMTU=2044\n",
    "etc/sysconfig/network-scripts/ifcfg-em1": "DEVICE=em1\nBOOTPROTO=none\nIPADDR=172.16.1.11\nPREFIX=24\nONBOOT=yes\n",
    "etc/sysconfig/network-scripts/ifcfg-em2": "DEVICE=em2\nBOOTPROTO=none\nIPADDR=172.16.2.11\nPREFIX=24\nONBOOT=yes\n",
    "etc/sysconfig/iptables": "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m state --state ESTABLISHED,RELATED -j ACCEPT\n-A INPUT -p icmp -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n-A INPUT -i ib0 -j ACCEPT\n-A INPUT -s 172.16.0.0/16 -j ACCEPT\n-A INPUT -p tcp --dport 22 -j ACCEPT\n-A INPUT -j REJECT --reject-with icmp-host-prohibited\nCOMMIT\n",
    "etc/ntp.conf": "driftfile /var/lib/ntp/drift\nrestrict default nomodify notrap nopeer noquery\nserver 10.5.255.1 iburst\nserver 127.127.1.0\nfudge 127.127.1.0 stratum 10\n",
    f"{_UNITS}/multi-user.target.wants/ntpd.service": "",
    f"{_UNITS}/multi-user.target.wants/lnet.service": "",
    f"{_UNITS}/multi-user.target.wants/multipathd.service": "",
    "etc/crontab": "MAILTO=root\n0 * * * * root /usr/local/sbin/lustre_health.sh\n30 2 * * * root /usr/sbin/lctl get_param -n health_check > /var/log/lustre_health\n",
    "etc/yum/yum-cron.conf": "[commands]\nupdate_cmd = security\ndownload_updates = yes\napply_updates = no\n",
}
_DEBIAN_MDS = {
    "etc/network/interfaces": "auto lo\niface lo inet loopback\n",
    "etc/network/interfaces.d/bond0": "auto bond0\niface bond0 inet static\n    address 10.11.0.1\n    netmask 255.255.255.0\n    bond-slaves eth0 eth1\n    bond-mode active-backup\n    bond-miimon 100\n    bond-primary eth0\n",
    "etc/network/interfaces.d/eth2": "allow-hotplug eth2\niface eth2 inet static\n    address 10.12.0.1/24\n",
    "etc/cron.d/lustre": "15 3 * * * root /usr/bin/test -d /mnt/mdt0 && df -i /var > /var/log/inodes\n",
    "etc/apt/apt.conf.d/20auto-upgrades": 'APT::Periodic::Update-Package-Lists "1";\nAPT::Periodic::Unattended-Upgrade "0";\n',
    "etc/default/kdump-tools": 'USE_KDUMP=1\nKDUMP_COREDIR="/var/crash"\n',
    "etc/chrony/chrony.conf": "server ntp1.example.org iburst\nserver ntp2.example.org iburst\nkeyfile /etc/chrony/chrony.keys\ndriftfile /var/lib/chrony/chrony.drift\nrtcsync\nmakestep 1 3\n",
    "etc/systemd/logind.conf": "[Login]\nHandlePowerKey=ignore\nKillUserProcesses=no\n",
    "etc/rc.local": "#!/bin/sh -e\n/sbin/ethtool -s eth2 wol d\n/sbin/sysctl -q -w vm.swappiness=10\nexit 0\n",
}
_NETWORKD_ISCSI = {
    "etc/systemd/network/10-lan.network": "[Match]\nName=eno1\n\n[Network]\nAddress=10.12.0.1/24\nGateway=10.12.0.254\nDNS=10.12.0.254\n",
    "etc/systemd/network/20-bond.netdev": "[NetDev]\nName=bond1\nKind=bond\n\n[Bond]\nMode=active-backup\nMIIMonitorSec=0.1s\n",
    "etc/systemd/network/20-bond.network": "[Match]\nName=bond1\n\n[Network]\nAddress=10.12.1.1/24\n\n[Link]\nMTUBytes=9000\n",
    "etc/systemd/network/30-mgmt.network": "[Match]\nName=eno4\n\n[Network]\nDHCP=yes\n",
    "etc/nftables.conf": 'table inet filter {\n  chain input {\n    type filter hook input priority filter; policy drop;\n    iifname { "lo", "eno1", "bond1" } accept\n    ct state established accept\n    tcp dport 22 accept\n  }\n}\n',
    f"{_UNITS}/multi-user.target.wants/nftables.service": "",
    f"{_UNITS}/multi-user.target.wants/pacemaker.service": "",
    f"{_UNITS}/multi-user.target.wants/corosync.service": "",
    f"{_UNITS}/multi-user.target.wants/chrony.service": "",
    f"{_UNITS}/drbd-report.service": "[Unit]\nDescription=State of DRBD for the monitoring\n[Service]\nType=oneshot\nExecStart=/bin/sh -c '/usr/sbin/drbdsetup status --json > /run/drbd.json'\n[Install]\nWantedBy=multi-user.target\n",
    "etc/udev/rules.d/60-io.rules": 'ACTION=="add|change", KERNEL=="sd[a-z]*", ATTR{queue/rotational}=="0", ATTR{queue/scheduler}="none"\n',
    "etc/lvm/lvm.conf": 'devices {\n  global_filter = [ "r|^/dev/drbd.*|", "a|.*|" ]\n}\n',
}
_HEADS_OF_BOTH = {
    **{
        f"nodes/{node}/etc/sysconfig/network-scripts/ifcfg-{card}": f"DEVICE={card}\nBOOTPROTO=none\nIPADDR={address}\nPREFIX=24\nONBOOT=yes\n"
        for node, card, address in (
            ("fs1", "eth0", "192.168.80.11"),
            ("fs1", "eth1", "192.168.81.11"),
            ("fs2", "eth0", "192.168.80.12"),
            ("fs2", "eth1", "192.168.81.12"),
            ("fs3", "eth0", "192.168.80.13"),
            ("fs3", "eth1", "192.168.81.13"),
        )
    },
    **{f"nodes/{node}/etc/hostname": f"{node}.example.org\n" for node in ("fs1", "fs2", "fs3")},
    **{
        f"nodes/{node}/etc/iscsi/initiatorname.iscsi": f"InitiatorName=iqn.1994-05.com.redhat:{node}\n"
        for node in ("fs1", "fs2", "fs3")
    },
    **{
        f"nodes/{node}/etc/chrony.conf": "pool 2.rhel.pool.ntp.org iburst\nmakestep 1.0 3\nrtcsync\n"
        for node in ("fs1", "fs2", "fs3")
    },
    **{f"nodes/{node}/etc/crontab": "0 1 * * 0 root /usr/sbin/fstrim --fstab\n" for node in ("fs1", "fs2", "fs3")},
}
_OLD_PAIR = {
    "etc/sysconfig/iptables": "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p udp -m multiport --dports 5404,5405,111 -j ACCEPT\n-A INPUT -p tcp -m multiport --dports 22,111,2049,7788:7799 -j ACCEPT\nCOMMIT\n",
    "etc/sysconfig/network-scripts/ifcfg-eth0": "DEVICE=eth0\nHWADDR=00:11:22:33:44:55\nONBOOT=yes\nBOOTPROTO=static\nIPADDR=10.20.0.11\nNETMASK=255.255.255.0\n",
    "etc/sysconfig/network-scripts/ifcfg-eth1": "DEVICE=eth1\nONBOOT=yes\nBOOTPROTO=static\nIPADDR=10.21.0.11\nNETMASK=255.255.255.0\n",
    "etc/sysconfig/network-scripts/ifcfg-eth1:0": "DEVICE=eth1:0\nONBOOT=yes\nBOOTPROTO=static\nIPADDR=10.30.0.111\nNETMASK=255.255.255.0\n",
    "etc/sysconfig/nfs": 'RPCNFSDCOUNT=64\nRPCNFSDARGS="-N 2"\nMOUNTD_PORT=892\nSTATD_PORT=662\n',
    "etc/rc3.d/S10network": "",
    "etc/rc3.d/S55sshd": "",
    "etc/rc3.d/S99pacemaker": "",
    "etc/rc.local": "#!/bin/sh\ntouch /var/lock/subsys/local\n/sbin/ip route add 10.40.0.0/16 via 10.20.0.1\nservice snmpd restart\n",
    "etc/ntp.conf": "server ntp1.example.org\nserver ntp2.example.org\ndriftfile /var/lib/ntp/drift\n",
    "var/spool/cron/root": "0 3 * * * /usr/local/bin/backup-config /etc > /dev/null\n",
}


def _beside(name: str, files: Mapping[str, str]) -> dict[str, str]:
    base = _GOOD / name
    return {
        **{str(path.relative_to(base)): path.read_text() for path in base.rglob("*") if path.is_file()},
        **files,
    }


NODE_STYLES: dict[str, Callable[[], Mapping[str, str]]] = {
    name: partial(_beside, base, files)
    for name, base, files in (
        ("Debian: NFS with nftables, ifupdown, mdadm", "nfs-drbd-described", _DEBIAN_NFS),
        ("Red Hat: ZFS heads with bonds and firewalld", "oss-zfs-described", _RED_HAT_ZFS),
        ("SLES: sbd with wicked and kdump", "sles-three-sbd-disks-drbd9", _SLES_SBD),
        ("Red Hat: LVM with NetworkManager and timers", "pcs-nfs-lvm", _RED_HAT_LVM),
        ("Ubuntu: ZFS with netplan and needrestart", "zfs-nfs", _UBUNTU_ZFS_NFS),
        ("Rocky: Lustre with InfiniBand and iptables", "lustre-multipath-opt-in", _ROCKY_LUSTRE),
        ("Debian: MDS with a bond of ifupdown", "mds-drbd-lustre-described", _DEBIAN_MDS),
        ("networkd and nftables: iSCSI", "iscsi-drbd9-quorum", _NETWORKD_ISCSI),
        ("three filers, each with its own files", "nfs-lvm-multipath-sbd", _HEADS_OF_BOTH),
        ("CentOS 6: NFS with SysV links", "pair-nfs-drbd84", _OLD_PAIR),
    )
}
