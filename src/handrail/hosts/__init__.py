"""Hosts: existing engines that place runs on nodes. The port is engine/running/host.py; only assembly/ knows them."""
