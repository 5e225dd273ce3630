#!/bin/sh
pcs cluster setup pair na addr=10.1.0.1 nb addr=10.1.0.2
sudo pcs property set stonith-enabled=true no-quorum-policy=stop
pcs resource defaults update resource-stickiness=200
pcs resource create dr ocf:linbit:drbd drbd_resource=r0 op monitor interval=29s role=Promoted \
    monitor interval=31s role=Unpromoted promotable ms-dr notify=true
pcs resource create fs Filesystem device=/dev/drbd0 directory=/srv/a fstype=xfs op stop interval=0 timeout=60s --group g
pcs resource create ip IPaddr2 ip=10.3.0.10 cidr_netmask=24 --group g
pcs stonith create f-na fence_ipmilan ip=10.9.0.1 pcmk_host_list=na op monitor interval=60s
pcs stonith create f-nb fence_ipmilan ip=10.9.0.2 pcmk_host_list=nb op monitor interval=60s
pcs constraint location f-na avoids na && pcs constraint location f-nb avoids nb
pcs constraint colocation add g with Promoted ms-dr INFINITY
pcs constraint order promote ms-dr then start g
