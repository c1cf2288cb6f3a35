/* Written by types.mjs from the OpenAPI document; not by hand. */

export interface AboutServer {
  channels: readonly string[];
  events?: number;
  home: string;
  journal_bytes?: number;
  needs_passphrase?: boolean;
  note?: string;
  person: string;
  project: Project;
  python: string;
  readers?: number;
  restart?: string;
  started: string;
  url: string;
  version: string;
}

export interface Account {
  approvals: readonly Approval[];
  checkpoint?: number;
  definition: string;
  ended?: string;
  erased: readonly number[];
  events: number;
  exceptions: readonly ExceptionView[];
  forked_from?: string;
  goal?: string;
  has_checkpoint_itself?: boolean;
  has_ended: boolean;
  key: string;
  made: string;
  not_undone: readonly string[];
  run: string;
  sealed?: number;
  started?: string;
  status: RunStatus;
  steps: readonly ProvenStep[];
  tools: readonly string[];
  workflow: string;
}

export type Action = "accept" | "approve" | "cancel" | "compensate" | "fork" | "pause" | "reject" | "resume" | "retry" | "skip";

export interface ActionBody {
  description: string;
  details?: Readonly<Record<string, any>>;
  kind?: "cleaned_up" | "notified" | "other" | "performed" | "rolled_back" | "stopped";
  outcome?: "" | "done" | "failed" | "skipped" | "started";
  output?: any;
  step?: string;
}

export interface AnswerBody {
  answer: "approve" | "reject";
  digest?: string;
  output?: any;
  passphrase?: string | null;
  reason: string;
}

export interface AnsweredView {
  actor: string;
  at: string;
  attempt?: number;
  data?: Readonly<Record<string, any>>;
  erased?: boolean;
  hash: string;
  kind: string;
  label?: string;
  n: number;
  name?: string;
  project?: string;
  run: string;
  seq?: number;
  step?: string;
  text?: string;
}

export interface Approval {
  at: string;
  by: string;
  channel?: string;
  digest?: string;
  step: string;
  what: string;
  words?: string;
}

export interface ApprovalPage {
  answered: readonly AnsweredView[];
  approvals: readonly ApprovalView[];
  cursor?: string;
}

export interface ApprovalSoFar {
  at: string;
  behalf?: string;
  by: string;
  channel?: string;
  n: number;
  reason?: string;
}

export interface ApprovalView {
  ahead: readonly CallAhead[];
  ahead_unshown?: number;
  answers: readonly ApprovalSoFar[];
  approvals?: number;
  approved_by: readonly string[];
  by: readonly string[];
  digest: string;
  done: readonly StepView[];
  effects: readonly EffectAhead[];
  effects_done: readonly EffectDone[];
  expires?: string;
  goal?: string;
  hint?: string;
  label?: string;
  may_answer: boolean;
  name?: string;
  needs_passphrase: boolean;
  not_by?: string;
  project?: ProjectView | null;
  run: string;
  schema?: any;
  since?: string;
  step: string;
  text: string;
  unshown?: number;
  why_not?: string;
  workflow: string;
}

export interface AsOf {
  actor: string;
  at: string;
  kind: string;
  n: number;
  of: number;
  step?: string;
  text: string;
}

export interface Break {
  n: number;
  reason: string;
  stream: string;
}

export interface BrokenFile {
  file: string;
  message: string;
}

export interface CallAhead {
  after?: string;
  args?: any;
  by: Hand;
  can_be_undone?: boolean;
  effect?: Effect | null;
  is_undo?: boolean;
  order: number;
  own_undo?: boolean;
  problem?: string;
  step: string;
  text?: string;
  title?: string;
  tool?: string;
  when?: string;
  workflow?: string;
}

export type Category = "cancelled" | "conflict" | "internal" | "invalid_input" | "not_found" | "permission" | "rate_limited" | "timeout" | "tool_error" | "transient";

export interface CheckBody {
  definition?: Readonly<Record<string, any>> | null;
  output?: any;
  run?: string;
  step?: string;
  workflow?: string;
}

export interface CheckView {
  evidence?: Readonly<Record<string, any>>;
  findings: readonly (Readonly<Record<string, any>>)[];
  looks_at?: string;
  parameters?: Readonly<Record<string, any>>;
  passed?: boolean | null;
  rule: string;
  severity?: string;
}

export interface Checked {
  findings: readonly Finding[];
  valid: boolean;
  waves: readonly (readonly string[])[];
}

export interface CheckpointMade {
  checkpoint?: CheckpointView | null;
  new: boolean;
}

export interface CheckpointView {
  at: string;
  digest: string;
  events: number;
  is_restart?: boolean;
  key?: string;
  number: number;
  previous?: string;
  streams: number;
}

export interface ClientList {
  clients: readonly ClientView[];
}

export interface ClientView {
  connected?: boolean;
  heard?: string;
  kind: string;
  name: string;
  run?: string;
  step?: string;
}

export interface CompensationBody {
  description: string;
  details?: Readonly<Record<string, any>>;
  outcome?: "compensated" | "not_needed";
  step: string;
}

export interface ControlBody {
  output?: any;
  passphrase?: string | null;
  reason?: string;
  step?: string;
}

export interface CriticalStep {
  end: string;
  idle_ms?: number;
  start: string;
  step: string;
  title?: string;
  waited_ms?: number;
  worked_ms?: number;
}

export interface DayFigures {
  day: string;
  statuses?: Readonly<Record<string, number>>;
}

export interface DecisionBody {
  alternatives?: readonly string[];
  decision: string;
  details?: Readonly<Record<string, any>>;
  reason: string;
  step?: string;
}

export interface DefinitionView {
  definition?: Readonly<Record<string, any>>;
  differs?: boolean;
  hash?: string;
  id: string;
  inputs?: Readonly<Record<string, any>>;
  name: string;
  newest?: string;
  version?: string;
}

export interface DoctorFinding {
  age_ms?: number | null;
  fix?: string;
  level: string;
  message: string;
  name: string;
}

export interface DoctorReport {
  at?: string;
  checks: readonly DoctorFinding[];
  ok: boolean;
}

export interface Done {
  receipt: string;
  repeated?: boolean;
  run: string;
  status: RunStatus;
  view?: Status | null;
}

export interface DryRun {
  waves: readonly (readonly Rehearsed[])[];
  workflow: string;
}

export type Effect = "compensatable" | "irreversible" | "none" | "reversible";

export interface EffectAhead {
  args?: string;
  effect?: Effect | null;
  has_undo?: boolean;
  step: string;
  title?: string;
  tool?: string;
  when?: string;
}

export interface EffectDone {
  by?: string;
  can_be_undone?: boolean;
  effect?: Effect | null;
  step: string;
  title?: string;
  tool?: string;
}

export interface EffectLeft {
  can_be_undone?: boolean;
  effect?: Effect | null;
  step: string;
  title?: string;
  tool?: string;
  why: Lasting;
}

export interface EventPage {
  cursor?: string;
  events: readonly EventView[];
  project?: ProjectView | null;
  total?: number;
}

export type EventSubject = "decisions" | "failures" | "undo";

export interface EventView {
  actor: string;
  at: string;
  attempt?: number;
  data?: Readonly<Record<string, any>>;
  erased?: boolean;
  hash: string;
  kind: string;
  n: number;
  project?: string;
  run: string;
  seq?: number;
  step?: string;
}

export type ExceptionKind = "override" | "skipped_check" | "skipped_step";

export interface ExceptionView {
  by: string;
  kind: ExceptionKind;
  reason: string;
  step: string;
}

export interface Failure {
  attempts: number;
  category?: Category | null;
  message: string;
  options: readonly RecoveryOption[];
  parts?: FailureParts | null;
  step: string;
  tool?: string;
  tries: readonly Try[];
}

export interface FailureParts {
  host?: string;
  said: string;
  status?: number;
}

export interface Finding {
  at?: Position | null;
  excerpt?: string;
  fix?: string;
  fixed_by?: FixedBy;
  message: string;
  rule: string;
  severity: Severity;
  unapplied?: boolean;
  where: string;
}

export type FixedBy = "agent" | "author" | "person";

export interface ForkAhead {
  again: readonly string[];
  carried: readonly string[];
}

export interface ForkView {
  effects: readonly string[];
  run: string;
  step: string;
}

export interface Graph {
  edges: readonly GraphEdge[];
  is_cut?: boolean;
  mermaid?: string;
  nodes: readonly GraphNode[];
}

export interface GraphEdge {
  source: string;
  target: string;
}

export interface GraphNode {
  attempts?: number;
  effect?: Effect | null;
  hand?: string;
  id: string;
  kind: string;
  parent?: string;
  round?: number;
  rounds?: number;
  status?: StepStatus | null;
  title: string;
  undo?: boolean;
  undo_order?: number;
}

export interface Guided {
  accepted?: boolean | null;
  clarify: readonly string[];
  exceptions: readonly ExceptionView[];
  failure?: Failure | null;
  findings: readonly Finding[];
  guidance: readonly string[];
  not_compensated: readonly string[];
  options: readonly RecoveryOption[];
  outputs?: Readonly<Record<string, any>>;
  preconditions: readonly string[];
  progress: Progress;
  ready: readonly string[];
  reason?: string;
  recap?: Recap | null;
  receipt?: string;
  repeated?: boolean;
  run: string;
  status: RunStatus;
  step?: ShownStep | null;
  tries?: number;
  unchecked?: boolean;
  waiting_for: readonly WaitingFor[];
  workflow?: string;
}

export type Hand = "agent" | "handrail" | "person";

export interface Home {
  attention: readonly string[];
  counts?: Readonly<Record<string, number>>;
  elsewhere?: number;
  ended: readonly RunLine[];
  failed: readonly RunLine[];
  open: readonly RunLine[];
  running: readonly RunLine[];
  today?: Readonly<Record<string, number>>;
  waiting_for_me: readonly WaitingItem[];
  waiting_for_others: readonly WaitingItem[];
}

export interface JournalProof {
  checkpoints: readonly CheckpointView[];
  events: number;
  key?: string;
  signed_events?: number;
  streams: readonly StreamHead[];
  witnesses: readonly WitnessView[];
}

export interface JudgedCheck {
  evidence?: Readonly<Record<string, any>>;
  findings: readonly (Readonly<Record<string, any>>)[];
  looks_at: LooksAt;
  passed: boolean;
  rule: string;
}

export interface JudgedOutput {
  accepted: boolean;
  at: string;
  by: string;
  checks: readonly JudgedCheck[];
  findings: readonly (Readonly<Record<string, any>>)[];
  n: number;
  proof?: Proof | null;
}

export type Kind = "approve" | "each" | "prompt" | "repeat" | "tool" | "workflow";

export type Lasting = "given_up" | "no_undo" | "not_undone" | "undo_fails" | "unknown";

export interface LatencySlot {
  calls: number;
  failed?: number;
  p50_ms?: number | null;
  p95_ms?: number | null;
  start: string;
}

export interface LegalAction {
  action: Action;
  step?: string;
}

export interface LibraryPage {
  broken: readonly BrokenFile[];
  categories: readonly string[];
  cursor?: string;
  total?: number;
  workflows: readonly WorkflowSummary[];
}

export type LooksAt = "words" | "world";

export interface NextRequest {
  method: string;
  path: string;
}

export type NodeState = "down" | "draining" | "lost" | "paused" | "up";

export interface NodeView {
  beat_ms?: number;
  beats?: number;
  id: string;
  kind: string;
  labels: readonly string[];
  machine: string;
  name: string;
  paused_by?: string;
  projects: readonly string[];
  runs: readonly string[];
  slots?: number;
  state: NodeState;
  used?: number;
  version: string;
}

export interface NodesView {
  by_label: readonly Waiting[];
  nodes: readonly NodeView[];
  waiting?: number;
}

export interface OutageView {
  closed?: string;
  failures: number;
  lasted_ms?: number;
  opened: string;
  openings?: number;
  probes?: number;
  reason: string;
  until?: string;
}

export interface PinChange {
  difference: string;
  plans: readonly string[];
  runs: readonly string[];
  tool: string;
}

export interface PlanBody {
  note?: string;
  plan: Readonly<Record<string, any>>;
}

export interface PlanPage {
  cursor?: string;
  plans: readonly PlanSummary[];
  total?: number;
}

export interface PlanSummary {
  id: string;
  name: string;
  retired?: string;
  saved: string;
  steps: number;
  version: number;
}

export interface PlanVersionView {
  by: string;
  hash: string;
  note?: string;
  number: number;
  saved: string;
  steps?: number;
}

export interface PlanView {
  definition: Readonly<Record<string, any>>;
  id: string;
  receipt?: string;
  retired?: string;
  version: number;
  versions: readonly PlanVersionView[];
  waves: readonly (readonly string[])[];
}

export interface Position {
  column: number;
  file: string;
  line: number;
}

export interface PostponedView {
  kind: Why;
  reason?: string;
  step?: string;
  until?: string;
}

export interface Preview {
  action: Action;
  allowed: boolean;
  at: number;
  becomes?: RunStatus | null;
  calls: readonly CallAhead[];
  changes: readonly StepChange[];
  cli?: string;
  digest?: string;
  ends?: RunStatus | null;
  fork?: ForkAhead | null;
  hint?: string;
  in_progress: readonly string[];
  legal: boolean;
  mcp?: Readonly<Record<string, any>>;
  means?: string;
  message?: string;
  missing?: number;
  notes: readonly string[];
  passphrase?: boolean;
  run: string;
  schema?: any;
  stays: readonly EffectLeft[];
  step?: string;
  unshown?: number;
  was: RunStatus;
  who_may?: string;
  why?: string;
}

export interface ProblemDetails {
  code: number;
  detail: string;
  findings?: readonly Finding[];
  hint?: string;
  instance?: string;
  name: string;
  next?: NextRequest | null;
  retry_after?: number;
  status: number;
  title: string;
  type: string;
}

export interface Progress {
  done: number;
  in_rounds?: number;
  known_done?: number;
  known_total?: number;
  rounds?: Readonly<Record<string, string>>;
  skipped?: number;
  total: number;
  undone?: UndoneProgress | null;
}

export interface Project {
  folder: string;
  id: string;
  name: string;
}

export interface ProjectEntry {
  command?: string;
  exists?: boolean;
  folder?: string;
  id: string;
  is_here?: boolean;
  is_open?: boolean;
  name: string;
  open?: number;
  runs?: number;
}

export interface ProjectList {
  projects: readonly ProjectEntry[];
}

export interface ProjectView {
  folder?: string;
  hint?: string;
  id?: string;
  name: string;
}

export type Proof = "checked" | "claimed" | "verified";

export type ProofKind = "approved" | "carried" | "checked" | "claimed" | "executed" | "verified";

export interface ProvenStep {
  by?: string;
  checks: readonly string[];
  compensation?: string;
  evidence: readonly (Readonly<Record<string, any>>)[];
  how?: ProofKind | null;
  id: string;
  message?: string;
  refused?: number;
  status: StepStatus;
}

export interface ReasonBody {
  reason: string;
}

export interface Recap {
  checked?: Readonly<Record<string, readonly string[]>>;
  claimed: readonly string[];
  decisions: readonly string[];
  done: readonly string[];
  exceptions: readonly ExceptionView[];
  goal?: string;
  inputs?: Readonly<Record<string, any>>;
  outputs?: Readonly<Record<string, string>>;
  refused: readonly string[];
  vars?: Readonly<Record<string, any>>;
  verified?: Readonly<Record<string, readonly string[]>>;
}

export interface Receipt {
  receipt: string;
  run: string;
}

export interface RecoveryOption {
  action: "pause" | "resume" | "cancel" | "retry" | "skip" | "accept" | "compensate" | "approve" | "reject" | "fork" | "record" | "report";
  by?: string;
  means: string;
  step?: string;
}

export interface Rehearsed {
  approve?: string;
  args?: Readonly<Record<string, any>>;
  effect?: Effect | null;
  id: string;
  kind: string;
  prompt?: string;
  steps: readonly string[];
  title?: string;
  tool?: string;
  undo?: string;
  when?: string;
  workflow?: string;
}

export interface RuleList {
  broken?: Readonly<Record<string, string>>;
  rules: readonly RuleView[];
}

export interface RuleView {
  example?: Readonly<Record<string, any>>;
  looks_at: string;
  name: string;
  origin?: string;
  parameters?: Readonly<Record<string, any>>;
  reads: string;
  required: readonly string[];
  summary: string;
  timeout?: string;
  version?: string;
}

export interface RunComparison {
  a: RunLine;
  b: RunLine;
  first_difference?: string;
  inputs: readonly ValueDifference[];
  same_definition?: boolean;
  steps: readonly StepComparison[];
}

export interface RunLine {
  archived?: string;
  done: number;
  ended?: string;
  exceptions?: number;
  failed?: number;
  goal?: string;
  label?: string;
  name?: string;
  project?: ProjectView | null;
  run: string;
  started?: string;
  starter?: string;
  status: RunStatus;
  total?: number;
  updated?: string;
  waiting_for: readonly WaitingFor[];
  why?: string;
  workflow: string;
}

export interface RunPage {
  cursor?: string;
  looked_at?: number;
  runs: readonly RunLine[];
}

export type RunStatus = "cancelled" | "compensated" | "compensating" | "compensation_failed" | "completed" | "failed" | "new" | "paused" | "running" | "waiting";

export interface RunStep {
  approved_by: readonly string[];
  attempts?: number;
  by?: string;
  category?: Category | null;
  channel?: string;
  checks: readonly string[];
  compensation?: string;
  due?: string;
  effect?: Effect | null;
  ended?: string;
  has_undo?: boolean;
  id: string;
  kind: Kind;
  looks_at?: Readonly<Record<string, LooksAt>>;
  message?: string;
  proof?: string;
  refused?: number;
  round?: number;
  rounds?: number;
  says?: string;
  started?: string;
  status: StepStatus;
  text?: string;
  title?: string;
  tool?: string;
  undone_ms?: number;
  waited_ms?: number;
  waits_for: readonly PostponedView[];
  worked_ms?: number;
}

export interface RunStory {
  actors?: Readonly<Record<string, number>>;
  left_out?: number;
  lines: readonly StoryLine[];
  n: number;
  run: string;
  subjects?: Readonly<Record<string, number>>;
  why: readonly WhyLine[];
}

export interface RunTimeline {
  critical: readonly CriticalStep[];
  end?: string;
  now: string;
  run: string;
  says?: string;
  spans: readonly SpanView[];
  start: string;
  took_ms?: number;
  undone_ms?: number;
  unshown?: number;
  waited_ms?: number;
  worked_ms?: number;
}

export interface RunView {
  actions: readonly LegalAction[];
  archived?: string;
  as_of?: AsOf | null;
  deadline?: string;
  definition?: string;
  ended?: string;
  exceptions: readonly ExceptionView[];
  failure?: Failure | null;
  fork?: ForkView | null;
  goal?: string;
  inputs?: Readonly<Record<string, any>>;
  label?: string;
  mode?: string;
  n?: number;
  name?: string;
  node?: string;
  not_compensated: readonly string[];
  options: readonly RecoveryOption[];
  outputs?: Readonly<Record<string, any>>;
  priority?: number;
  progress: Progress;
  project?: ProjectView | null;
  reason?: string;
  receipt?: string;
  run: string;
  started?: string;
  starter?: string;
  status: RunStatus;
  steps: readonly StepView[];
  vars?: Readonly<Record<string, any>>;
  version?: string;
  waited_ms?: number;
  waiting_for: readonly WaitingFor[];
  why: readonly WhyLine[];
  workflow: string;
}

export interface SavedPlan {
  findings: readonly Finding[];
  hash: string;
  plan: string;
  receipt: string;
  repeated?: boolean;
  version: number;
  waves: readonly (readonly string[])[];
}

export interface SecretList {
  secrets: readonly SecretView[];
}

export interface SecretView {
  given_to: readonly string[];
  name: string;
  set: string;
  stored_in: string;
}

export type ServerState = "changed" | "half_open" | "not_called" | "open" | "untrusted" | "used";

export interface ServerView {
  changed: readonly PinChange[];
  failures?: number;
  figures: readonly ToolFiguresView[];
  outages: readonly OutageView[];
  server: string;
  state: ServerState;
  tools: readonly string[];
  until?: string;
  whole?: ToolFiguresView | null;
  why?: string;
}

export interface SettingList {
  hint?: string;
  settings: readonly SettingView[];
  trust?: string;
}

export interface SettingView {
  is_off?: boolean;
  origin: string;
  setting: string;
  value: any;
}

export type Severity = "critical" | "major" | "minor";

export interface ShownStep {
  checks: readonly string[];
  confirm?: boolean;
  guidance: readonly string[];
  id: string;
  kind: string;
  model_hint?: string;
  output?: Readonly<Record<string, any>> | null;
  outside: readonly string[];
  prompt?: string;
  role?: string;
  title: string;
}

export type SpanKind = "agent_wait" | "decision_wait" | "failed" | "lost" | "paused" | "person_wait" | "retry_wait" | "time_wait" | "undo" | "undo_failed" | "undo_wait" | "work";

export interface SpanView {
  attempt?: number;
  end?: string;
  kind: SpanKind;
  ms?: number;
  n: number;
  start: string;
  step: string;
}

export interface StartBody {
  definition?: Readonly<Record<string, any>> | null;
  goal?: string;
  inputs?: Readonly<Record<string, any>>;
  plan?: string;
  priority?: number;
  workflow?: string;
}

export interface StartOneBody {
  goal?: string;
  inputs?: Readonly<Record<string, any>>;
  priority?: number;
}

export interface Statistics {
  days: readonly DayFigures[];
  is_cut?: boolean;
  runs?: number;
  since?: string;
  statuses?: Readonly<Record<string, number>>;
  tools: readonly ToolFiguresView[];
  workflows: readonly WorkflowFigures[];
}

export interface Status {
  deadline?: string;
  ended?: string;
  exceptions: readonly ExceptionView[];
  failure?: Failure | null;
  fork?: ForkView | null;
  goal?: string;
  node?: string;
  not_compensated: readonly string[];
  options: readonly RecoveryOption[];
  outputs?: Readonly<Record<string, any>>;
  priority?: number;
  progress: Progress;
  project?: ProjectView | null;
  reason?: string;
  receipt?: string;
  run: string;
  started?: string;
  status: RunStatus;
  steps: readonly StepView[];
  waiting_for: readonly WaitingFor[];
  workflow: string;
}

export interface StepChange {
  becomes: StepStatus;
  step: string;
  title?: string;
  was: StepStatus;
}

export interface StepComparison {
  a?: StepStatus | null;
  attempts_a?: number;
  attempts_b?: number;
  b?: StepStatus | null;
  output_differs?: boolean;
  step: string;
  worked_a_ms?: number | null;
  worked_b_ms?: number | null;
}

export interface StepDetail {
  actions: readonly LegalAction[];
  checks: readonly CheckView[];
  definition?: Readonly<Record<string, any>>;
  events: readonly EventView[];
  input?: any;
  judged: readonly JudgedOutput[];
  key?: string;
  output?: any;
  outputs?: Readonly<Record<string, any>>;
  step: StepView;
  tries: readonly TryView[];
  undo?: UndoView | null;
}

export interface StepPage {
  counts?: Readonly<Record<string, number>>;
  cursor?: string;
  steps: readonly RunStep[];
  total?: number;
}

export type StepStatus = "cancelled" | "compensated" | "compensating" | "compensation_failed" | "completed" | "failed" | "pending" | "ready" | "running" | "skipped" | "uncertain" | "waiting";

export interface StepView {
  approved_by: readonly string[];
  attempts?: number;
  by?: string;
  category?: Category | null;
  channel?: string;
  checks: readonly string[];
  compensation?: string;
  due?: string;
  ended?: string;
  id: string;
  kind: Kind;
  looks_at?: Readonly<Record<string, LooksAt>>;
  message?: string;
  proof?: string;
  refused?: number;
  round?: number;
  rounds?: number;
  says?: string;
  started?: string;
  status: StepStatus;
  text?: string;
  title?: string;
  undone_ms?: number;
  waited_ms?: number;
  waits_for: readonly PostponedView[];
  worked_ms?: number;
}

export type StoryKind = "action" | "approval" | "controlled" | "decision" | "end" | "failure" | "refused" | "routine" | "start" | "undo";

export interface StoryLine {
  actor?: string;
  at: string;
  event?: string;
  facts?: Readonly<Record<string, string>>;
  first: number;
  kind: StoryKind;
  last: number;
  notes: readonly string[];
  step?: string;
  text: string;
  until?: string;
  words?: string;
}

export interface StreamHead {
  hash: string;
  label?: string;
  n: number;
  name?: string;
  stream: string;
}

export interface SubmitBody {
  confirmed?: boolean;
  note?: string;
  outcome?: "done" | "failed" | "skipped";
  output?: any;
  step: string;
  vars?: Readonly<Record<string, any>>;
}

export interface ToolFiguresView {
  calls?: number;
  failures?: Readonly<Record<string, number>>;
  is_undo?: boolean;
  last?: string;
  max_ms?: number | null;
  p50_ms?: number | null;
  p95_ms?: number | null;
  p99_ms?: number | null;
  retries?: number;
  slots: readonly LatencySlot[];
  tool: string;
}

export interface ToolPage {
  broken?: Readonly<Record<string, string>>;
  cursor?: string;
  servers: readonly ServerView[];
  tools: readonly ToolView[];
  total?: number;
}

export interface ToolView {
  args?: Readonly<Record<string, any>>;
  description: string;
  effect: Effect;
  figures?: ToolFiguresView | null;
  idempotent?: boolean;
  name: string;
  off?: string;
  output?: any;
  server?: string;
  undo?: string;
}

export interface Try {
  at: string;
  attempt: number;
  category: Category;
  message: string;
  took_ms?: number;
}

export type TryOutcome = "completed" | "deferred" | "failed" | "lost" | "refused" | "stopped";

export interface TryView {
  attempt: number;
  by?: string;
  category?: Category | null;
  due?: string;
  ended?: string;
  ended_n?: number;
  findings?: number;
  is_undo?: boolean;
  message?: string;
  n: number;
  outcome?: TryOutcome | null;
  parts?: FailureParts | null;
  started: string;
  step: string;
  took_ms?: number | null;
  wait_ms?: number;
}

export interface UndoView {
  call?: CallAhead | null;
  how?: string;
  message?: string;
  tries: readonly TryView[];
}

export interface UndoneProgress {
  done: number;
  not_undone: number;
  of: number;
}

export interface ValueComparison {
  a: string;
  b: string;
  differences: readonly ValueDifference[];
  is_cut?: boolean;
}

export interface ValueDifference {
  a?: any;
  b?: any;
  sign: string;
  where: string;
}

export interface Verified {
  at: string;
  breaks: readonly Break[];
  checkpoints: number;
  events: number;
  first_bad?: Break | null;
  notes: readonly string[];
  ok: boolean;
  signed_events: number;
  streams: number;
  took_ms?: number;
}

export interface Waiting {
  needs: string;
  nodes: number;
  runs: number;
}

export interface WaitingFor {
  approvals?: number;
  approved_by: readonly string[];
  by: readonly string[];
  digest?: string;
  effects: readonly EffectAhead[];
  expires?: string;
  kind: WaitingKind;
  not_by?: string;
  schema?: any;
  since?: string;
  step: string;
  text?: string;
  unshown?: number;
}

export interface WaitingItem {
  alike?: number;
  by: readonly string[];
  can_undo?: number;
  causes?: number;
  expires?: string;
  goal?: string;
  irreversible?: number;
  kind: WaitingKind;
  label?: string;
  may_answer: boolean;
  name?: string;
  project?: ProjectView | null;
  refused?: number;
  run: string;
  since?: string;
  status?: StepStatus | null;
  step: string;
  text?: string;
  title?: string;
  why?: string;
  workflow: string;
}

export type WaitingKind = "agent" | "approval" | "confirmation" | "decision";

export interface WhoAsks {
  channel: string;
  expires?: string;
  person: string;
  project?: string;
}

export type Why = "agent" | "approval" | "breaker" | "decision" | "limit" | "node" | "retry" | "step" | "time";

export type WhyKind = "agent" | "approval" | "cancelled" | "decision" | "failed" | "paused" | "skipped" | "undo" | "undo_failed" | "unknown";

export interface WhyLine {
  kind: WhyKind;
  lead: string;
  n?: number;
  note?: string;
  step?: string;
  until?: string;
  words?: string;
}

export interface WitnessView {
  at?: string;
  failed_at?: string;
  name: string;
  number?: number;
  reason?: string;
}

export interface WorkflowFigures {
  p50_ms?: number | null;
  p95_ms?: number | null;
  runs?: number;
  statuses?: Readonly<Record<string, number>>;
  workflow: string;
}

export interface WorkflowSummary {
  category?: string;
  completed?: number;
  description?: string;
  ended?: number;
  id: string;
  name: string;
  runs?: number;
  shadows: readonly string[];
  source?: string;
  steps: number;
  tags: readonly string[];
  version?: string;
}

export interface WorkflowView {
  category?: string;
  clarify: readonly string[];
  command?: string;
  completed?: number;
  definition?: Readonly<Record<string, any>>;
  description?: string;
  ended?: number;
  file?: string;
  findings: readonly Finding[];
  graph?: Graph | null;
  guidance: readonly string[];
  id: string;
  inputs?: Readonly<Record<string, any>>;
  license?: string;
  name: string;
  preconditions: readonly string[];
  runs: readonly RunLine[];
  source?: string;
  tags: readonly string[];
  version?: string;
}
