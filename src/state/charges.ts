/**
 * Charges: what an attempt has used so far goes into the ledger, its accounts and its job. The sum
 * of an attempt's charges is the cost of its time, however often it was charged on the way.
 */
import { costOf, deviceMillisOf, deviceMsOf } from '../core/money.ts';
import { addUse } from '../core/usage.ts';
import type { Attempt } from '../model/attempt.ts';
import type { Claim } from '../model/claim.ts';
import type { LedgerEntry } from '../model/ledger.ts';
import { turnPage, type LiveAccount } from './accounts.ts';
import { tellLevels } from './budgetLevels.ts';
import { touchAccount } from './holdings.ts';
import { DONE, type Charge, type Result } from './mutations.ts';
import type { State } from './state.ts';
import type { Used } from './usageDays.ts';

const MIB = 2 ** 20;
const NOTHING_USED: Used = { micros: 0, deviceMs: 0, cpuMs: 0, attempts: 0 };

export function charge(state: State, mutation: Charge, nowMs: number): Result {
  for (const uid of mutation.attempts) {
    const attempt = state.attempts.get(uid);
    const claim = state.claims.get(uid);
    if (!attempt || !claim) continue;
    chargeUntil(state, attempt, claim, nowMs, nowMs);
  }
  return DONE;
}

/** The last charge of an attempt. Time on a machine that failed is not the user's to pay. */
export function settle(state: State, attempt: Attempt, hostFault: boolean, nowMs: number): void {
  const claim = state.claims.get(attempt.uid);
  if (!claim) return;
  chargeUntil(state, attempt, claim, hostFault ? (attempt.startedAtMs ?? nowMs) : nowMs, nowMs);
  const live = state.jobs.get(attempt.job);
  if (!live) return;
  const pool = state.workers.get(attempt.worker)?.worker.pool ?? '';
  const who = { tenant: attempt.tenant, user: live.job.owner, pool };
  const ranMs = hostFault || attempt.startedAtMs === null ? 0 : nowMs - attempt.startedAtMs;
  const cpuMs = Math.floor((claim.cpuMillis * Math.max(0, ranMs)) / 1000);
  state.usageDays.add(state.changes, who, { ...NOTHING_USED, cpuMs, attempts: 1 }, nowMs);
  const use = {
    cpuMillis: claim.cpuMillis,
    memoryMiB: claim.memoryBytes / MIB,
    deviceMillis: deviceMillisOf(claim),
  };
  for (const { account } of state.accounts.both(attempt.tenant, live.job.owner)) {
    const ms = nowMs - attempt.assignedAtMs;
    account.usage = addUse(account.usage, use, ms, nowMs, state.halfLifeMs);
    touchAccount(state, account);
  }
}

function chargeUntil(
  state: State,
  attempt: Attempt,
  claim: Claim,
  untilMs: number,
  nowMs: number,
): void {
  const deviceMillis = deviceMillisOf(claim);
  const live = state.jobs.get(attempt.job);
  if (!live || (deviceMillis === 0 && attempt.priceMicros === 0)) return;
  const ms = attempt.startedAtMs === null ? 0 : Math.max(0, untilMs - attempt.startedAtMs);
  const micros = costOf(attempt.priceMicros, ms) - attempt.chargedMicros;
  const deviceMs = deviceMsOf(deviceMillis, ms) - attempt.chargedDeviceMs;
  if (micros === 0 && deviceMs === 0) return;
  attempt.charges++;
  attempt.chargedMicros += micros;
  attempt.chargedDeviceMs += deviceMs;
  state.touchAttempt(attempt);
  if (micros !== 0) {
    live.job.spentMicros += micros;
    state.touchJob(live.job);
  }
  const pool = state.workers.get(attempt.worker)?.worker.pool ?? '';
  const { tenant } = attempt;
  const user = live.job.owner;
  const entry = { attempt: attempt.uid, n: attempt.charges, tenant, user, pool, untilMs: nowMs };
  const paid: LedgerEntry = { ...entry, account: `user/${tenant}/${user}`, micros, deviceMs };
  state.changes.ledger.push(paid, negative(paid, `pool/${pool}`));
  const used = { ...NOTHING_USED, micros, deviceMs };
  state.usageDays.add(state.changes, { tenant, user, pool }, used, nowMs);
  for (const account of state.accounts.both(tenant, user)) {
    add(account, micros, deviceMs, nowMs);
    tellLevels(state, account, nowMs);
    touchAccount(state, account.account);
  }
}

/** `0 - x`: no database need tell -0 from 0. */
function negative(entry: LedgerEntry, account: string): LedgerEntry {
  return { ...entry, account, micros: 0 - entry.micros, deviceMs: 0 - entry.deviceMs };
}

function add({ account }: LiveAccount, micros: number, deviceMs: number, nowMs: number): void {
  turnPage(account, nowMs);
  account.dayMicros += micros;
  account.dayDeviceMs += deviceMs;
  account.monthMicros += micros;
  account.monthDeviceMs += deviceMs;
}
