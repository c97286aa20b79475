/**
 * What an account still allows: devices at once, device time and money. Checked for the user and
 * for the tenant; what this plan has placed counts.
 */
import { deviceMsOf, holdMicros, holdMs, hourMicros, type Price } from '../money.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { Account, Hold } from './accounts.ts';
import type { PendingClass } from './classes.ts';

export type Limit = 'devices' | 'device-time' | 'money';

/** The account and the limit of it that stand in the way. */
export interface Binding {
  account: Account;
  limit: Limit;
  /** Thousandths of devices, milliseconds of one device, or millionths of money. */
  left: number;
  needed: number;
  mode: 'soft' | 'hard';
}

/** An hour of one task, in millionths. */
export function taskHourMicros({ resources }: PlacementRequest, price: Price): number {
  return hourMicros(deviceMillisOf(resources), resources.cpuMillis, price);
}

/** What one task sets aside, at this price. */
export function holdOf(request: PlacementRequest, price: Price | null): Hold {
  const ms = holdMs(request.timeLimitMs);
  return {
    deviceMs: deviceMsOf(deviceMillisOf(request.resources), ms),
    micros: price ? holdMicros(taskHourMicros(request, price), ms) : 0,
  };
}

/**
 * The limit that binds first, a hard one before a soft one; null: `count` tasks may be placed.
 * `micros` is the least that each sets aside.
 */
export function bindingLimit(
  { owner, request }: Pick<PendingClass, 'owner' | 'request'>,
  count: number,
  micros: number,
): Binding | null {
  const { tenant, user } = owner;
  if (!tenant.row && !user.row) return null;
  const first = bindingOf(user, request, count, micros);
  if (first?.mode === 'hard' || user === tenant) return first;
  const second = bindingOf(tenant, request, count, micros);
  return second?.mode === 'hard' ? second : (first ?? second);
}

function bindingOf(
  account: Account,
  request: PlacementRequest,
  count: number,
  micros: number,
): Binding | null {
  if (!account.row) return null;
  const { mode } = account.row;
  const devices = deviceMillisOf(request.resources) * count;
  const { deviceMs } = holdOf(request, null);
  const over = (limit: Limit, left: number, needed: number): Binding | null =>
    needed > 0 && needed > left ? { account, limit, left, needed, mode } : null;
  return (
    over('devices', account.devicesLeft, devices) ??
    over('device-time', account.deviceMsLeft, deviceMs * count) ??
    over('money', account.microsLeft, micros * count)
  );
}

function deviceMillisOf({ device }: PlacementRequest['resources']): number {
  return device ? device.count * device.share : 0;
}
