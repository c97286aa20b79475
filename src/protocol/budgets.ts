/** REST schemas of budgets, of what was used, and of what a job would cost and where. */
import { z } from 'zod';
import { AT_LIMIT, BUDGET_MODES } from '../model/budget.ts';
import { saysOf, wholeNumber } from './queries.ts';
import { clean } from './texts.ts';

const ms = z.number();
/** Nobody owns a million devices. */
const deviceMillis = z.int().min(0).max(1_000_000_000);
const hours = z.number().min(0).max(1_000_000_000);
const micros = z.int().min(0);

const limits = {
  /** Twice the weight, twice the share. */
  weight: z.number().min(0.001).max(1000).default(1),
  /** Thousandths of devices held at once. Null here and below: no limit. */
  deviceMillis: deviceMillis.nullable().default(null),
  deviceHoursPerDay: hours.nullable().default(null),
  deviceHoursPerMonth: hours.nullable().default(null),
  /** Money in millionths. */
  microsPerDay: micros.nullable().default(null),
  microsPerMonth: micros.nullable().default(null),
  /** Soft: over it, work waits behind everybody else's. Hard: over it, work is held. */
  mode: z.enum(BUDGET_MODES).default('hard'),
  /** What happens to running work when money or hours are used up. */
  atLimit: z.enum(AT_LIMIT).default('finish'),
};

export const budgetTenant = clean(100).min(1);
export const budgetUser = clean(200);

/** The whole budget: what is left out limits nothing. */
export const budgetLimits = z
  .strictObject({
    ...limits,
    /**
     * The version it was read at, 0 for one that did not exist: refused as STALE when somebody else
     * has changed it since. Null: whatever there is.
     */
    version: z.int().min(0).nullable().default(null),
  })
  .meta({ id: 'BudgetLimits', examples: [{ weight: 2, deviceMillis: 8000, mode: 'soft' }] });

/** With whose it is; an empty user means the whole tenant. */
export const budgetInput = budgetLimits.extend({ tenant: budgetTenant, user: budgetUser });
export type BudgetInput = z.infer<typeof budgetInput>;

export const budgetView = z
  .object({
    tenant: z.string(),
    user: z.string(),
    ...limits,
    version: z.int(),
    used: z.object({
      /** Held now. */
      deviceMillis: z.int(),
      /** Of this day and this month, in UTC. */
      deviceHoursDay: z.number(),
      deviceHoursMonth: z.number(),
      microsDay: z.int(),
      microsMonth: z.int(),
      /** Promised to running work and not yet spent. */
      heldMicros: z.int(),
    }),
  })
  .meta({ id: 'Budget' });
export type BudgetView = z.infer<typeof budgetView>;

export const USAGE_BY = ['tenant', 'user', 'pool', 'day'] as const;

export const usageQuery = z.strictObject({
  sinceMs: wholeNumber(0)
    .default(0)
    .describe('Whole days in UTC, from the one of this time on')
    .meta(saysOf(1_793_000_000_000, 0)),
  untilMs: wholeNumber(0)
    .default(Number.MAX_SAFE_INTEGER)
    .describe('Only what was before this time')
    .meta(saysOf(1_795_000_000_000)),
  by: z.enum(USAGE_BY).default('user').describe('What a row is for'),
});
export type UsageQuery = z.infer<typeof usageQuery>;

export const usageRow = z
  .object({
    /** A tenant, a user (`TENANT/USER`), a pool, or a day in UTC (`2026-11-15`). */
    key: z.string(),
    deviceHours: z.number(),
    cpuHours: z.number(),
    costMicros: z.int(),
    attempts: z.int(),
  })
  .meta({ id: 'UsageRow' });
export type UsageRow = z.infer<typeof usageRow>;

export const planView = z
  .object({
    /** Where it could run, the soonest first. */
    options: z.array(
      z.object({
        pool: z.string(),
        /** Null: nobody can say yet. */
        startsAtMs: ms.nullable(),
        /** The worker it would start on now. */
        worker: z.string().nullable(),
        /** Of all tasks that may run at once. */
        pricePerHourMicros: z.int(),
        /** Price times the time limit, of all tasks; null without a time limit. */
        costMicros: z.int().nullable(),
        reason: z.string(),
      }),
    ),
    /** Why it could run nowhere, ever; null when it could. */
    never: z.string().nullable(),
  })
  .meta({ id: 'Plan' });
export type PlanView = z.infer<typeof planView>;
