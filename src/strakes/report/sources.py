"""References of the publications whose values a report shows."""

from __future__ import annotations

from collections.abc import Mapping

SOURCES: Mapping[str, str] = {
    "S1": "Tian, Wu, Dong, Jing, Luo, Mo: parallel I/O on large clusters, choosing the configuration at user level "
    "(2020; in Chinese)",
    "S2": "Zeng, Du, Wan, Yan, Zhong: optimising the Lustre file system of Tianhe-2 (2021; in Chinese)",
    "S3": "Quantum StorNext, floods of small files: performance test and tuning (2011; in Chinese)",
    "S4": "Booher, Kulkarni: Can it scale? Metadata performance testing of Lustre dynamic namespaces (LANL)",
    "S5": "Zanon Boito, Kassick, Navaux: Evaluating the performance of Lustre file system (WSPPD, 2009)",
}
