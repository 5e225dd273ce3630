#!/bin/sh
set -e
mkfs.lustre --mgs --servicenode=10.5.0.11@o2ib --servicenode=10.5.0.12@o2ib /dev/mapper/mgs
mkfs.lustre --mdt --fsname=work --index=0 --mgsnode=10.5.0.11@o2ib --mgsnode=10.5.0.12@o2ib --servicenode=10.5.0.11@o2ib --servicenode=10.5.0.12@o2ib /dev/mapper/mdt0
mkfs.lustre --ost --fsname=work --index=0 --mgsnode=10.5.0.11@o2ib --mgsnode=10.5.0.12@o2ib --servicenode=10.5.0.13@o2ib --servicenode=10.5.0.14@o2ib /dev/mapper/ost0
mkfs.lustre --ost --fsname=work --index=1 --mgsnode=10.5.0.11@o2ib --mgsnode=10.5.0.12@o2ib --servicenode=10.5.0.13@o2ib --servicenode=10.5.0.14@o2ib /dev/mapper/ost1
