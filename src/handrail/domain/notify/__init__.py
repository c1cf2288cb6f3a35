"""Notices: what is worth telling somebody, and in which form. Pure; they are kept and sent by engine/notify/."""
