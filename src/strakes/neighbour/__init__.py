"""Measuring beside others: a small probe feels what they feel, and the measurement gives way before they suffer."""
