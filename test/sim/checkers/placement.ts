/** I7, where: work lies only on workers it may use, and beside nobody it must not lie beside. */
import type { PoolPolicy } from '../../../src/core/placement/admission.ts';
import type { JobSpec } from '../../../src/model/job.ts';
import { unpackSpec } from '../../../src/model/spec.ts';
import type { ClaimRow, JobRow } from '../../../src/store/database.ts';
import { mayUse, siteOf, type Site } from '../sites.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

interface Placed {
  owner: string;
  job: JobRow;
  spec: JobSpec;
}

export class PlacementChecker {
  readonly #mirror: Mirror;
  readonly #pools: readonly PoolPolicy[];
  /** Claims that are held or being released, by worker. */
  readonly #present = new Map<string, Map<string, Placed>>();

  constructor(mirror: Mirror, pools: readonly PoolPolicy[]) {
    this.#mirror = mirror;
    this.#pools = pools;
  }

  committed({ freed, claims, attempts, workers }: Commit): void {
    const changed = new Set(workers.map(({ row }) => row.id));
    for (const { before, row } of attempts) {
      // One batch may hold the assignment and then what closed the worker.
      const worker =
        before || changed.has(row.worker) ? null : this.#mirror.workers.get(row.worker);
      const open = !worker || (worker.state === 'ONLINE' && worker.draining === 0);
      must(open, 'I7', () => `${row.uid} began on ${row.worker}, which takes no work`);
    }
    for (const { owner, worker } of freed) this.#present.get(worker)?.delete(owner);
    for (const { row } of claims) {
      const placed = row.state === 'NOMINATED' ? null : this.#place(row);
      if (placed) this.#check(placed, row.worker);
    }
  }

  /** Null when it was there before. */
  #place({ owner, worker }: ClaimRow): Placed | null {
    const here = this.#present.get(worker) ?? new Map<string, Placed>();
    this.#present.set(worker, here);
    const job = this.#mirror.jobs.get(owner.slice(0, owner.indexOf('.')));
    if (here.has(owner) || !job) return null;
    const placed = { owner, job, spec: unpackSpec(job.spec) };
    here.set(owner, placed);
    return placed;
  }

  #check({ owner, job, spec }: Placed, worker: string): void {
    const site = this.#siteOf(worker);
    const suits = !!site && mayUse(site, this.#pools, spec, job.tenant);
    must(suits, 'I7', () => `${owner} lies on ${site?.name}, which it may not use`);
    for (const other of this.#present.get(worker)?.values() ?? []) {
      if (other.owner === owner) continue;
      const alone = spec.placement.exclusive || other.spec.placement.exclusive;
      must(!alone, 'I7', () => `${owner} and ${other.owner} share ${worker}, one wants it alone`);
      const { antiAffinity } = spec.placement;
      const apart = antiAffinity !== '' && antiAffinity === other.spec.placement.antiAffinity;
      const same = apart && job.tenant === other.job.tenant;
      must(
        !same,
        'I7',
        () => `${owner} and ${other.owner} share ${worker} despite ${antiAffinity}`,
      );
    }
    if (spec.placement.locality !== '') this.#checkLocality(owner, spec, site);
  }

  /** Members of a gang are held together: all of its claims lie in one group. */
  #checkLocality(owner: string, spec: JobSpec, site: Site | undefined): void {
    const job = owner.slice(0, owner.indexOf('.') + 1);
    const { locality } = spec.placement;
    for (const [worker, here] of this.#present) {
      const other = this.#siteOf(worker)?.attributes[locality];
      if (spec.shape.kind !== 'gang' || other === site?.attributes[locality]) continue;
      for (const uid of here.keys()) {
        const round = this.#mirror.attempt(uid)?.round === this.#mirror.attempt(owner)?.round;
        const split = round && uid.startsWith(job);
        must(!split, 'I7', () => `${owner} and ${uid} have not the same ${locality}`);
      }
    }
  }

  #siteOf(worker: string): Site | undefined {
    return siteOf(this.#mirror.workers.get(worker)?.machine ?? '');
  }
}
