/** Maintenance and other reservations, as scontrol prints them: when a partition is not ours. */
import { expandHostlist } from './hostlist.ts';
import { readTime } from './queue.ts';

export interface Reservation {
  name: string;
  startMs: number;
  endMs: number;
  nodes: string[];
  maintenance: boolean;
}

/** Of `scontrol show reservation -o`; a line that says less than this is passed over. */
export function readReservations(stdout: string): Reservation[] {
  return stdout.split('\n').flatMap((line) => {
    const field = (name: string): string =>
      new RegExp(`(?:^|\\s)${name}=(\\S*)`).exec(line)?.[1] ?? '';
    const [startMs, endMs] = [readTime(field('StartTime')), readTime(field('EndTime'))];
    const nodes = expandHostlist(field('Nodes'));
    if (!field('ReservationName') || startMs === null || endMs === null || !nodes) return [];
    const maintenance = field('Flags').split(',').includes('MAINT');
    return [{ name: field('ReservationName'), startMs, endMs, nodes, maintenance }];
  });
}

/** The nodes of the partition, by `sinfo -h -o '%P|%N'`; empty: not known. */
export function nodesOf(stdout: string, partition: string): string[] {
  const wanted = new Set(partition.split(',').filter(Boolean));
  return stdout.split('\n').flatMap((line) => {
    const match = /^(\S+?)(\*?)\|(\S+)\s*$/.exec(line.trim());
    const [, name = '', isDefault = '', nodes = ''] = match ?? [];
    const isWanted = wanted.size > 0 ? wanted.has(name) : isDefault === '*';
    return isWanted ? (expandHostlist(nodes) ?? []) : [];
  });
}

export interface TimeAsked {
  /** What would be asked for; 0: as long as the partition gives. */
  wantedMs: number;
  /** With less it is of no use. */
  neededMs: number;
}

/** Closed until then, or open for so long; 0: nothing in sight. */
export type Window =
  | { kind: 'open'; timeMs: number; notice: string }
  | { kind: 'closed'; untilMs: number; reason: string };

/**
 * Slurm starts nothing that would run into a reservation: asked for more, a job would wait until it
 * is over. So it is asked for what is left before, if that is enough.
 */
export function windowFor(
  all: readonly Reservation[],
  { own, nodes, nowMs }: { own: string; nodes: readonly string[]; nowMs: number },
  { wantedMs, neededMs }: TimeAsked,
): Window {
  const mine = all.find(({ name }) => name === own);
  let [timeMs, notice] = [wantedMs, ''];
  const least = (leftMs: number, words: string): void => {
    if (timeMs > 0 && leftMs >= timeMs) return;
    [timeMs, notice] = [leftMs, words];
  };
  if (mine) {
    if (mine.endMs - nowMs < neededMs) return closed(mine, nowMs, 'ends too soon');
    least(mine.endMs - Math.max(nowMs, mine.startMs), `reservation ${told(mine)}`);
    return { kind: 'open', timeMs, notice };
  }
  for (const reservation of coming(all, nodes, nowMs)) {
    const leftMs = reservation.startMs - nowMs;
    if (leftMs <= 0) return closed(reservation, nowMs, 'has all nodes');
    if (leftMs < neededMs) return closed(reservation, nowMs, 'begins too soon');
    least(leftMs, `${told(reservation)} comes`);
  }
  return { kind: 'open', timeMs, notice };
}

/** Those that take every node, not yet over. */
export function coming(
  all: readonly Reservation[],
  nodes: readonly string[],
  nowMs: number,
): Reservation[] {
  if (nodes.length === 0) return [];
  return all.filter(({ nodes: taken, endMs }) => {
    const names = new Set(taken);
    return endMs > nowMs && nodes.every((node) => names.has(node));
  });
}

export function told({ name, startMs, endMs, maintenance }: Reservation): string {
  const times = `${new Date(startMs).toISOString()} to ${new Date(endMs).toISOString()}`;
  return `${maintenance ? 'maintenance ' : ''}${name} (${times})`;
}

function closed(reservation: Reservation, nowMs: number, why: string): Window {
  const untilMs = Math.max(reservation.endMs, nowMs);
  return { kind: 'closed', untilMs, reason: `${told(reservation)} ${why}` };
}
