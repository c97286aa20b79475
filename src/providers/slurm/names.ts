/**
 * What our jobs are called at a site: `drover-<cluster>-<pool>.<batch>`. Other pools, other
 * clusters and other people have jobs there too, so the name alone says whose a job is.
 */
import { createHash } from 'node:crypto';

export interface JobNames {
  /** Of every job of this pool. */
  prefix: string;
  jobName(batch: string): string;
  /** Undefined: not one of this pool. Members of an array have a place in it. */
  labelOf(jobName: string, place: number | null): string | undefined;
}

export function createJobNames(clusterId: string, pool: string): JobNames {
  const prefix = `drover-${plain(clusterId)}-${plain(pool)}.`;
  return {
    prefix,
    jobName: (batch) => prefix + batch,
    labelOf(jobName, place) {
      const batch = jobName.startsWith(prefix) ? jobName.slice(prefix.length) : '';
      if (!/^[\w.-]+$/.test(batch)) return undefined;
      return place === null ? batch : `${batch}.${place}`;
    },
  };
}

/** Without the dot that ends it; what had to be changed is told apart by a hash. */
function plain(name: string): string {
  if (/^[A-Za-z0-9_-]{1,60}$/.test(name)) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 40)}_${hash}`;
}

/** The batch of a label: a place in it is a number after the last dot. */
export function batchOf(label: string): string {
  return label.replace(/\.\d+$/, '');
}
