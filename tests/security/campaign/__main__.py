"""Run seeds from the command line: FIRST [COUNT [ACT ...]]. The last line summarises them."""

import re
import sys
from collections import Counter

from security.campaign.seeds import run_seed
from security.campaign.world import BrokenError

first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
drawn: Counter[str] = Counter()
broken = []
for seed in range(first, first + count):
    try:
        done = run_seed(seed, tuple(sys.argv[3:]))
    except BrokenError as error:
        broken.append(seed)
        print(seed, "BROKEN:", error, flush=True)
        continue
    print(seed, "holds:", "; ".join(done), flush=True)
    drawn.update(fault for fault in done[1:] if not re.search(r"^ended|^gone on|nothing to do", fault))
print(f"{count} seeds, {sum(drawn.values())} faults ({drawn}), broken: {broken or 'none'}")
sys.exit(bool(broken))
