"""What routes give, where no other interface has it.

Values only; what a run looks like is decided in engine/reading/."""
