"""Campaigns: operators put to the test, what is open first, and one verdict on each."""
