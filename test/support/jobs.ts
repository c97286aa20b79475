/** Jobs that faults tests submit, and what must be true of them afterwards. */
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { eachItem } from '../../src/protocol/client.ts';
import type { JobView } from '../../src/protocol/jobs.ts';
import type { SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import type { TestServer } from './server.ts';

/** A short grace, so that it fits into the short leases of tests. */
const GRACE_MS = 500;

export const shell = (script: string, more: Partial<SubmittedSpec> = {}): SubmittedSpec => ({
  command: ['sh', '-c', script],
  graceMs: GRACE_MS,
  resources: { cpuMillis: 100 },
  ...more,
});

export const forever = (more: Partial<SubmittedSpec> = {}): SubmittedSpec =>
  shell('exec sleep 100000', more);

/** More than any worker here has: it stays PENDING and costs nothing. */
export const waiting = (more: Partial<SubmittedSpec> = {}): SubmittedSpec => ({
  command: ['true'],
  resources: { cpuMillis: 900_000 },
  ...more,
});

/** A file that tasks wait for: `script` says how, `open` lets them go on. */
export function gate(server: TestServer, name: string): { wait: string; open(): void } {
  const file = path.join(server.root, `gate-${name}`);
  if (existsSync(file)) throw new Error(`gate ${name} is used twice`);
  return {
    wait: `while [ ! -e ${file} ]; do sleep 0.05; done`,
    open: () => writeFileSync(file, ''),
  };
}

export async function allJobs(server: TestServer): Promise<JobView[]> {
  const jobs: JobView[] = [];
  for await (const job of eachItem((page) => server.client.listJobs(page), 500)) jobs.push(job);
  return jobs;
}

/** What is wrong with the jobs, compared with what was acknowledged: empty when nothing is. */
export async function compareWithAcknowledged(
  server: TestServer,
  acknowledged: ReadonlyMap<string, string>,
  prefix: string,
): Promise<string[]> {
  const problems: string[] = [];
  const idsByName = new Map<string, string[]>();
  for (const { id, name } of await allJobs(server)) {
    if (!name.startsWith(prefix)) continue;
    idsByName.set(name, [...(idsByName.get(name) ?? []), id]);
  }
  for (const [key, id] of acknowledged) {
    const ids = idsByName.get(key) ?? [];
    if (ids.length !== 1 || ids[0] !== id) problems.push(`${key}: ${id} became [${ids.join()}]`);
    idsByName.delete(key);
  }
  for (const [name, ids] of idsByName) problems.push(`${name}: never asked for, [${ids.join()}]`);
  return problems;
}
