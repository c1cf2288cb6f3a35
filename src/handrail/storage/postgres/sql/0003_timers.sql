-- Timers: a run that waits for an instant rests until then, and whoever looks first after it takes the run.

-- `wake_at` is 0 for a run that needs a worker now, an instant for one that needs a worker then, and null for one that
-- rests until something happens. One index for each of the first two: with a million timers neither gets slow.
create index head_ready on handrail.head (project, stream) where owner = '' and wake_at = 0;
create index head_due on handrail.head (project, wake_at) where owner = '' and wake_at > 0;

-- It has both in it. A process from before that still runs finds the same without it, only slower.
drop index handrail.head_awake;
