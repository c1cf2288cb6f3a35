"""Retention: reads the table [retention], opens what archives, and keeps the schedule.

Part of the only place that knows which parts the program is made of."""
