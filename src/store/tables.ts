/** The tables: their columns in binding order, and which of them change. */
import type { Database } from './database.ts';

export type TableName = Exclude<keyof Database, 'controller'>;

interface Table {
  key: readonly string[];
  /** Set by the insert, never changed. */
  fixed: readonly string[];
  mutable: readonly string[];
  integers: ReadonlySet<string>;
  /** Numbers with a fraction. All others are text. */
  doubles: ReadonlySet<string>;
}

const words = (text: string): string[] => text.trim().split(/\s+/).filter(Boolean);

function table(key: string, fixed: string, mutable: string, integers: string, doubles = ''): Table {
  return {
    key: words(key),
    fixed: words(fixed),
    mutable: words(mutable),
    integers: new Set(words(integers)),
    doubles: new Set(words(doubles)),
  };
}

/**
 * Binding order: key, fixed, mutable for an insert; mutable, key for an update; key for a delete.
 */
export const TABLES: Record<TableName, Table> = {
  jobs: table(
    'tenant id',
    'cluster owner submitting_principal kind name spec task_count created_at_ms',
    `round cancel_requested_at_ms cancelled_by ended_at_ms spent_micros version
     end_state end_reason exit_code started_at_ms succeeded failed cancelled unschedulable
     parent root priority`,
    `task_count created_at_ms round cancel_requested_at_ms ended_at_ms spent_micros version
     exit_code started_at_ms succeeded failed cancelled unschedulable`,
  ),
  submissions: table(
    'created_at_ms first_job',
    'tenant idempotency_key body_hash jobs',
    '',
    'created_at_ms',
  ),
  tasks: table(
    'job task_index',
    'cluster tenant created_at_ms',
    `state attempts failures interruptions round_done reason exit_code not_before_ms
     started_at_ms ended_at_ms version`,
    `task_index created_at_ms attempts failures interruptions round_done exit_code not_before_ms
     started_at_ms ended_at_ms version`,
  ),
  attempts: table(
    'job task_index n',
    'uid tenant round worker assigned_at_ms price_micros',
    `state stop_cause cause exit_code signal message started_at_ms ended_at_ms
     stdout_bytes stderr_bytes charges charged_micros charged_device_ms facts result
     result_bytes version`,
    `task_index n round assigned_at_ms price_micros exit_code started_at_ms ended_at_ms
     stdout_bytes stderr_bytes charges charged_micros charged_device_ms result_bytes version`,
  ),
  checkpoints: table(
    'job task_index n',
    'attempt tenant manifest bytes files reason taken_boot_ms created_at_ms',
    '',
    'task_index n bytes files taken_boot_ms created_at_ms',
  ),
  claims: table(
    'owner',
    'worker cpu_millis memory_bytes devices share ports',
    'state',
    'cpu_millis memory_bytes share',
  ),
  workers: table(
    'id',
    'machine joined_at_ms',
    `name pool boot_id address network resources attributes terms agent_version state draining
     token_hash join_token host instance ends_at_ms problems ended_at_ms version`,
    'joined_at_ms draining ends_at_ms ended_at_ms version',
  ),
  instances: table(
    'id',
    'pool created_at_ms',
    'state handle record ended_at_ms version',
    'created_at_ms ended_at_ms version',
  ),
  hosts: table('id', '', 'record version', 'version'),
  pool_spending: table('pool', '', 'record version', 'version'),
  tokens: table(
    'id',
    `kind name tenant user_name scopes hash pool max_live_workers created_at_ms expires_at_ms
     attempt`,
    'revoked_at_ms last_used_at_ms',
    'max_live_workers created_at_ms expires_at_ms revoked_at_ms last_used_at_ms',
  ),
  budgets: table(
    'tenant user_name',
    '',
    `weight device_millis device_hours_per_day device_hours_per_month
     micros_per_day micros_per_month mode at_limit version`,
    'device_millis micros_per_day micros_per_month version',
    'weight device_hours_per_day device_hours_per_month',
  ),
  data_sets: table(
    'tenant name',
    '',
    'version kind hash bytes files created_at_ms created_by',
    'version bytes files created_at_ms',
  ),
  job_downstream: table('job', 'tenant issuer subject audiences', 'sealed', ''),
  accounts: table(
    'tenant user_name',
    '',
    `cpu_use memory_use device_use as_of_ms day day_micros day_device_ms
     month month_micros month_device_ms told version`,
    `as_of_ms day day_micros day_device_ms month month_micros month_device_ms version`,
    'cpu_use memory_use device_use',
  ),
  ledger: table(
    'until_ms attempt n account',
    'tenant user_name pool micros device_ms',
    '',
    'until_ms n micros device_ms',
  ),
  usage_days: table(
    'day tenant user_name pool',
    '',
    'micros device_ms cpu_ms attempts version',
    'day micros device_ms cpu_ms attempts version',
  ),
  notices: table(
    'id',
    'tenant channel kind job facts created_at_ms',
    'tries next_try_at_ms last_error',
    'created_at_ms tries next_try_at_ms',
  ),
  audit_heads: table('tenant', '', 'hash entries', 'entries'),
  tenants: table(
    'name',
    'created_at_ms',
    'suspended note version',
    'created_at_ms suspended version',
  ),
  users: table('tenant name', '', 'roles left_at_ms version', 'left_at_ms version'),
  events: table(
    'epoch seq',
    'at_ms kind tenant job task attempt worker data hash',
    '',
    'epoch seq at_ms',
  ),
};

/** How many values a row has in the flat lists of a batch. */
export type RowOperation = 'fresh' | 'insert' | 'update' | 'delete';

export function rowWidth(name: TableName, operation: RowOperation): number {
  const { key, fixed, mutable } = TABLES[name];
  if (operation === 'fresh') return key.length + fixed.length;
  if (operation === 'insert') return key.length + fixed.length + mutable.length;
  return operation === 'update' ? mutable.length + key.length : key.length;
}

export const TABLE_NAMES = Object.keys(TABLES) as TableName[];
