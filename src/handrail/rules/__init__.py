"""Rules: the checks that can be applied to an output, one file for each rule or group of rules."""
