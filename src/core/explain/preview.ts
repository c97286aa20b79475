/** Where and when a request would run, before it is submitted; nothing is booked. */
import { memorySize } from '../../lib/show.ts';
import type { Spot } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { explainLimit, explainMisfit } from '../explain.ts';
import { bindingLimit, holdOf, taskHourMicros } from '../schedule/quota.ts';
import { earliest } from '../schedule/shadow.ts';
import type { PlannerView } from '../schedule/view.ts';

export interface PoolPreview {
  pool: string;
  /** Null: nobody knows, or never. */
  startsAtMs: number | null;
  /** The first of them. */
  worker: string | null;
  /** Of all its members, in millionths. */
  pricePerHourMicros: number;
  reason: string;
}

/**
 * The earliest start by the time limits of what runs, as if it were next; null: unknown, or never.
 */
export function predictStart(
  view: PlannerView,
  request: PlacementRequest,
  nowMs: number,
): { atMs: number; worker: string } | null {
  const options = { nowMs, guess: false, looks: Number.POSITIVE_INFINITY };
  const found = earliest(view, request, request.gangSize, options);
  return found && { atMs: found.atMs, worker: nameOf(view, found.spots[0] as Spot) };
}

/** Each pool that it may use, the soonest first, then the cheapest. `inputs`: their hashes. */
export function previewPlacement(
  view: PlannerView,
  request: PlacementRequest,
  nowMs: number,
  inputs: readonly string[] = [],
): PoolPreview[] {
  const previews = [...poolsOf(view, request)].map((pool) =>
    previewIn(view, request, pool, nowMs, inputs),
  );
  const startOf = ({ startsAtMs }: PoolPreview): number => startsAtMs ?? Number.MAX_SAFE_INTEGER;
  return previews.toSorted(
    (a, b) => startOf(a) - startOf(b) || a.pricePerHourMicros - b.pricePerHourMicros,
  );
}

function previewIn(
  view: PlannerView,
  request: PlacementRequest,
  pool: string,
  nowMs: number,
  inputs: readonly string[],
): PoolPreview {
  const here = { ...request, pool, key: `${request.key}|in ${JSON.stringify(pool)}` };
  const price = view.prices.of(pool) ?? { deviceHourMicros: 0, cpuHourMicros: 0 };
  const pricePerHourMicros = taskHourMicros(request, price) * request.gangSize;
  const said = (startsAtMs: number | null, worker: string | null, reason: string): PoolPreview => ({
    pool,
    startsAtMs,
    worker,
    pricePerHourMicros,
    reason,
  });
  const owner = view.accounts.owner(request.tenant, request.user);
  const { micros } = holdOf(request, price);
  const binding = bindingLimit({ owner, request }, request.gangSize, micros);
  if (binding?.mode === 'hard') return said(null, null, explainLimit(binding, request).sentence);
  const { fleet } = view;
  const { gangSize } = request;
  const spots =
    gangSize > 1 ? fleet.placeGang(here, gangSize, inputs) : [fleet.place(here, inputs)];
  const [first] = spots ?? [];
  if (spots && first) {
    const workers = new Set(spots.map((spot) => spot?.worker)).size;
    const more = workers > 1 ? ` and ${workers - 1} more` : '';
    const held = fleet.heldOn(first.worker, inputs);
    const has = held > 0 ? `, which has ${memorySize(held)} of its inputs` : '';
    return said(nowMs, nameOf(view, first), `there is room on ${nameOf(view, first)}${more}${has}`);
  }
  const soon = predictStart(view, here, nowMs);
  if (!soon) return said(null, null, explainMisfit(view, here).sentence);
  return said(soon.atMs, soon.worker, 'when what runs there has reached its time limit');
}

function poolsOf(view: PlannerView, request: PlacementRequest): Set<string> {
  const pools = new Set<string>();
  for (const { info } of view.fleet.workers()) {
    if (request.pool === '' || info.pool === request.pool) pools.add(info.pool);
  }
  return pools;
}

function nameOf(view: PlannerView, { worker }: Spot): string {
  return view.fleet.worker(worker)?.info.name ?? worker;
}
