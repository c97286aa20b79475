/** The types of all rows, as Kysely reads them. */
import type { HostRow, InstanceRow, SpendingRow, WorkerRow } from './machineRows.ts';
import type { DownstreamRow } from './downstreamRows.ts';

export interface JobRow {
  id: string;
  cluster: string;
  tenant: string;
  owner: string;
  submitting_principal: string;
  kind: string;
  name: string;
  spec: string;
  task_count: number;
  created_at_ms: number;
  round: number;
  cancel_requested_at_ms: number | null;
  cancelled_by: string | null;
  ended_at_ms: number | null;
  spent_micros: number;
  version: number;
  end_state: string | null;
  end_reason: string | null;
  exit_code: number | null;
  started_at_ms: number | null;
  succeeded: number | null;
  failed: number | null;
  cancelled: number | null;
  unschedulable: number | null;
  parent: string | null;
  root: string | null;
  priority: string | null;
}

export interface TaskRow {
  job: string;
  task_index: number;
  cluster: string;
  tenant: string;
  created_at_ms: number;
  state: string;
  attempts: number;
  failures: number;
  interruptions: number;
  round_done: number;
  reason: string;
  exit_code: number | null;
  not_before_ms: number;
  started_at_ms: number | null;
  ended_at_ms: number | null;
  version: number;
}

export interface AttemptRow {
  job: string;
  task_index: number;
  n: number;
  uid: string;
  tenant: string;
  round: number;
  worker: string;
  assigned_at_ms: number;
  price_micros: number;
  state: string;
  stop_cause: string | null;
  cause: string | null;
  exit_code: number | null;
  signal: string | null;
  message: string;
  started_at_ms: number | null;
  ended_at_ms: number | null;
  stdout_bytes: number | null;
  stderr_bytes: number | null;
  charges: number;
  charged_micros: number;
  charged_device_ms: number;
  facts: string;
  result: string | null;
  result_bytes: number | null;
  version: number;
}

export interface CheckpointRow {
  job: string;
  task_index: number;
  n: number;
  attempt: string;
  tenant: string;
  manifest: string;
  bytes: number;
  files: number;
  reason: string;
  taken_boot_ms: number;
  created_at_ms: number;
}

export interface ClaimRow {
  owner: string;
  worker: string;
  cpu_millis: number;
  memory_bytes: number;
  devices: string;
  share: number;
  ports: string;
  state: string;
}

export interface TokenRow {
  id: string;
  kind: string;
  name: string;
  tenant: string;
  user_name: string;
  scopes: string;
  hash: string;
  pool: string;
  max_live_workers: number;
  created_at_ms: number;
  expires_at_ms: number | null;
  attempt: string | null;
  revoked_at_ms: number | null;
  last_used_at_ms: number | null;
}

export interface EventRow {
  epoch: number;
  seq: number;
  at_ms: number;
  kind: string;
  tenant: string;
  job: string | null;
  task: string | null;
  attempt: string | null;
  worker: string | null;
  data: string;
  hash: string | null;
}

interface AuditHeadRow {
  tenant: string;
  hash: string;
  entries: number;
}

export interface TenantRow {
  name: string;
  created_at_ms: number;
  suspended: number;
  note: string;
  version: number;
}

export interface UserRow {
  tenant: string;
  name: string;
  roles: string;
  left_at_ms: number | null;
  version: number;
}

export interface SubmissionRow {
  created_at_ms: number;
  first_job: string;
  tenant: string;
  idempotency_key: string;
  body_hash: string;
  jobs: string;
}

export interface BudgetRow {
  tenant: string;
  user_name: string;
  weight: number;
  device_millis: number | null;
  device_hours_per_day: number | null;
  device_hours_per_month: number | null;
  micros_per_day: number | null;
  micros_per_month: number | null;
  mode: string;
  at_limit: string;
  version: number;
}

export interface DataSetRow {
  tenant: string;
  name: string;
  version: number;
  kind: string;
  hash: string;
  bytes: number;
  files: number;
  created_at_ms: number;
  created_by: string;
}

export interface AccountRow {
  tenant: string;
  user_name: string;
  cpu_use: number;
  memory_use: number;
  device_use: number;
  as_of_ms: number;
  day: number;
  day_micros: number;
  day_device_ms: number;
  month: number;
  month_micros: number;
  month_device_ms: number;
  told: string;
  version: number;
}

export interface LedgerRow {
  until_ms: number;
  attempt: string;
  n: number;
  account: string;
  tenant: string;
  user_name: string;
  pool: string;
  micros: number;
  device_ms: number;
}

export interface UsageDayRow {
  day: number;
  tenant: string;
  user_name: string;
  pool: string;
  micros: number;
  device_ms: number;
  cpu_ms: number;
  attempts: number;
  version: number;
}

export interface NoticeRow {
  id: string;
  tenant: string;
  channel: string;
  kind: string;
  job: string | null;
  facts: string;
  created_at_ms: number;
  tries: number;
  next_try_at_ms: number;
  last_error: string;
}

export interface ControllerRow {
  id: number;
  cluster_id: string;
  epoch: number;
  batch: number;
  seq: number;
}

export interface Database {
  controller: ControllerRow;
  jobs: JobRow;
  submissions: SubmissionRow;
  tasks: TaskRow;
  attempts: AttemptRow;
  checkpoints: CheckpointRow;
  claims: ClaimRow;
  workers: WorkerRow;
  instances: InstanceRow;
  hosts: HostRow;
  pool_spending: SpendingRow;
  tokens: TokenRow;
  budgets: BudgetRow;
  data_sets: DataSetRow;
  job_downstream: DownstreamRow;
  accounts: AccountRow;
  ledger: LedgerRow;
  usage_days: UsageDayRow;
  notices: NoticeRow;
  audit_heads: AuditHeadRow;
  tenants: TenantRow;
  users: UserRow;
  events: EventRow;
}
