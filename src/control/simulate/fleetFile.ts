/** The fleet file: pools with their workers and prices, and the budgets of who uses them. */
import { z } from 'zod';
import { AT_LIMIT, BUDGET_MODES, type Budget } from '../../model/budget.ts';
import type { NamedText } from '../../protocol/simulation.ts';
import { badFile, checked, parseYaml, readAt, ReadProblem } from './checked.ts';
import type { Fleet, FleetPool, WorkerGroup } from './fleet.ts';
import type { Readers } from './readers.ts';

const MICROS = 1_000_000;
const WORKERS_AT_MOST = 1_000_000;
/** As agents have it by default. */
const PORT_RANGE: [number, number] = [20_000, 29_999];

const written = z.union([z.string(), z.number()]).transform(String);
const name = z.string().min(1).max(100);
const price = z.number().min(0).max(1_000_000);
const limit = z.number().min(0).nullable().default(null);

const workers = z.strictObject({
  count: z.int().min(0).max(WORKERS_AT_MOST).default(1),
  cpus: written,
  mem: written,
  gpus: written.default('0'),
  network: z.string().max(255).default(''),
  attributes: z.record(z.string().min(1).max(63), written).default({}),
});

const pool = z.strictObject({
  workers: z.preprocess(
    (given) => (Array.isArray(given) ? (given as unknown[]) : [given]),
    z.array(workers),
  ),
  pricePerDeviceHour: price.default(0),
  pricePerCpuHour: price.default(0),
  tenants: z.array(name).default([]),
  interruptibleOnly: z.boolean().default(false),
  marketplace: z.boolean().default(false),
  failEvery: written.default('0s'),
  backAfter: written.default('1h'),
});

const budget = z.strictObject({
  tenant: name,
  user: z.string().max(200).default(''),
  weight: z.number().positive().max(1_000_000).default(1),
  devices: limit,
  deviceHoursPerDay: limit,
  deviceHoursPerMonth: limit,
  moneyPerDay: limit,
  moneyPerMonth: limit,
  mode: z.enum(BUDGET_MODES).default('hard'),
  atLimit: z.enum(AT_LIMIT).default('finish'),
});

const fleetFile = z.strictObject({
  pools: z.record(name, pool),
  budgets: z.array(budget).default([]),
});

export function readFleet(file: NamedText, readers: Readers): Fleet {
  const content = checked(fleetFile, parseYaml(file), file.name);
  try {
    const pools = Object.entries(content.pools).map(([name, given]) =>
      poolOf(name, given, readers),
    );
    if (pools.every(({ groups }) => groups.every(({ count }) => count === 0))) {
      throw badFile(file.name, ['pools: there is no worker in any of them']);
    }
    return { pools, budgets: content.budgets.map(budgetOf) };
  } catch (error) {
    if (error instanceof ReadProblem) throw badFile(file.name, [error.message], error);
    throw error;
  }
}

function poolOf(name: string, given: z.output<typeof pool>, readers: Readers): FleetPool {
  const where = `pools.${name}`;
  const { tenants, interruptibleOnly, marketplace } = given;
  return {
    policy: {
      name,
      largestWorker: null,
      terms: { tenants, users: [], interruptibleOnly, marketplace },
      deviceHourMicros: Math.round(given.pricePerDeviceHour * MICROS),
      cpuHourMicros: Math.round(given.pricePerCpuHour * MICROS),
    },
    groups: given.workers.map((group, at) =>
      groupOf(name, `${where}.workers[${at}]`, group, readers),
    ),
    failEveryMs: readAt(where, () => readers.durationMs(given.failEvery, 'failEvery')),
    backAfterMs: readAt(where, () => readers.durationMs(given.backAfter, 'backAfter')),
  };
}

function groupOf(
  poolName: string,
  where: string,
  given: z.output<typeof workers>,
  readers: Readers,
): WorkerGroup {
  return {
    count: given.count,
    resources: {
      cpuMillis: readAt(where, () => readers.cpuMillis(given.cpus, 'cpus')),
      memoryBytes: readAt(where, () => readers.memoryBytes(given.mem, 'mem')),
      devices: readAt(where, () => readers.devices(given.gpus)),
      portRange: PORT_RANGE,
    },
    // Workers of a pool reach each other unless the file says otherwise.
    network: given.network || poolName,
    attributes: given.attributes,
  };
}

function budgetOf(given: z.output<typeof budget>): Budget {
  const money = (amount: number | null): number | null =>
    amount === null ? null : Math.round(amount * MICROS);
  return {
    tenant: given.tenant,
    user: given.user,
    weight: given.weight,
    deviceMillis: given.devices === null ? null : Math.round(given.devices * 1000),
    deviceHoursPerDay: given.deviceHoursPerDay,
    deviceHoursPerMonth: given.deviceHoursPerMonth,
    microsPerDay: money(given.moneyPerDay),
    microsPerMonth: money(given.moneyPerMonth),
    mode: given.mode,
    atLimit: given.atLimit,
    version: 1,
  };
}
