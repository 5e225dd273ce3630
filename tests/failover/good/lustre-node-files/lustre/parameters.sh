#!/bin/sh
# Once, on the MGS.
lctl set_param -P osc.*.max_rpcs_in_flight=32
lctl set_param -P osc.*.max_dirty_mb=512
lctl set_param -P mdt.*.identity_upcall=NONE
lctl set_param -P at_min=40
lctl set_param -P osd-ldiskfs.*.read_cache_enable=0
lctl conf_param work.quota.mdt=ugp
lctl conf_param work.quota.ost=ug
lctl set_param -P mdd.*.changelog_gc=1
lctl set_param debug=0
