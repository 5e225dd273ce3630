"""Whole surveys on a simulated engine and clock, with planted truths: how often does a survey say something that is false?"""
