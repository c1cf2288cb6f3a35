"""Controls: which commands an action on a run stands for, and what a fork shares."""
