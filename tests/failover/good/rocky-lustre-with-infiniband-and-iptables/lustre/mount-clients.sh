#!/bin/sh
mount -t lustre 10.5.0.11@o2ib:10.5.0.12@o2ib:/work /work
